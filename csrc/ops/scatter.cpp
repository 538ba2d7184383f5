#include "ops/scatter.h"

#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

ScatterReduction scatter_reduction(const Node& node) {
  const std::string text = node.string_attr("reduction", "none");
  if (text == "none") return ScatterReduction::None;
  if (text == "add") return ScatterReduction::Add;
  if (text == "mul") return ScatterReduction::Mul;
  if (text == "max") return ScatterReduction::Max;
  NEO_CHECK(text == "min", Model, node.op, "reduction must be none, add, mul, max or min. Got \"", text, "\" - at ",
            node.place());
  return ScatterReduction::Min;
}

namespace {

int64_t reduce_signed(ScatterReduction reduction, int64_t a, int64_t b) {
  if (reduction == ScatterReduction::Max) return std::max(a, b);
  if (reduction == ScatterReduction::Min) return std::min(a, b);
  return static_cast<int64_t>(combine_updates(reduction, static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

// Writes runs of updates into an array, combining them with what is there; each step is rounded to the dtype.
class Scatterer {
 public:
  Scatterer(ScatterReduction reduction, const Tensor& updates, const Tensor& y)
      : reduction_(reduction), dtype_(y.dtype()), updates_(updates), y_(y), move_(dtype_, updates.data(), y.data()) {
    NEO_CHECK(reduction == ScatterReduction::None || dtype_ != DType::String, Unsupported, "Scatter",
              "strings cannot be reduced");
    NEO_CHECK(reduction == ScatterReduction::None || !is_complex(dtype_), Unsupported, "Scatter",
              "complex numbers cannot be reduced");
  }

  void operator()(int64_t to, int64_t from, int64_t count) const {
    if (reduction_ == ScatterReduction::None) return move_(to, from, count);
    const int64_t item = item_bytes(dtype_);
    for (int64_t i = 0; i < count; ++i) {
      char* target = y_.as<char>() + (to + i) * item;
      const char* update = updates_.as<char>() + (from + i) * item;
      if (is_float(dtype_)) {
        store_double(dtype_, target,
                     combine_updates(reduction_, load_double(dtype_, target), load_double(dtype_, update)));
      } else if (dtype_ == DType::UInt64) {
        auto* value = reinterpret_cast<uint64_t*>(target);
        *value = combine_updates(reduction_, *value, *reinterpret_cast<const uint64_t*>(update));
      } else if (dtype_ == DType::Bool) {
        const int64_t value = reduce_signed(reduction_, load_int64(dtype_, target), load_int64(dtype_, update));
        store_int64(dtype_, target, value != 0);
      } else {
        store_int64(dtype_, target, reduce_signed(reduction_, load_int64(dtype_, target), load_int64(dtype_, update)));
      }
    }
  }

 private:
  ScatterReduction reduction_;
  DType dtype_;
  const Tensor& updates_;
  const Tensor& y_;
  ElementMover move_;
};

// ScatterElements

void infer_scatter_elements(InferContext& ctx) {
  scatter_reduction(ctx.node());
  ctx.check(ctx.dtype(2) == ctx.dtype(0),
            str("updates must have data's element type. Got ", name(ctx.dtype(2)), ", expected ", name(ctx.dtype(0))));
  if (ctx.ranked(1) && ctx.ranked(2)) {
    ctx.check(ctx.shape(1).rank() == ctx.shape(2).rank(),
              str("indices and updates must have one shape. Got ", ctx.shape(1).to_string(), " and ",
                  ctx.shape(2).to_string()));
    for (int i = 0; i < ctx.shape(1).rank(); ++i) {
      ctx.require_equal(ctx.shape(1)[i], ctx.shape(2)[i], "indices and updates must have one shape");
    }
  }
  if (ctx.ranked(0)) ctx.axis(ctx.node().int_attr("axis", 0), ctx.shape(0).rank());
  infer_same(ctx);
}

void reference_scatter_elements(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& updates = ctx.input(2);
  const Dims dims = ctx.input(1).dims();
  ctx.check(dims.size() == x.dims().size() && updates.dims() == dims,
            str("data, indices and updates must fit. Got ", to_string(x.dims()), ", ", to_string(dims), " and ",
                to_string(updates.dims())));
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("axis", 0), x.rank()));
  const auto indices = ctx.ints(1);
  const Dims strides = dense_strides(x.dims());
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  copy_tensor(x, y);
  const Scatterer scatter(scatter_reduction(ctx.node()), updates, y);
  std::vector<int64_t> index(dims.size(), 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t to = checked_index(ctx, indices[i], x.dims()[axis]) * strides[axis];
    for (size_t a = 0; a < dims.size(); ++a) {
      if (a != axis) to += checked_index(ctx, index[a], x.dims()[a]) * strides[a];
    }
    scatter(to, static_cast<int64_t>(i), 1);
    next_index(index, dims);
  }
}

// ScatterND

void infer_scatter_nd(InferContext& ctx) {
  scatter_reduction(ctx.node());
  ctx.check(ctx.dtype(2) == ctx.dtype(0),
            str("updates must have data's element type. Got ", name(ctx.dtype(2)), ", expected ", name(ctx.dtype(0))));
  infer_same(ctx);
  if (!ctx.ranked(0) || !ctx.ranked(1) || !ctx.ranked(2)) return;
  const Shape& data = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  const Shape& updates = ctx.shape(2);
  ctx.check(indices.rank() >= 1, "indices must have a rank of at least 1. Got a scalar");
  if (!indices.dims().back().is_constant()) return;
  const int64_t depth = indices.dims().back().value();
  ctx.check(depth <= data.rank(),
            str("the last axis of indices must fit data's rank. Got ", depth, ", expected at most ", data.rank()));
  std::vector<Dim> expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), data.dims().begin() + depth, data.dims().end());
  ctx.check(
      updates.rank() == static_cast<int>(expected.size()),
      str("updates must fit indices and data. Got ", updates.to_string(), ", expected ", Shape(expected).to_string()));
  for (int i = 0; i < updates.rank(); ++i) {
    ctx.require_equal(updates[i], expected[static_cast<size_t>(i)], "updates must fit indices and data");
  }
}

