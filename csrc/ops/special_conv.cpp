#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/activation.h"
#include "ops/conv.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// DeformConv: the taps of every output element are moved by offsets, and weighted by a mask.

void infer_deform_conv(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) check_same_dtype(ctx, 0, i);
  }
  infer_convolution(ctx, 0, 1, ctx.dtype(0));
  const int64_t offset_group = ctx.node().int_attr("offset_group", 1);
  ctx.check(offset_group >= 1, str("attribute offset_group must be at least 1. Got ", offset_group));
  if (ctx.ranked(0) && ctx.shape(0).rank() >= 2) {
    ctx.require_divides(offset_group, ctx.shape(0)[1], "input channels must be divisible by offset_group");
  }
  if (!ctx.ranked(0) || !ctx.ranked(1)) return;
  infer_channel_vector(ctx, 3, ctx.shape(1)[0], "the bias");
  const int spatial = ctx.shape(1).rank() - 2;
  Dim taps = offset_group;
  for (int axis = 0; axis < spatial; ++axis) taps = taps * ctx.shape(1)[axis + 2];
  const auto check_channels = [&](int input, const Dim& channels, const char* rule) {
    if (!ctx.has_input(input) || !ctx.ranked(input)) return;
    ctx.check_rank(input, spatial + 2);
    ctx.require_equal(ctx.shape(input)[1], channels, rule);
  };
  check_channels(2, taps * Dim(spatial), "offset must have one channel per offset group, tap and axis");
  check_channels(4, taps, "mask must have one channel per offset group and tap");
}

// The input at a fractional position, zero outside, by linear interpolation.
double sample(const double* plane, const Dims& dims, const std::vector<double>& position) {
  const size_t rank = dims.size();
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
    double weight = 1;
    int64_t index = 0;
    bool inside = true;
    for (size_t axis = 0; axis < rank && inside; ++axis) {
      const double low = std::floor(position[axis]);
      const bool upper = (corner >> axis & 1) != 0;
      const double fraction = position[axis] - low;
      const double at = upper ? low + 1 : low;
      weight *= upper ? fraction : 1 - fraction;
      inside = at >= 0 && at < static_cast<double>(dims[axis]);
      if (inside) index = index * dims[axis] + static_cast<int64_t>(at);
    }
    if (inside && weight != 0) sum += weight * plane[index];
  }
  return sum;
}

void reference_deform_conv(ReferenceContext& ctx) {
  const ConvSizes sizes = conv_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  const WindowSizes& window = sizes.window;
  const auto rank = static_cast<int64_t>(window.input.size());
  const int64_t offset_groups = ctx.node().int_attr("offset_group", 1);
  const int64_t channels = sizes.groups * sizes.in_channels;
  const int64_t taps = element_count(window.kernel);
  const int64_t x_plane = element_count(window.input);
  const int64_t y_plane = element_count(window.output);
  ctx.check(channels % offset_groups == 0,
            str("input channels must be divisible by offset_group. Got ", channels, " by ", offset_groups));
  const auto check_size = [&](int input, int64_t per_position) {
    ctx.check(ctx.input(input).size() == sizes.batch * per_position * y_plane,
              str("input ", input, " must fit the offset groups, taps and outputs. Got ",
                  to_string(ctx.input(input).dims())));
  };
  check_size(2, offset_groups * taps * rank);
  if (ctx.has_input(4)) check_size(4, offset_groups * taps);
  const auto x = ctx.doubles(0);
  const auto offset = ctx.doubles(2);
  const auto mask = ctx.has_input(4) ? ctx.doubles(4) : std::vector<double>{};
  // One column per output position: every channel's taps, gathered; then a matrix product with the weights.
  const auto w = ctx.doubles(1);
  const auto bias = ctx.has_input(3) ? ctx.doubles(3) : std::vector<double>{};
  const int64_t out_channels = sizes.groups * sizes.out_channels;
  auto y = make_scratch<double>(sizes.batch * out_channels * y_plane);
  auto column = make_scratch<double>(channels * taps);
  std::vector<double> position(static_cast<size_t>(rank));
  for (int64_t n = 0; n < sizes.batch; ++n) {
    Dims output(static_cast<size_t>(rank));
    for (int64_t o = 0; o < y_plane; ++o, next_index(output, window.output)) {
      Dims tap(static_cast<size_t>(rank));
      for (int64_t t = 0; t < taps; ++t, next_index(tap, window.kernel)) {
        checkpoint();
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t group = n * offset_groups + c / (channels / offset_groups);
          for (int64_t a = 0; a < rank; ++a) {
            const auto i = static_cast<size_t>(a);
            const auto base = static_cast<double>(output[i] * window.strides[i] + tap[i] * window.dilations[i] -
                                                  window.pads_begin[i]);
            position[i] = base + offset[static_cast<size_t>(((group * taps + t) * rank + a) * y_plane + o)];
          }
          double value = sample(x.data() + (n * channels + c) * x_plane, window.input, position);
          if (!mask.empty()) value *= mask[static_cast<size_t>((group * taps + t) * y_plane + o)];
          column[static_cast<size_t>(c * taps + t)] = value;
        }
      }
      for (int64_t oc = 0; oc < out_channels; ++oc) {
        const int64_t depth = sizes.in_channels * taps;
        const double* source = column.data() + oc / sizes.out_channels * depth;
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(oc)];
        for (int64_t i = 0; i < depth; ++i) sum += source[i] * w[static_cast<size_t>(oc * depth + i)];
        y[static_cast<size_t>((n * out_channels + oc) * y_plane + o)] = sum;
      }
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), y);
}

