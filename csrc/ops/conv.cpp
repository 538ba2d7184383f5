#include "ops/conv.h"

#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/activation.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

int64_t read_group(const Node& node) {
  const int64_t group = node.int_attr("group", 1);
  NEO_CHECK(group >= 1, Model, node.op, "attribute group must be at least 1. Got ", group, " - at ", node.place());
  return group;
}

Dims spatial_dims(const Dims& dims) {
  return {dims.begin() + 2, dims.end()};
}

int64_t count(const Dims& dims) {
  return element_count(dims);
}

// Checks kernel_shape against the weights, whose spatial axes it repeats.
void check_kernel_shape(const ReferenceContext& ctx, const Window& window, const Dims& weights) {
  ctx.check(window.kernel.empty() || window.kernel == spatial_dims(weights),
            str("kernel_shape must be that of the weights. Got ", to_string(window.kernel), " and weights of ",
                to_string(weights)));
}

// elements[n][c][...] += bias[c]
void add_bias(const ReferenceContext& ctx, int input, int64_t batch, int64_t channels, std::vector<double>& elements) {
  if (!ctx.has_input(input)) return;
  const auto bias = ctx.doubles(input);
  ctx.check(static_cast<int64_t>(bias.size()) == channels,
            str("the bias must have one element per output channel. Got ", bias.size(), ", expected ", channels));
  if (elements.empty()) return;
  const int64_t plane = static_cast<int64_t>(elements.size()) / (batch * channels);
  auto element = elements.begin();
  for (int64_t i = 0; i < batch * channels; ++i) {
    for (int64_t j = 0; j < plane; ++j) *element++ += bias[static_cast<size_t>(i % channels)];
  }
}

// Conv

void infer_conv(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_same_dtype(ctx, 0, 1);
  infer_convolution(ctx, 0, 1, ctx.dtype(0));
  if (ctx.ranked(1)) infer_channel_vector(ctx, 2, ctx.shape(1)[0], "the bias");
}

std::vector<double> convolve_inputs(ReferenceContext& ctx, const ConvSizes& sizes) {
  auto y = convolve(sizes, ctx.doubles(0), ctx.doubles(1));
  add_bias(ctx, 2, sizes.batch, sizes.groups * sizes.out_channels, y);
  return y;
}

void reference_conv(ReferenceContext& ctx) {
  const ConvSizes sizes = conv_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  auto y = convolve_inputs(ctx, sizes);
  clamp_result(ctx.node(), y);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), y);
}

Work conv_work(const Node& node) {
  return convolution_work(node, 1);
}

// com.microsoft.FusedConv: activation(convolution + bias + Z)

NamedActivation fused_activation(const Node& node) {
  return {node, node.string_attr("activation", ""), node.floats_attr("activation_params")};
}

void infer_fused_conv(InferContext& ctx) {
  infer_conv(ctx);
  fused_activation(ctx.node());
}

void reference_fused_conv(ReferenceContext& ctx) {
  const ConvSizes sizes = conv_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  auto y = convolve_inputs(ctx, sizes);
  if (ctx.has_input(3)) {
    const auto z = broadcast_doubles(ctx, 3, sizes.output_dims());
    for (size_t i = 0; i < y.size(); ++i) y[i] += z[i];
  }
  const NamedActivation activation = fused_activation(ctx.node());
  std::transform(y.begin(), y.end(), y.begin(), activation);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), y);
}

// ConvTranspose

Dim transposed_natural(const Window& window, const std::vector<int64_t>& output_padding, int axis, const Dim& kernel,
                       const Dim& input) {
  const auto i = static_cast<size_t>(axis);
  return Dim(window.strides[i]) * (input - 1) + Dim(output_padding[i]) + window_extent(window, axis, kernel);
}

struct TransposedAttributes {
  Window window;
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape;  // empty: computed

  Dim output(int axis, const Dim& kernel, const Dim& input) const {
    const auto i = static_cast<size_t>(axis);
    if (!output_shape.empty()) return output_shape[i];
    switch (window.auto_pad) {
      case AutoPad::SameUpper:
      case AutoPad::SameLower:
        return input * Dim(window.strides[i]);
      case AutoPad::NotSet:
        break;
    }
    return transposed_natural(window, output_padding, axis, kernel, input) - Dim(window.pads[i]) -
           Dim(window.pads[i + window.strides.size()]);
  }