void reference_scatter_nd(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& updates = ctx.input(2);
  const Dims& shape = ctx.input(1).dims();
  ctx.check(!shape.empty() && shape.back() <= x.rank(),
            str("the last axis of indices must fit data's rank. Got indices ", to_string(shape), " for ",
                to_string(x.dims())));
  const auto depth = static_cast<int>(shape.back());
  const auto indices = ctx.ints(1);
  const int64_t tuples = count_between(shape, 0, static_cast<int>(shape.size()) - 1);
  const int64_t run = count_between(x.dims(), depth, x.rank());
  ctx.check(updates.size() == tuples * run, str("updates must fit indices and data. Got ", to_string(updates.dims()),
                                                ", expected ", tuples, " slices of ", run));
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  copy_tensor(x, y);
  const Scatterer scatter(scatter_reduction(ctx.node()), updates, y);
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t to = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t size = x.dims()[static_cast<size_t>(d)];
      to = to * size + checked_index(ctx, indices[static_cast<size_t>(t * depth + d)], size);
    }
    scatter(to * run, t * run, run);
  }
}

// TensorScatter

template <class Context>
int sequence_axis(const Context& ctx, int rank) {
  const int axis = ctx.axis(ctx.node().int_attr("axis", -2), rank);
  if (axis == 0) ctx.fail(ErrorKind::Model, "axis must not be the batch axis. Got 0");
  return axis;
}

bool is_circular(const Node& node) {
  const std::string mode = node.string_attr("mode", "linear");
  NEO_CHECK(mode == "linear" || mode == "circular", Model, node.op, "mode must be linear or circular. Got \"", mode,
            "\" - at ", node.place());
  return mode == "circular";
}

void infer_tensor_scatter(InferContext& ctx) {
  is_circular(ctx.node());
  infer_same(ctx);
  if (!ctx.ranked(0) || !ctx.ranked(1)) return;
  const Shape& cache = ctx.shape(0);
  const Shape& update = ctx.shape(1);
  ctx.check(cache.rank() == update.rank(),
            str("past_cache and update must have one rank. Got ", cache.to_string(), " and ", update.to_string()));
  const int axis = sequence_axis(ctx, cache.rank());
  for (int i = 0; i < cache.rank(); ++i) {
    if (i == axis) {
      ctx.require_less_equal(update[i], cache[i], "update must not be longer than the cache");
    } else {
      ctx.require_equal(update[i], cache[i], "past_cache and update must agree on all axes but the sequence");
    }
  }
  if (ctx.ranked(2)) {
    ctx.check_rank(2, 1);
    ctx.require_equal(ctx.shape(2)[0], cache[0], "write_indices must have one index per batch");
  }
}

void reference_tensor_scatter(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& update = ctx.input(1);
  ctx.check(x.rank() == update.rank(), str("past_cache and update must have one rank. Got ", to_string(x.dims()),
                                           " and ", to_string(update.dims())));
  const int axis = sequence_axis(ctx, x.rank());
  const bool circular = is_circular(ctx.node());
  const int64_t batches = x.dims()[0];
  const auto starts = ctx.has_input(2) ? ctx.ints(2) : std::vector<int64_t>(static_cast<size_t>(batches), 0);
  const int64_t capacity = x.dims()[static_cast<size_t>(axis)];
  const int64_t length = update.dims()[static_cast<size_t>(axis)];
  ctx.check(capacity > 0 || length == 0, "an empty cache cannot be written");
  const int64_t middle = count_between(x.dims(), 1, axis);
  const int64_t run = count_between(x.dims(), axis + 1, x.rank());
  ctx.check(static_cast<int64_t>(starts.size()) == batches && update.size() == batches * middle * length * run,
            str("past_cache, update and write_indices must fit. Got ", to_string(x.dims()), ", ",
                to_string(update.dims()), " and ", starts.size(), " indices"));
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  copy_tensor(x, y);
  const ElementMover move(x.dtype(), update.data(), y.data());
  for (int64_t row = 0; row < batches * middle; ++row) {
    int64_t start = starts[static_cast<size_t>(row / middle)];
    if (circular && length > 0) start %= capacity;
    ctx.check(start <= capacity,
              str("an index must lie inside the cache. Got ", start, ", expected at most ", capacity));
    for (int64_t s = 0; s < length; ++s) {
      const int64_t at = circular ? (start + s) % capacity : start + s;
      move((row * capacity + checked_index(ctx, at, capacity)) * run, (row * length + s) * run, run);
    }
  }
}

}  // namespace

void add_scatter_ops(OpRegistry& ops) {
  for (const char* op : {"ScatterElements", "Scatter"}) {
    ops.add({.name = op,
             .min_inputs = 3,
             .max_inputs = 3,
             .infer = infer_scatter_elements,
             .reference = reference_scatter_elements});
  }
  ops.add({.name = "ScatterND",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_scatter_nd,
           .reference = reference_scatter_nd});
  ops.add({.name = "TensorScatter",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = infer_tensor_scatter,
           .reference = reference_tensor_scatter});
}

}  // namespace neo
