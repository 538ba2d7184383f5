#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Gather

void infer_gather(InferContext& ctx) {
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape& data = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  ctx.check(data.rank() >= 1, "data must have a rank of at least 1. Got a scalar");
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), data.rank());
  std::vector<Dim> dims(data.dims().begin(), data.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), data.dims().begin() + axis + 1, data.dims().end());
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  if (data.rank() != 1 || indices.rank() > 1) return;
  const auto contents = shape_contents(ctx, 0);
  const auto chosen = ctx.constant_ints(1);
  if (!contents || !chosen) return;
  const auto size = static_cast<int64_t>(contents->size());
  std::vector<Dim> picked;
  for (const int64_t index : *chosen) {
    if (index < -size || index >= size) {
      ctx.fail(ErrorKind::Shape,
               str("an index must lie inside its axis. Got ", index, ", expected ", -size, " to ", size - 1));
    }
    picked.push_back((*contents)[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  ctx.set_contents(0, std::move(picked));
}

void reference_gather(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto indices = ctx.ints(1);
  ctx.check(x.rank() >= 1, "data must have a rank of at least 1. Got a scalar");
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), x.rank());
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  Dims dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), ctx.input(1).dims().begin(), ctx.input(1).dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  const int64_t outer = count_between(x.dims(), 0, axis);
  const int64_t run = count_between(x.dims(), axis + 1, x.rank());
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const ElementMover move(x.dtype(), x.data(), y.data());
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : indices) {
      move(to, (o * size + checked_index(ctx, index, size)) * run, run);
      to += run;
    }
  }
}

// GatherElements

void infer_gather_elements(InferContext& ctx) {
  if (ctx.ranked(0) && ctx.ranked(1)) {
    ctx.check(
        ctx.shape(0).rank() == ctx.shape(1).rank(),
        str("data and indices must have one rank. Got ", ctx.shape(0).to_string(), " and ", ctx.shape(1).to_string()));
    ctx.axis(ctx.node().int_attr("axis", 0), ctx.shape(0).rank());
  }
  ctx.set_output(0, ctx.dtype(0), ctx.shape(1));
}

void reference_gather_elements(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Dims dims = ctx.input(1).dims();
  ctx.check(x.rank() == ctx.input(1).rank(),
            str("data and indices must have one rank. Got ", to_string(x.dims()), " and ", to_string(dims)));
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("axis", 0), x.rank()));
  const auto indices = ctx.ints(1);
  const Dims strides = dense_strides(x.dims());
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const ElementMover move(x.dtype(), x.data(), y.data());
  std::vector<int64_t> index(dims.size(), 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t from = checked_index(ctx, indices[i], x.dims()[axis]) * strides[axis];
    for (size_t a = 0; a < dims.size(); ++a) {
      if (a != axis) from += checked_index(ctx, index[a], x.dims()[a]) * strides[a];
    }
    move(static_cast<int64_t>(i), from);
    next_index(index, dims);
  }
}

// GatherND