  int64_t pad_begin(int axis, int64_t kernel, int64_t input) const {
    const auto i = static_cast<size_t>(axis);
    const bool same = window.auto_pad == AutoPad::SameUpper || window.auto_pad == AutoPad::SameLower;
    if (output_shape.empty() && !same) return window.pads[i];
    const Dim whole = transposed_natural(window, output_padding, axis, kernel, input);
    const int64_t total = std::max<int64_t>(0, (whole - output(axis, kernel, input)).value());
    return window.auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
  }
};

TransposedAttributes read_transposed(const Node& node, int spatial_rank) {
  TransposedAttributes attributes{.window = read_window(node, spatial_rank),
                                  .output_padding = node.ints_attr("output_padding"),
                                  .output_shape = node.ints_attr("output_shape")};
  if (attributes.output_padding.empty()) attributes.output_padding.assign(static_cast<size_t>(spatial_rank), 0);
  NEO_CHECK(static_cast<int>(attributes.output_padding.size()) == spatial_rank, Model, node.op,
            "attribute output_padding must have one value per spatial axis. Got ", attributes.output_padding.size(),
            ", expected ", spatial_rank, " - at ", node.place());
  // Exporters give batch and channels too.
  if (static_cast<int>(attributes.output_shape.size()) == spatial_rank + 2) {
    attributes.output_shape.erase(attributes.output_shape.begin(), attributes.output_shape.begin() + 2);
  }
  NEO_CHECK(attributes.output_shape.empty() || static_cast<int>(attributes.output_shape.size()) == spatial_rank, Model,
            node.op, "attribute output_shape must have one value per spatial axis. Got ",
            attributes.output_shape.size(), ", expected ", spatial_rank, " - at ", node.place());
  return attributes;
}

void infer_conv_transpose(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_same_dtype(ctx, 0, 1);
  if (!ctx.ranked(0) && ctx.ranked(1)) ctx.check_rank(0, ctx.shape(1).rank());
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape& x = ctx.shape(0);
  const Shape& w = ctx.shape(1);
  ctx.check(x.rank() >= 2 && w.rank() == x.rank(),
            str("input and weights must have one rank of at least 2. Got ", x.to_string(), " and ", w.to_string()));
  const int64_t group = read_group(ctx.node());
  const auto attributes = read_transposed(ctx.node(), x.rank() - 2);
  ctx.require_equal(x[1], w[0], "input channels must be the first size of the weights");
  ctx.require_divides(group, x[1], "input channels must be divisible by group");
  std::vector<Dim> dims = {x[0], w[1] * Dim(group)};
  infer_channel_vector(ctx, 2, dims[1], "the bias");
  for (int axis = 0; axis < x.rank() - 2; ++axis) {
    const auto& kernel = attributes.window.kernel;
    if (!kernel.empty()) {
      ctx.require_equal(w[axis + 2], kernel[static_cast<size_t>(axis)], "kernel_shape must be that of the weights");
    }
    dims.push_back(attributes.output(axis, w[axis + 2], x[axis + 2]));
    ctx.require_less_equal(0, dims.back(), "an output size must not be negative");
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_conv_transpose(ReferenceContext& ctx) {
  const Dims x_dims = ctx.input(0).dims();
  const Dims w_dims = ctx.input(1).dims();
  ctx.check(x_dims.size() >= 2 && w_dims.size() == x_dims.size() && x_dims[1] == w_dims[0],
            str("input and weights must agree. Got ", to_string(x_dims), " and ", to_string(w_dims)));
  const int64_t group = read_group(ctx.node());
  ctx.check(x_dims[1] % group == 0, str("input channels must be divisible by group. Got ", x_dims[1], " by ", group));
  const int rank = static_cast<int>(x_dims.size()) - 2;
  const auto attributes = read_transposed(ctx.node(), rank);
  check_kernel_shape(ctx, attributes.window, w_dims);
  // The convolution that this is the transpose of: it reads the output here and writes the input.
  WindowSizes sizes{.input = {},
                    .kernel = spatial_dims(w_dims),
                    .output = spatial_dims(x_dims),
                    .strides = attributes.window.strides,
                    .dilations = attributes.window.dilations,
                    .pads_begin = {}};
  Dims dims = {x_dims[0], w_dims[1] * group};
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t kernel = w_dims[static_cast<size_t>(axis) + 2];
    const int64_t input = x_dims[static_cast<size_t>(axis) + 2];
    dims.push_back(attributes.output(axis, kernel, input).value());
    sizes.input.push_back(dims.back());
    sizes.pads_begin.push_back(attributes.pad_begin(axis, kernel, input));
  }
  const int64_t in_channels = x_dims[1] / group;
  const int64_t out_channels = w_dims[1];
  const int64_t x_plane = count(sizes.output);
  const int64_t y_plane = count(sizes.input);
  const int64_t taps = count(sizes.kernel);
  const int64_t stride = rank == 0 ? 1 : sizes.strides.back();
  const auto x = ctx.doubles(0);
  const auto w = ctx.doubles(1);
  auto y = make_scratch<double>(count(dims));
  Dims tap(static_cast<size_t>(rank));
  for (int64_t t = 0; t < taps; ++t, next_index(tap, sizes.kernel)) {
    for_each_run(sizes, tap, [&](int64_t to, int64_t from, int64_t run) {
      for (int64_t n = 0; n < x_dims[0]; ++n) {
        for (int64_t ic = 0; ic < x_dims[1]; ++ic) {
          checkpoint();
          const double* source = x.data() + (n * x_dims[1] + ic) * x_plane + from;
          for (int64_t oc = 0; oc < out_channels; ++oc) {
            const double weight = w[static_cast<size_t>((ic * out_channels + oc) * taps + t)];
            double* target = y.data() + (n * dims[1] + ic / in_channels * out_channels + oc) * y_plane + to;
            for (int64_t i = 0; i < run; ++i) target[i * stride] += source[i] * weight;
          }
        }
      }
    });
  }
  add_bias(ctx, 2, dims[0], dims[1], y);
  clamp_result(ctx.node(), y);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), y);
}

