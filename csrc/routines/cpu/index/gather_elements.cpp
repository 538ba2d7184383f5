#include <cstring>

#include "base/check.h"
#include "routines/cpu/index/element_rows.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/scatter.h"

namespace neo {

const int64_t* wide_indices(const Tensor& indices, std::vector<int64_t>& room) {
  if (indices.dtype() == DType::Int64) return indices.as<int64_t>();
  room.assign(indices.as<int32_t>(), indices.as<int32_t>() + indices.size());
  return room.data();
}

void run_gather_elements(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Dims& dims = indices.dims();
  NEO_CHECK(x.rank() == indices.rank(), Shape, ctx.node().op, "data and indices must have one rank. Got ",
            to_string(x.dims()), " and ", to_string(dims), " - at ", ctx.node().place());
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("axis", 0), x.rank()));
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  if (y.size() == 0) return;
  const ElementRows rows(ctx, x.dims(), dims, axis);
  std::vector<int64_t> room;
  const int64_t* index = wide_indices(indices, room);
  with_width(item_bytes(x.dtype()), [&](auto width) {
    const auto* from = x.as<std::byte>();
    auto* to = y.as<std::byte>();
    rows.for_each(index, [=](int64_t i, int64_t at) { std::memcpy(to + i * width, from + at * width, width); });
  });
}

void run_scatter_elements(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  const Dims& dims = indices.dims();
  NEO_CHECK(x.rank() == indices.rank() && updates.dims() == dims, Shape, ctx.node().op,
            "data, indices and updates must fit. Got ", to_string(x.dims()), ", ", to_string(dims), " and ",
            to_string(updates.dims()), " - at ", ctx.node().place());
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("axis", 0), x.rank()));
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  copy_tensor(x, y);
  if (indices.size() == 0) return;
  const ElementRows rows(ctx, x.dims(), dims, axis);
  std::vector<int64_t> room;
  const int64_t* index = wide_indices(indices, room);
  const ScatterReduction reduction = scatter_reduction(ctx.node());
  if (reduction == ScatterReduction::None) {
    return with_width(item_bytes(x.dtype()), [&](auto width) {
      const auto* from = updates.as<std::byte>();
      auto* to = y.as<std::byte>();
      rows.for_each(index, [=](int64_t i, int64_t at) { std::memcpy(to + at * width, from + i * width, width); });
    });
  }
  with_combine(x.dtype(), reduction, [&]<class T>(T, auto combine) {
    const T* from = updates.as<T>();
    T* to = y.as<T>();
    rows.for_each(index, [=](int64_t i, int64_t at) { to[at] = combine(to[at], from[i]); });
  });
}

}  // namespace neo