void infer_gather_nd(InferContext& ctx) {
  if (!ctx.ranked(0) || !ctx.ranked(1) || ctx.shape(1).rank() < 1 || !ctx.shape(1).dims().back().is_constant()) {
    return ctx.set_output(0, ctx.dtype(0), Shape());
  }
  const Shape& data = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  const int64_t batch = ctx.node().int_attr("batch_dims", 0);
  const int64_t depth = indices.dims().back().value();
  ctx.check(batch >= 0 && batch < std::min(data.rank(), indices.rank()),
            str("batch_dims must be less than both ranks. Got ", batch, " for ", data.to_string(), " and ",
                indices.to_string()));
  ctx.check(depth >= 1 && batch + depth <= data.rank(),
            str("the last axis of indices must fit data's rank. Got ", depth, ", expected 1 to ", data.rank() - batch));
  std::vector<Dim> dims(indices.dims().begin(), indices.dims().end() - 1);
  for (int i = 0; i < batch; ++i) {
    dims[static_cast<size_t>(i)] = unify(ctx, data[i], indices[i], "data and indices must agree on the batch axes");
  }
  dims.insert(dims.end(), data.dims().begin() + batch + depth, data.dims().end());
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_gather_nd(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Dims& shape = ctx.input(1).dims();
  const auto batch = static_cast<int>(ctx.node().int_attr("batch_dims", 0));
  ctx.check(!shape.empty(), "indices must have a rank of at least 1. Got a scalar");
  const auto depth = static_cast<int>(shape.back());
  ctx.check(batch + depth <= x.rank() && batch < static_cast<int>(shape.size()),
            str("the last axis of indices must fit data's rank. Got indices ", to_string(shape), " for ",
                to_string(x.dims())));
  for (int i = 0; i < batch; ++i) {
    ctx.check(
        shape[static_cast<size_t>(i)] == x.dims()[static_cast<size_t>(i)],
        str("data and indices must agree on the batch axes. Got ", to_string(x.dims()), " and ", to_string(shape)));
  }
  const auto indices = ctx.ints(1);
  Dims dims(shape.begin(), shape.end() - 1);
  dims.insert(dims.end(), x.dims().begin() + batch + depth, x.dims().end());
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const ElementMover move(x.dtype(), x.data(), y.data());
  const int64_t batches = count_between(shape, 0, batch);
  const int64_t tuples = count_between(shape, batch, static_cast<int>(shape.size()) - 1);
  const int64_t run = count_between(x.dims(), batch + depth, x.rank());
  const int64_t batch_stride = count_between(x.dims(), batch, x.rank());
  for (int64_t t = 0; t < batches * tuples; ++t) {
    int64_t from = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t size = x.dims()[static_cast<size_t>(batch + d)];
      from = from * size + checked_index(ctx, indices[static_cast<size_t>(t * depth + d)], size);
    }
    move(t * run, t / tuples * batch_stride + from * run, run);
  }
}

// OneHot

int one_hot_axis(const Node& node, int rank) {
  const int64_t axis = node.int_attr("axis", -1);
  NEO_CHECK(axis >= -rank - 1 && axis <= rank, Model, node.op, "axis must lie inside the output's rank. Got ", axis,
            ", expected ", -rank - 1, " to ", rank, " - at ", node.place());
  return static_cast<int>(axis < 0 ? axis + rank + 1 : axis);
}

void infer_one_hot(InferContext& ctx) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(2), Shape());
  Dim depth;
  if (const auto contents = scalar_contents(ctx, 1)) {
    depth = *contents;
  } else if (const Tensor* constant = ctx.constant(1); constant != nullptr && constant->size() == 1) {
    depth = load_int64(constant->dtype(), constant->data());
  } else {
    depth = ctx.fresh("depth");
  }
  ctx.require_less_equal(0, depth, "depth must not be negative");
  std::vector<Dim> dims = ctx.shape(0).dims();
  dims.insert(dims.begin() + one_hot_axis(ctx.node(), ctx.shape(0).rank()), depth);
  ctx.set_output(0, ctx.dtype(2), Shape(std::move(dims)));
}

void reference_one_hot(ReferenceContext& ctx) {
  const auto indices = ctx.ints(0);
  const int64_t depth = scalar_int(ctx, 1);
  const Tensor& values = ctx.input(2);
  ctx.check(depth >= 0, str("depth must not be negative. Got ", depth));
  ctx.check(values.size() == 2, str("values must hold the off and the on value. Got ", to_string(values.dims())));
  Dims dims = ctx.input(0).dims();
  const int axis = one_hot_axis(ctx.node(), ctx.input(0).rank());
  const int64_t inner = count_between(dims, axis, ctx.input(0).rank());
  dims.insert(dims.begin() + axis, depth);
  const Tensor& y = ctx.output(0, values.dtype(), dims);
  fill_elements(values.dtype(), y.data(), 0, y.size(), values.data());
  const ElementMover move(values.dtype(), values.data(), y.data());
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t at = indices[i] < 0 ? indices[i] + depth : indices[i];
    if (at < 0 || at >= depth) continue;
    const int64_t position = static_cast<int64_t>(i);
    move((position / inner * depth + at) * inner + position % inner, 1);
  }
}

