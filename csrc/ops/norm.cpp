#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/pool.h"
#include "ops/sizes.h"

namespace neo {

namespace {

constexpr double kDefaultEpsilon = 1e-5f;

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population
};

// The moments of elements that lie `step` apart.
Moments moments(const double* x, int64_t count, int64_t step = 1) {
  Moments result;
  for (int64_t i = 0; i < count; ++i) result.mean += x[i * step];
  result.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double d = x[i * step] - result.mean;
    result.variance += d * d;
  }
  result.variance /= static_cast<double>(count);
  return result;
}

Work norm_work(const Node& node) {
  return {Dim(5) * element_count_or_zero(node.input(0)), operand_bytes(node)};
}

void check_channels(InferContext& ctx, int input, const Dim& channels) {
  if (!ctx.has_input(input) || !ctx.ranked(input)) return;
  ctx.check_rank(input, 1);
  ctx.require_equal(ctx.shape(input)[0], channels, "scale, bias and statistics must have one element per channel");
}

std::vector<double> channel_doubles(const ReferenceContext& ctx, int input, int64_t channels) {
  auto elements = ctx.doubles(input);
  ctx.check(static_cast<int64_t>(elements.size()) == channels,
            str("input ", input, " must have one element per channel. Got ", elements.size(), ", expected ", channels));
  return elements;
}

// BatchNormalization

void infer_batch_norm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  Dim channels = 1;
  const bool known = ctx.ranked(0) && ctx.shape(0).rank() >= 1;
  if (known && ctx.shape(0).rank() >= 2) channels = ctx.shape(0)[1];
  for (int i = 1; known && i < 5; ++i) check_channels(ctx, i, channels);
  const bool training = ctx.node().int_attr("training_mode", 0) != 0;
  ctx.check(training || (!ctx.has_output(1) && !ctx.has_output(2)),
            "only training_mode = 1 gives running statistics. Got training_mode = 0 and more than one output");
  for (int i = 1; i <= 2; ++i) ctx.set_output(i, ctx.dtype(i + 2), ctx.shape(i + 2));
}

void reference_batch_norm(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const int64_t channels = dims.size() < 2 ? 1 : dims[1];
  const AxisView view = dims.size() < 2 ? AxisView({1, 1, element_count(dims)}, 1) : AxisView(dims, 1);
  const double epsilon = ctx.node().float_attr("epsilon", kDefaultEpsilon);
  auto x = ctx.doubles(0);
  const auto scale = channel_doubles(ctx, 1, channels);
  const auto bias = channel_doubles(ctx, 2, channels);
  auto mean = channel_doubles(ctx, 3, channels);
  auto variance = channel_doubles(ctx, 4, channels);
  std::vector<double> running_mean = mean;
  std::vector<double> running_variance = variance;
  if (ctx.node().int_attr("training_mode", 0) != 0) {
    const double momentum = ctx.node().float_attr("momentum", 0.9f);
    auto channel = make_scratch<double>(view.outer * view.inner);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t o = 0; o < view.outer; ++o) {
        std::copy_n(x.begin() + (o * channels + c) * view.inner, view.inner, channel.begin() + o * view.inner);
      }
      const Moments current = moments(channel.data(), static_cast<int64_t>(channel.size()));
      const auto i = static_cast<size_t>(c);
      running_mean[i] = mean[i] * momentum + current.mean * (1 - momentum);
      running_variance[i] = variance[i] * momentum + current.variance * (1 - momentum);
      mean[i] = current.mean;
      variance[i] = current.variance;
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / static_cast<size_t>(view.inner) % static_cast<size_t>(channels);
    x[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + bias[c];
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, ctx.input(3).dtype(), {channels}), running_mean);
  if (ctx.has_output(2)) store_doubles(ctx.output(2, ctx.input(4).dtype(), {channels}), running_variance);
}

// InstanceNormalization and GroupNormalization: mean and variance of groups of channels of one instance

void infer_group_norm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  const bool instance = ctx.node().op == "InstanceNormalization";
  const int64_t groups = ctx.node().int_attr("num_groups", 0);
  ctx.check(instance || groups >= 1, str("attribute num_groups must be at least 1. Got ", groups));
  if (!ctx.ranked(0)) return;
  ctx.check(ctx.shape(0).rank() >= 2, str("the input must have batch and channels. Got ", ctx.shape(0).to_string()));
  const Dim& channels = ctx.shape(0)[1];
  if (!instance) ctx.require_divides(groups, channels, "channels must be divisible by num_groups");
  for (const int i : {1, 2}) check_channels(ctx, i, channels);
}