Work conv_transpose_work(const Node& node) {
  const Value* x = node.input(0);
  const Value* w = node.input(1);
  if (!x || !w || !x->shape().has_rank() || !w->shape().has_rank()) return {0, operand_bytes(node)};
  Dim per_input = w->shape()[1];
  for (int axis = 2; axis < w->shape().rank(); ++axis) per_input = per_input * w->shape()[axis];
  return {Dim(2) * x->shape().element_count() * per_input, operand_bytes(node)};
}

}  // namespace

void infer_channel_vector(InferContext& ctx, int input, const Dim& channels, std::string_view what) {
  if (!ctx.has_input(input) || !ctx.ranked(input)) return;
  ctx.check_rank(input, 1);
  ctx.require_equal(ctx.shape(input)[0], channels, str(what, " must have one element per output channel"));
}

void infer_convolution(InferContext& ctx, int x_input, int w_input, DType output) {
  if (!ctx.ranked(x_input) && ctx.ranked(w_input)) ctx.check_rank(x_input, ctx.shape(w_input).rank());
  if (!ctx.ranked(x_input) || !ctx.ranked(w_input)) return ctx.set_output(0, output, Shape());
  const Shape& x = ctx.shape(x_input);
  const Shape& w = ctx.shape(w_input);
  ctx.check(x.rank() >= 2 && w.rank() == x.rank(),
            str("input and weights must have one rank of at least 2. Got ", x.to_string(), " and ", w.to_string()));
  const Window window = read_window(ctx.node(), x.rank() - 2);
  const int64_t group = read_group(ctx.node());
  ctx.require_equal(x[1], w[1] * Dim(group), "input channels must be group times the channels of the weights");
  ctx.require_divides(group, w[0], "output channels must be divisible by group");
  std::vector<Dim> dims = {x[0], w[0]};
  for (int axis = 0; axis < x.rank() - 2; ++axis) {
    const Dim& kernel = w[axis + 2];
    if (!window.kernel.empty()) {
      ctx.require_equal(kernel, window.kernel[static_cast<size_t>(axis)], "kernel_shape must be that of the weights");
    }
    dims.push_back(window_output(window, axis, kernel, x[axis + 2]));
    ctx.require_less_equal(0, dims.back(), "the window must fit into the padded input");
  }
  ctx.set_output(0, output, Shape(std::move(dims)));
}