Work deform_conv_work(const Node& node) {
  return convolution_work(node, 1);
}

// CausalConvWithState: one kernel per channel over the last axis, which continues a state of k - 1 elements.

void infer_causal_conv(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  const std::string activation = ctx.node().string_attr("activation", "none");
  ctx.check(activation == "none" || activation == "silu" || activation == "swish",
            str("attribute activation must be none, silu or swish. Got \"", activation, "\""));
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) check_same_dtype(ctx, 0, i);
  }
  for (const int i : {0, 1, 3}) {
    if (ctx.has_input(i)) ctx.check_rank(i, 3);
  }
  ctx.set_output(0, ctx.dtype(0), ctx.shape(0));
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(1, ctx.dtype(0), Shape());
  const Dim& channels = ctx.shape(0)[1];
  const Dim state = ctx.shape(1)[2] - 1;
  ctx.require_equal(ctx.shape(1)[0], channels, "the kernel must have one row per channel");
  ctx.require_equal(ctx.shape(1)[1], 1, "the kernel must be depthwise");
  ctx.require_less_equal(0, state, "the kernel must have a tap");
  infer_channel_vector(ctx, 2, channels, "the bias");
  if (ctx.has_input(3) && ctx.ranked(3)) {
    ctx.require_equal(ctx.shape(3)[0], ctx.shape(0)[0], "past_state must have the batch of the input");
    ctx.require_equal(ctx.shape(3)[1], channels, "past_state must have the channels of the input");
    ctx.require_equal(ctx.shape(3)[2], state, "past_state must hold one element less than the kernel");
  }
  ctx.set_output(1, ctx.dtype(0), Shape({ctx.shape(0)[0], channels, state}));
}

void reference_causal_conv(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const Dims w_dims = ctx.input(1).dims();
  ctx.check(dims.size() == 3 && w_dims.size() == 3 && w_dims[0] == dims[1] && w_dims[1] == 1 && w_dims[2] >= 1,
            str("input and kernel must agree. Got ", to_string(dims), " and ", to_string(w_dims)));
  const int64_t length = dims[2];
  const int64_t kernel = w_dims[2];
  const int64_t history = kernel - 1;
  const Dims state_dims = {dims[0], dims[1], history};
  const auto x = ctx.doubles(0);
  const auto w = ctx.doubles(1);
  auto past = make_scratch<double>(element_count(state_dims));
  if (ctx.has_input(3)) {
    ctx.check(ctx.input(3).dims() == state_dims,
              str("past_state must have dims ", to_string(state_dims), ". Got ", to_string(ctx.input(3).dims())));
    past = ctx.doubles(3);
  }
  const auto bias = ctx.has_input(2) ? ctx.doubles(2) : std::vector<double>(static_cast<size_t>(dims[1]));
  const bool swish = ctx.node().string_attr("activation", "none") != "none";
  std::vector<double> y(x.size());
  auto line = make_scratch<double>(history + length);
  for (int64_t row = 0; row < dims[0] * dims[1]; ++row) {
    const auto channel = static_cast<size_t>(row % dims[1]);
    std::copy_n(past.begin() + row * history, history, line.begin());
    std::copy_n(x.begin() + row * length, length, line.begin() + history);
    for (int64_t i = 0; i < length; ++i) {
      checkpoint();
      double sum = bias[channel];
      for (int64_t t = 0; t < kernel; ++t) {
        sum += line[static_cast<size_t>(i + t)] * w[channel * static_cast<size_t>(kernel) + static_cast<size_t>(t)];
      }
      y[static_cast<size_t>(row * length + i)] = swish ? sum * sigmoid(sum) : sum;
    }
    std::copy_n(line.end() - history, history, past.begin() + row * history);
  }
  const DType dtype = ctx.input(0).dtype();
  store_doubles(ctx.output(0, dtype, dims), y);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, dtype, state_dims), past);
}

Work causal_conv_work(const Node& node) {
  return convolution_work(node, 1);
}

}  // namespace

void add_special_conv_ops(OpRegistry& ops) {
  ops.add({.name = "DeformConv",
           .min_inputs = 3,
           .max_inputs = 5,
           .infer = infer_deform_conv,
           .reference = reference_deform_conv,
           .work = deform_conv_work});
  ops.add({.name = "CausalConvWithState",
           .min_inputs = 2,
           .max_inputs = 4,
           .max_outputs = 2,
           .infer = infer_causal_conv,
           .reference = reference_causal_conv,
           .work = causal_conv_work});
}

}  // namespace neo