// NonZero

void infer_non_zero(InferContext& ctx) {
  const Dim rank = ctx.ranked(0) ? Dim(ctx.shape(0).rank()) : ctx.fresh("rank");
  Range range;
  if (ctx.ranked(0)) range.hi = ctx.shape(0).element_count().range().hi;
  ctx.set_output(0, DType::Int64, Shape({rank, ctx.fresh("nonzero", range)}));
}

void reference_non_zero(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> found;
  if (x.dtype() == DType::String) {
    for (int64_t i = 0; i < x.size(); ++i) {
      if (!x.strings()[i].empty()) found.push_back(i);
    }
  } else {
    const auto elements = is_float(x.dtype()) ? ctx.doubles(0) : std::vector<double>{};
    const auto integers = is_float(x.dtype()) ? std::vector<int64_t>{} : ctx.ints(0);
    for (int64_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (elements.empty() ? integers[at] != 0 : elements[at] != 0.0) found.push_back(i);
    }
  }
  const auto count = static_cast<int64_t>(found.size());
  std::vector<int64_t> coordinates(found.size() * x.dims().size());
  const Dims strides = dense_strides(x.dims());
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t a = 0; a < strides.size(); ++a) coordinates[a * found.size() + i] = found[i] / strides[a] % x.dims()[a];
  }
  store_ints(ctx.output(0, DType::Int64, {x.rank(), count}), coordinates);
}

// Unique

void infer_unique(InferContext& ctx) {
  const bool flat = !ctx.node().has_attr("axis");
  Range range;
  Shape result;
  Dim count;
  if (ctx.ranked(0)) {
    const Shape& shape = ctx.shape(0);
    const int axis = flat ? 0 : ctx.axis(ctx.node().int_attr("axis", 0), shape.rank());
    range.hi = (flat ? shape.element_count() : shape[axis]).range().hi;
    count = ctx.fresh("unique", range);
    std::vector<Dim> dims = flat ? std::vector<Dim>{count} : shape.dims();
    dims[static_cast<size_t>(axis)] = count;
    result = Shape(std::move(dims));
    ctx.set_output(2, DType::Int64, Shape({flat ? shape.element_count() : shape[axis]}));
  } else {
    count = ctx.fresh("unique", range);
    if (flat) result = Shape({count});
    ctx.set_output(2, DType::Int64, Shape(fresh_dims(ctx, 1, "unique")));
  }
  ctx.set_output(0, ctx.dtype(0), result);
  ctx.set_output(1, DType::Int64, Shape({count}));
  ctx.set_output(3, DType::Int64, Shape({count}));
}

// Less for sorting: NaN is one value and comes last.
struct UniqueLess {
  bool operator()(double a, double b) const { return std::isnan(b) ? !std::isnan(a) : a < b; }
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

struct RowGroups {
  std::vector<int64_t> first;    // per group, the first member
  std::vector<int64_t> counts;   // per group
  std::vector<int64_t> inverse;  // per item, its group
};

// Item i is the row elements[offset(i, j)] for j in [0, width).
template <class T, class Offset>
RowGroups group_rows(const T* elements, int64_t count, int64_t width, const Offset& offset, bool sorted) {
  const UniqueLess less;
  const auto row_less = [&](int64_t a, int64_t b) {
    for (int64_t j = 0; j < width; ++j) {
      const T& left = elements[offset(a, j)];
      const T& right = elements[offset(b, j)];
      if (less(left, right)) return true;
      if (less(right, left)) return false;
    }
    return false;
  };
  auto order = make_scratch<int64_t>(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), row_less);
  std::vector<std::pair<int64_t, int64_t>> spans;  // of order
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || row_less(order[static_cast<size_t>(i - 1)], order[static_cast<size_t>(i)])) spans.emplace_back(i, i);
    ++spans.back().second;
  }
  if (!sorted) {
    std::sort(spans.begin(), spans.end(), [&](const auto& a, const auto& b) {
      return order[static_cast<size_t>(a.first)] < order[static_cast<size_t>(b.first)];
    });
  }
  RowGroups groups;
  groups.inverse.resize(static_cast<size_t>(count));
  for (size_t g = 0; g < spans.size(); ++g) {
    groups.first.push_back(order[static_cast<size_t>(spans[g].first)]);
    groups.counts.push_back(spans[g].second - spans[g].first);
    for (int64_t i = spans[g].first; i < spans[g].second; ++i) {
      groups.inverse[static_cast<size_t>(order[static_cast<size_t>(i)])] = static_cast<int64_t>(g);
    }
  }
  return groups;
}