Dims ConvSizes::output_dims() const {
  Dims dims = {batch, groups * out_channels};
  dims.insert(dims.end(), window.output.begin(), window.output.end());
  return dims;
}

ConvSizes conv_sizes(const ReferenceContext& ctx, const Dims& x, const Dims& w) {
  ConvSizes sizes;
  sizes.groups = read_group(ctx.node());
  ctx.check(
      x.size() >= 2 && w.size() == x.size() && x[1] == w[1] * sizes.groups && w[0] % sizes.groups == 0,
      str("input, weights and group must agree. Got ", to_string(x), ", ", to_string(w), " and group ", sizes.groups));
  const Window window = read_window(ctx.node(), static_cast<int>(x.size()) - 2);
  check_kernel_shape(ctx, window, w);
  sizes.batch = x[0];
  sizes.in_channels = w[1];
  sizes.out_channels = w[0] / sizes.groups;
  sizes.window = window_sizes(ctx, window, spatial_dims(w), spatial_dims(x));
  return sizes;
}

template <class T>
std::vector<T> convolve(const ConvSizes& sizes, const std::vector<T>& x, const std::vector<T>& w) {
  const WindowSizes& window = sizes.window;
  const int64_t x_plane = count(window.input);
  const int64_t y_plane = count(window.output);
  const int64_t taps = count(window.kernel);
  const int64_t stride = window.rank() == 0 ? 1 : window.strides.back();
  const int64_t channels = sizes.groups * sizes.out_channels;
  auto y = make_scratch<T>(sizes.batch * channels * y_plane);
  Dims tap(window.kernel.size());
  for (int64_t t = 0; t < taps; ++t, next_index(tap, window.kernel)) {
    for_each_run(window, tap, [&](int64_t from, int64_t to, int64_t run) {
      for (int64_t plane = 0; plane < sizes.batch * channels; ++plane) {
        const int64_t oc = plane % channels;
        const int64_t first =
            plane / channels * sizes.groups * sizes.in_channels + oc / sizes.out_channels * sizes.in_channels;
        T* target = y.data() + plane * y_plane + to;
        for (int64_t ic = 0; ic < sizes.in_channels; ++ic) {
          checkpoint();
          const T weight = w[static_cast<size_t>((oc * sizes.in_channels + ic) * taps + t)];
          const T* source = x.data() + (first + ic) * x_plane + from;
          for (int64_t i = 0; i < run; ++i) target[i] += source[i * stride] * weight;
        }
      }
    });
  }
  return y;
}

template std::vector<double> convolve(const ConvSizes&, const std::vector<double>&, const std::vector<double>&);
template std::vector<int64_t> convolve(const ConvSizes&, const std::vector<int64_t>&, const std::vector<int64_t>&);

Work convolution_work(const Node& node, size_t w_input) {
  const Value* w = node.input(w_input);
  if (!w || !w->shape().has_rank()) return {0, operand_bytes(node)};
  Dim per_output = 1;
  for (int axis = 1; axis < w->shape().rank(); ++axis) per_output = per_output * w->shape()[axis];
  return {Dim(2) * element_count_or_zero(node.output(0)) * per_output, operand_bytes(node)};
}

void clamp_result(const Node& node, std::vector<double>& elements) {
  if (!node.has_attr("clamp_min") && !node.has_attr("clamp_max")) return;
  const double low = node.float_attr("clamp_min", -HUGE_VAL);
  const double high = node.float_attr("clamp_max", HUGE_VAL);
  for (double& x : elements) x = x < low ? low : x > high ? high : x;
}

void add_conv_ops(OpRegistry& ops) {
  ops.add({.name = "Conv",
           .min_inputs = 2,
           .max_inputs = 3,
           .layout = LayoutClass::Tolerant,
           .infer = infer_conv,
           .reference = reference_conv,
           .work = conv_work});
  ops.add({.name = "com.microsoft.FusedConv",
           .min_inputs = 2,
           .max_inputs = 4,
           .layout = LayoutClass::Tolerant,
           .infer = infer_fused_conv,
           .reference = reference_fused_conv,
           .work = conv_work});
  ops.add({.name = "ConvTranspose",
           .min_inputs = 2,
           .max_inputs = 3,
           .layout = LayoutClass::Tolerant,
           .infer = infer_conv_transpose,
           .reference = reference_conv_transpose,
           .work = conv_transpose_work});
}

}  // namespace neo