void reference_group_norm(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  ctx.check(dims.size() >= 2, str("the input must have batch and channels. Got ", to_string(dims)));
  const int64_t channels = dims[1];
  const int64_t groups = ctx.node().op == "InstanceNormalization" ? channels : ctx.node().int_attr("num_groups", 1);
  ctx.check(channels == 0 || (groups > 0 && channels % groups == 0),
            str("channels must be divisible by num_groups. Got ", channels, " by ", groups));
  const double epsilon = ctx.node().float_attr("epsilon", kDefaultEpsilon);
  auto x = ctx.doubles(0);
  const auto scale = channel_doubles(ctx, 1, channels);
  const auto bias = channel_doubles(ctx, 2, channels);
  const int64_t plane = AxisView(dims, 1).inner;
  const int64_t size = channels == 0 ? 0 : channels / groups * plane;
  for (int64_t group = 0; size > 0 && group < dims[0] * groups; ++group) {
    double* elements = x.data() + group * size;
    const Moments m = moments(elements, size);
    const double deviation = std::sqrt(m.variance + epsilon);
    for (int64_t i = 0; i < size; ++i) {
      const auto c = static_cast<size_t>(group % groups * (channels / groups) + i / plane);
      elements[i] = (elements[i] - m.mean) / deviation * scale[c] + bias[c];
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
}

// LpNormalization

void infer_lp_norm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  const int64_t p = ctx.node().int_attr("p", 2);
  ctx.check(p == 1 || p == 2, str("attribute p must be 1 or 2. Got ", p));
  if (ctx.ranked(0)) ctx.axis(ctx.node().int_attr("axis", -1), ctx.shape(0).rank());
}

void reference_lp_norm(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const AxisView view(dims, ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size())));
  const int64_t p = ctx.node().int_attr("p", 2);
  auto x = ctx.doubles(0);
  for (int64_t line = 0; line < view.lines(); ++line) {
    double* elements = x.data() + view.start(line);
    double sum = 0;
    for (int64_t i = 0; i < view.size; ++i) {
      const double element = elements[i * view.inner];
      sum += p == 1 ? std::fabs(element) : element * element;
    }
    const double norm = p == 1 ? sum : std::sqrt(sum);
    for (int64_t i = 0; i < view.size; ++i) elements[i * view.inner] = norm == 0 ? 0 : elements[i * view.inner] / norm;
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
}

// LRN

void infer_lrn(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  const int64_t size = ctx.node().int_attr("size", 0);
  ctx.check(size >= 1 && size <= kMaxExtent, str("attribute size must be 1 to ", kMaxExtent, ". Got ", size));
  if (ctx.ranked(0)) {
    ctx.check(ctx.shape(0).rank() >= 2, str("the input must have batch and channels. Got ", ctx.shape(0).to_string()));
  }
}

void reference_lrn(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const AxisView view(dims, 1);
  const int64_t size = ctx.node().int_attr("size", 1);
  const double alpha = ctx.node().float_attr("alpha", 1e-4f);
  const double beta = ctx.node().float_attr("beta", 0.75);
  const double bias = ctx.node().float_attr("bias", 1.0);
  const auto x = ctx.doubles(0);
  std::vector<double> y(x.size());
  for (int64_t line = 0; line < view.lines(); ++line) {
    const double* elements = x.data() + view.start(line);
    for (int64_t c = 0; c < view.size; ++c) {
      const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
      const int64_t last = std::min(view.size - 1, c + size / 2);
      double sum = 0;
      for (int64_t i = first; i <= last; ++i) sum += elements[i * view.inner] * elements[i * view.inner];
      y[static_cast<size_t>(view.start(line) + c * view.inner)] =
          elements[c * view.inner] / std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), y);
}

Work lrn_work(const Node& node) {
  const Dim elements = element_count_or_zero(node.input(0));
  return {elements * Dim(2 * node.int_attr("size", 1) + 10), operand_bytes(node)};
}

// MeanVarianceNormalization. The default axes are those of an image; of another rank those of them that there are, as
// ONNX Runtime has it.

std::vector<int64_t> mvn_axes(const Node& node, int rank) {
  if (node.has_attr("axes")) return node.ints_attr("axes");
  std::vector<int64_t> axes;
  for (const int64_t axis : {0, 2, 3}) {
    if (axis < rank) axes.push_back(axis);
  }
  return axes;
}

void infer_mvn(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  if (!ctx.ranked(0)) return;
  for (const int64_t axis : mvn_axes(ctx.node(), ctx.shape(0).rank())) ctx.axis(axis, ctx.shape(0).rank());
}

void reference_mvn(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  Dims kept = dims;
  for (const int64_t axis : mvn_axes(ctx.node(), static_cast<int>(dims.size()))) {
    kept[static_cast<size_t>(ctx.axis(axis, static_cast<int>(dims.size())))] = 1;
  }
  // The statistics that every element belongs to.
  const auto group = broadcast_indices(ctx, kept, dims);
  const auto groups = static_cast<size_t>(element_count(kept));
  std::vector<double> mean(groups);
  std::vector<double> variance(groups);
  auto x = ctx.doubles(0);
  const double count = groups == 0 ? 0 : static_cast<double>(x.size() / groups);
  for (size_t i = 0; i < x.size(); ++i) mean[static_cast<size_t>(group[i])] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - mean[static_cast<size_t>(group[i])];
    variance[static_cast<size_t>(group[i])] += d * d / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto g = static_cast<size_t>(group[i]);
    x[i] = (x[i] - mean[g]) / (std::sqrt(variance[g]) + 1e-9);
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
}

}  // namespace

void add_norm_ops(OpRegistry& ops) {
  ops.add({.name = "BatchNormalization",
           .min_inputs = 5,
           .max_inputs = 5,
           .max_outputs = 3,
           .layout = LayoutClass::Tolerant,
           .infer = infer_batch_norm,
           .reference = reference_batch_norm,
           .work = norm_work});
  for (const char* name : {"InstanceNormalization", "GroupNormalization"}) {
    ops.add({.name = name,
             .min_inputs = 3,
             .max_inputs = 3,
             .layout = LayoutClass::Tolerant,
             .infer = infer_group_norm,
             .reference = reference_group_norm,
             .work = norm_work});
  }
  ops.add({.name = "LpNormalization", .infer = infer_lp_norm, .reference = reference_lp_norm, .work = norm_work});
  ops.add({.name = "LRN",
           .layout = LayoutClass::Tolerant,
           .infer = infer_lrn,
           .reference = reference_lrn,
           .work = lrn_work});
  ops.add({.name = "MeanVarianceNormalization", .infer = infer_mvn, .reference = reference_mvn, .work = norm_work});
}

}  // namespace neo