void reference_unique(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool flat = !ctx.node().has_attr("axis");
  const bool sorted = ctx.node().int_attr("sorted", 1) != 0;
  Dims dims = flat ? Dims{x.size()} : x.dims();
  const int rank = static_cast<int>(dims.size());
  const int axis = flat ? 0 : ctx.axis(ctx.node().int_attr("axis", 0), rank);
  const int64_t count = dims[static_cast<size_t>(axis)];
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t inner = count_between(dims, axis + 1, rank);
  const auto offset = [=](int64_t i, int64_t j) { return (j / inner * count + i) * inner + j % inner; };
  RowGroups groups;
  if (x.dtype() == DType::String) {
    groups = group_rows(x.strings(), count, outer * inner, offset, sorted);
  } else if (x.dtype() == DType::UInt64) {
    groups = group_rows(x.as<uint64_t>(), count, outer * inner, offset, sorted);
  } else if (is_float(x.dtype())) {
    groups = group_rows(ctx.doubles(0).data(), count, outer * inner, offset, sorted);
  } else {
    if (is_complex(x.dtype())) ctx.fail(ErrorKind::Unsupported, "complex elements have no order");
    groups = group_rows(ctx.ints(0).data(), count, outer * inner, offset, sorted);
  }
  const auto unique = static_cast<int64_t>(groups.first.size());
  if (ctx.has_output(0)) {
    dims[static_cast<size_t>(axis)] = unique;
    const Tensor& y = ctx.output(0, x.dtype(), dims);
    const ElementMover move(x.dtype(), x.data(), y.data());
    int64_t to = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t i : groups.first) {
        move(to, (o * count + i) * inner, inner);
        to += inner;
      }
    }
  }
  if (ctx.output_count() > 1 && ctx.has_output(1)) store_ints(ctx.output(1, DType::Int64, {unique}), groups.first);
  if (ctx.output_count() > 2 && ctx.has_output(2)) store_ints(ctx.output(2, DType::Int64, {count}), groups.inverse);
  if (ctx.output_count() > 3 && ctx.has_output(3)) store_ints(ctx.output(3, DType::Int64, {unique}), groups.counts);
}

}  // namespace

void add_index_ops(OpRegistry& ops) {
  ops.add({.name = "Gather",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_gather,
           .reference = reference_gather,
           .work = movement_work});
  ops.add({.name = "GatherElements",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_gather_elements,
           .reference = reference_gather_elements,
           .work = movement_work});
  ops.add({.name = "GatherND",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_gather_nd,
           .reference = reference_gather_nd,
           .work = movement_work});
  ops.add({.name = "OneHot",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_one_hot,
           .reference = reference_one_hot,
           .work = movement_work,
           .shape_inputs = {1}});
  ops.add({.name = "NonZero", .infer = infer_non_zero, .reference = reference_non_zero});
  ops.add({.name = "Unique", .max_outputs = 4, .infer = infer_unique, .reference = reference_unique});
}

}  // namespace neo
