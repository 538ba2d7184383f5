#include "ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// The smallest value of a type, where a maximum begins.
double lowest(DType dtype) {
  return is_integer(dtype) ? static_cast<double>(integer_min(dtype)) : kLowest;
}

// The bounds of the runs that every plane shares.
template <class Body>
void for_each_tap(const PoolSizes& sizes, const Body& body) {
  Dims tap(sizes.window.kernel.size());
  const int64_t taps = element_count(sizes.window.kernel);
  for (int64_t t = 0; t < taps; ++t, next_index(tap, sizes.window.kernel)) {
    for_each_run(sizes.window, tap, body);
  }
}

int64_t last_stride(const PoolSizes& sizes) {
  return sizes.window.strides.empty() ? 1 : sizes.window.strides.back();
}

// MaxPool

void infer_max_pool(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  const int64_t order = ctx.node().int_attr("storage_order", 0);
  ctx.check(order == 0 || order == 1, str("attribute storage_order must be 0 or 1. Got ", order));
  infer_pool(ctx);
  const Value* y = ctx.node().output(0);
  ctx.set_output(1, DType::Int64, y ? y->shape() : Shape());
}

// The position of an element of a plane when the first spatial axis varies fastest.
int64_t column_major(int64_t index, const Dims& dims) {
  int64_t result = 0;
  int64_t stride = element_count(dims);
  for (size_t axis = dims.size(); axis-- > 0;) {
    stride /= dims[axis];
    result += index % dims[axis] * stride;
    index /= dims[axis];
  }
  return result;
}

void reference_max_pool(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  const PoolSizes sizes = pool_sizes(ctx, ctx.input(0).dims());
  const int64_t x_plane = element_count(sizes.window.input);
  const int64_t y_plane = element_count(sizes.window.output);
  const int64_t stride = last_stride(sizes);
  const auto x = ctx.doubles(0);
  const auto total = static_cast<size_t>(sizes.planes() * y_plane);
  std::vector<double> best(total, lowest(dtype));
  std::vector<int64_t> where(total, -1);
  for_each_tap(sizes, [&](int64_t from, int64_t to, int64_t run) {
    for (int64_t plane = 0; plane < sizes.planes(); ++plane) {
      checkpoint();
      for (int64_t i = 0; i < run; ++i) {
        const int64_t source = plane * x_plane + from + i * stride;
        const auto target = static_cast<size_t>(plane * y_plane + to + i);
        if (x[static_cast<size_t>(source)] > best[target] || where[target] < 0) {
          best[target] = x[static_cast<size_t>(source)];
          where[target] = source;
        }
      }
    }
  });
  store_doubles(ctx.output(0, dtype, sizes.output_dims()), best);
  if (!ctx.has_output(1)) return;
  if (ctx.node().int_attr("storage_order", 0) == 1) {
    for (int64_t& index : where) {
      if (index >= 0) index = index / x_plane * x_plane + column_major(index % x_plane, sizes.window.input);
    }
  }
  store_ints(ctx.output(1, DType::Int64, sizes.output_dims()), where);
}

// AveragePool and LpPool

void infer_average_pool(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_pool(ctx);
}

void reference_average_pool(ReferenceContext& ctx) {
  const PoolSizes sizes = pool_sizes(ctx, ctx.input(0).dims());
  auto y = sum_windows(sizes, ctx.doubles(0));
  const auto counts = window_counts(sizes, ctx.node().int_attr("count_include_pad", 0) != 0);
  for (size_t i = 0; i < y.size(); ++i) {
    const double count = counts[i % counts.size()];
    y[i] = count == 0 ? 0 : y[i] / count;
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), y);
}

double read_norm(const Node& node) {
  const int64_t p = node.int_attr("p", 2);
  NEO_CHECK(p >= 1, Model, node.op, "attribute p must be at least 1. Got ", p, " - at ", node.place());
  return static_cast<double>(p);
}

void infer_lp_pool(InferContext& ctx) {
  read_norm(ctx.node());
  infer_average_pool(ctx);
}

void reference_lp_pool(ReferenceContext& ctx) {
  const double p = read_norm(ctx.node());
  const PoolSizes sizes = pool_sizes(ctx, ctx.input(0).dims());
  auto x = ctx.doubles(0);
  for (double& element : x) element = std::pow(std::fabs(element), p);
  auto y = sum_windows(sizes, x);
  for (double& element : y) element = std::pow(element, 1.0 / p);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), y);
}

// Global pools

void infer_global(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_global_pool(ctx);
}

void infer_global_lp(InferContext& ctx) {
  read_norm(ctx.node());
  infer_global(ctx);
}

// Reduces every plane of input 0.
template <class Reduce>
void reduce_planes(ReferenceContext& ctx, const Reduce& reduce) {
  const Dims dims = ctx.input(0).dims();
  ctx.check(dims.size() >= 2, str("the input must have batch and channels. Got ", to_string(dims)));
  Dims output(dims.size(), 1);
  std::copy_n(dims.begin(), 2, output.begin());
  const int64_t plane = count_between(dims, 2, static_cast<int>(dims.size()));
  const auto x = ctx.doubles(0);
  auto y = make_scratch<double>(dims[0] * dims[1]);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = reduce(std::span<const double>(x).subspan(i * static_cast<size_t>(plane), static_cast<size_t>(plane)));
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), output), y);
}

void reference_global_average(ReferenceContext& ctx) {
  reduce_planes(ctx, [](std::span<const double> plane) {
    double sum = 0;
    for (const double x : plane) sum += x;
    return sum / static_cast<double>(plane.size());
  });
}

void reference_global_max(ReferenceContext& ctx) {
  reduce_planes(ctx, [](std::span<const double> plane) {
    double best = kLowest;
    for (const double x : plane) best = x > best ? x : best;
    return best;
  });
}

void reference_global_lp(ReferenceContext& ctx) {
  const double p = read_norm(ctx.node());
  reduce_planes(ctx, [p](std::span<const double> plane) {
    double sum = 0;
    for (const double x : plane) sum += std::pow(std::fabs(x), p);
    return std::pow(sum, 1.0 / p);
  });
}

void infer_max_unpool(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_dtype(ctx, 1, DTypeClass::Integer);
  ctx.check(!ctx.node().ints_attr("kernel_shape").empty(), "attribute kernel_shape is required. Got none");
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape& x = ctx.shape(0);
  ctx.check(x.rank() >= 2, str("the input must have batch and channels. Got ", x.to_string()));
  if (ctx.has_input(2)) {
    const auto given = shape_contents(ctx, 2);
    if (!given) return ctx.set_output(0, ctx.dtype(0), Shape(fresh_dims(ctx, x.rank(), "unpooled")));
    ctx.check(static_cast<int>(given->size()) == x.rank(),
              str("output_shape must have one size per axis. Got ", given->size(), ", expected ", x.rank()));
    return ctx.set_output(0, ctx.dtype(0), Shape(*given));
  }
  ctx.set_output(0, ctx.dtype(0), unpooled_shape(ctx.node(), x));
}

void reference_max_unpool(ReferenceContext& ctx) {
  const Unpooling unpooling(ctx);
  const auto x = ctx.doubles(0);
  const auto indices = ctx.ints(1);
  auto y = make_scratch<double>(element_count(unpooling.output()));
  for (size_t i = 0; i < x.size(); ++i) y[static_cast<size_t>(unpooling.place(indices[i]))] = x[i];
  store_doubles(ctx.output(0, ctx.input(0).dtype(), unpooling.output()), y);
}

}  // namespace

Shape unpooled_shape(const Node& node, const Shape& x) {
  const Window window = read_window(node, x.rank() - 2);
  std::vector<Dim> dims = {x[0], x[1]};
  for (int axis = 0; axis < window.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const Dim pads(window.pads[i] + window.pads[i + window.strides.size()]);
    dims.push_back((x[axis + 2] - 1) * Dim(window.strides[i]) + Dim(window.kernel[i]) - pads);
  }
  return Shape(std::move(dims));
}

Unpooling::Unpooling(const ReferenceContext& ctx) : ctx_(ctx) {
  const Dims dims = ctx.input(0).dims();
  ctx.check(
      dims.size() >= 2 && ctx.input(1).dims() == dims,
      str("input and indices must have one shape. Got ", to_string(dims), " and ", to_string(ctx.input(1).dims())));
  const Shape counted = unpooled_shape(ctx.node(), Shape(std::vector<Dim>(dims.begin(), dims.end())));
  for (const Dim& size : counted.dims()) counted_.push_back(size.value());
  output_ = ctx.has_input(2) ? ctx.ints(2) : counted_;
  ctx.check(output_.size() == counted_.size(),
            str("output_shape must have one size per axis. Got ", to_string(output_)));
  strides_ = dense_strides(output_);
  limit_ = element_count(counted_);
  is_whole_ = output_ == counted_;
}

int64_t Unpooling::cut_place(int64_t index) const {
  if (index < 0 || index >= limit_) {
    ctx_.fail(ErrorKind::Shape,
              str("an index must lie inside the unpooled tensor. Got ", index, ", expected 0 to ", limit_ - 1));
  }
  int64_t place = 0;
  for (size_t axis = counted_.size(); axis-- > 0; index /= counted_[axis]) {
    const int64_t position = index % counted_[axis];
    if (position >= output_[axis]) {
      ctx_.fail(ErrorKind::Shape, str("output_shape must hold every index. Got ", to_string(output_)));
    }
    place += position * strides_[axis];
  }
  return place;
}

void infer_pool(InferContext& ctx) {
  ctx.check(!ctx.node().ints_attr("kernel_shape").empty(), "attribute kernel_shape is required. Got none");
  if (!ctx.ranked(0)) {
    ctx.check_rank(0, static_cast<int>(ctx.node().ints_attr("kernel_shape").size()) + 2);
    return ctx.set_output(0, ctx.dtype(0), Shape());
  }
  const Shape& x = ctx.shape(0);
  ctx.check(x.rank() >= 3, str("the input must have batch, channels and a spatial axis. Got ", x.to_string()));
  const Window window = read_window(ctx.node(), x.rank() - 2);
  std::vector<Dim> dims = {x[0], x[1]};
  for (int axis = 0; axis < window.rank(); ++axis) {
    dims.push_back(window_output(window, axis, window.kernel[static_cast<size_t>(axis)], x[axis + 2]));
    ctx.require_less_equal(0, dims.back(), "the window must fit into the padded input");
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void infer_global_pool(InferContext& ctx, bool channels_last) {
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape& x = ctx.shape(0);
  ctx.check(x.rank() >= 2, str("the input must have batch and channels. Got ", x.to_string()));
  std::vector<Dim> dims(static_cast<size_t>(x.rank()), Dim(1));
  const int channels = channels_last ? x.rank() - 1 : 1;
  dims[0] = x[0];
  dims[static_cast<size_t>(channels)] = x[channels];
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

Dims PoolSizes::output_dims() const {
  Dims dims = outer;
  dims.insert(dims.end(), window.output.begin(), window.output.end());
  return dims;
}

PoolSizes pool_sizes(const ReferenceContext& ctx, const Dims& input) {
  ctx.check(input.size() >= 3, str("the input must have batch, channels and a spatial axis. Got ", to_string(input)));
  const Window window = read_window(ctx.node(), static_cast<int>(input.size()) - 2);
  PoolSizes sizes{.outer = {input[0], input[1]},
                  .window = window_sizes(ctx, window, window.kernel, {input.begin() + 2, input.end()}),
                  .padded = {}};
  for (int axis = 0; axis < window.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    sizes.padded.push_back(input[i + 2] + window_pad_total(window, axis, window.kernel[i], input[i + 2]));
  }
  return sizes;
}

std::vector<double> sum_windows(const PoolSizes& sizes, const std::vector<double>& x) {
  const int64_t x_plane = element_count(sizes.window.input);
  const int64_t y_plane = element_count(sizes.window.output);
  const int64_t stride = last_stride(sizes);
  auto y = make_scratch<double>(sizes.planes() * y_plane);
  for_each_tap(sizes, [&](int64_t from, int64_t to, int64_t run) {
    for (int64_t plane = 0; plane < sizes.planes(); ++plane) {
      checkpoint();
      const double* source = x.data() + plane * x_plane + from;
      double* target = y.data() + plane * y_plane + to;
      for (int64_t i = 0; i < run; ++i) target[i] += source[i * stride];
    }
  });
  return y;
}

std::vector<double> window_counts(const PoolSizes& sizes, bool include_pad) {
  std::vector<double> counts = {1};
  for (int axis = 0; axis < sizes.window.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    std::vector<double> finer;
    for (const double count : counts) {
      for (int64_t o = 0; o < sizes.window.output[i]; ++o) {
        int64_t below = 0;
        for (int64_t tap = 0; tap < sizes.window.kernel[i]; ++tap) {
          const int64_t padded = o * sizes.window.strides[i] + tap * sizes.window.dilations[i];
          const int64_t position = padded - sizes.window.pads_begin[i];
          below += include_pad ? padded < sizes.padded[i] : position >= 0 && position < sizes.window.input[i];
        }
        finer.push_back(count * static_cast<double>(below));
      }
    }
    counts = std::move(finer);
  }
  return counts;
}

Work pool_work(const Node& node) {
  int64_t taps = 1;
  for (const int64_t size : node.ints_attr("kernel_shape")) taps *= size;
  return {element_count_or_zero(node.output(0)) * Dim(taps), operand_bytes(node)};
}

Work input_work(const Node& node) {
  return {element_count_or_zero(node.input(0)), operand_bytes(node)};
}

void add_pool_ops(OpRegistry& ops) {
  const auto add = [&ops](const char* name, auto infer, auto reference, auto work) {
    ops.add({.name = name, .layout = LayoutClass::Tolerant, .infer = infer, .reference = reference, .work = work});
  };
  ops.add({.name = "MaxPool",
           .max_outputs = 2,
           .layout = LayoutClass::Tolerant,
           .infer = infer_max_pool,
           .reference = reference_max_pool,
           .work = pool_work});
  add("AveragePool", infer_average_pool, reference_average_pool, pool_work);
  add("LpPool", infer_lp_pool, reference_lp_pool, pool_work);
  add("GlobalAveragePool", infer_global, reference_global_average, input_work);
  add("GlobalMaxPool", infer_global, reference_global_max, input_work);
  add("GlobalLpPool", infer_global_lp, reference_global_lp, input_work);
  ops.add({.name = "MaxUnpool",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = infer_max_unpool,
           .reference = reference_max_unpool,
           .shape_inputs = {2}});
}

}  // namespace neo
