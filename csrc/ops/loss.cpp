#include "ops/loss.h"

#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

enum class LossReduction : uint8_t { None, Sum, Mean };

LossReduction loss_reduction(const Node& node) {
  const std::string text = node.string_attr("reduction", "mean");
  if (text == "none") return LossReduction::None;
  if (text == "sum") return LossReduction::Sum;
  NEO_CHECK(text == "mean", Model, node.op, "reduction must be none, sum or mean. Got \"", text, "\" - at ",
            node.place());
  return LossReduction::Mean;
}

void infer_loss(InferContext& ctx) {
  if (ctx.ranked(0) && ctx.ranked(1)) {
    const Shape& scores = ctx.shape(0);
    const Shape& labels = ctx.shape(1);
    ctx.check(
        scores.rank() >= 2 && labels.rank() == scores.rank() - 1,
        str("scores must be [N,C,...] and labels [N,...]. Got ", scores.to_string(), " and ", labels.to_string()));
    for (int i = 0; i < labels.rank(); ++i) {
      ctx.require_equal(labels[i], scores[i == 0 ? 0 : i + 1],
                        "scores and labels must agree on all axes but the classes");
    }
    if (ctx.ranked(2)) {
      ctx.check_rank(2, 1);
      ctx.require_equal(ctx.shape(2)[0], scores[1], "there must be one weight per class");
    }
  }
  ctx.set_output(0, ctx.dtype(0), loss_reduction(ctx.node()) == LossReduction::None ? ctx.shape(1) : Shape::of({}));
  if (ctx.output_count() > 1) ctx.set_output(1, ctx.dtype(0), ctx.shape(0));
}

struct ClassDims {
  int64_t batches;
  int64_t classes;
  int64_t inner;
};

ClassDims class_dims(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  ctx.check(dims.size() >= 2, str("scores must be [N,C,...]. Got ", to_string(dims)));
  const ClassDims result{dims[0], dims[1], count_between(dims, 2, static_cast<int>(dims.size()))};
  ctx.check(ctx.input(1).size() == result.batches * result.inner,
            str("scores and labels must agree on all axes but the classes. Got ", to_string(dims), " and ",
                to_string(ctx.input(1).dims())));
  return result;
}

}  // namespace

void write_loss(ReferenceContext& ctx, const std::function<double(int64_t i)>& log_probability) {
  const ClassDims d = class_dims(ctx);
  const auto labels = ctx.ints(1);
  const bool ignores = ctx.node().has_attr("ignore_index");
  const int64_t ignored = ctx.node().int_attr("ignore_index", 0);
  const auto weights = ctx.has_input(2) ? ctx.doubles(2) : std::vector<double>(static_cast<size_t>(d.classes), 1.0);
  ctx.check(static_cast<int64_t>(weights.size()) == d.classes,
            str("there must be one weight per class. Got ", weights.size(), ", expected ", d.classes));
  std::vector<double> losses(labels.size(), 0.0);
  double sum = 0;
  double weight_sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (ignores && labels[i] == ignored) continue;
    // A message takes longer to make than a loss.
    if (labels[i] < 0 || labels[i] >= d.classes) {
      ctx.fail(ErrorKind::Shape, str("a label must be a class. Got ", labels[i], ", expected 0 to ", d.classes - 1));
    }
    const auto at = static_cast<int64_t>(i);
    const int64_t from = (at / d.inner * d.classes + labels[i]) * d.inner + at % d.inner;
    const double weight = weights[static_cast<size_t>(labels[i])];
    losses[i] = -log_probability(from) * weight;
    sum += losses[i];
    weight_sum += weight;
  }
  const LossReduction reduction = loss_reduction(ctx.node());
  if (!ctx.has_output(0)) return;
  const DType dtype = ctx.input(0).dtype();
  if (reduction == LossReduction::None) return store_doubles(ctx.output(0, dtype, ctx.input(1).dims()), losses);
  const double loss = reduction == LossReduction::Sum ? sum : sum / weight_sum;
  store_doubles(ctx.output(0, dtype, {}), std::span(&loss, 1));
}

namespace {

// write_loss() of log probabilities that are all there.
void write_loss_of(ReferenceContext& ctx, const std::vector<double>& log_probabilities) {
  write_loss(ctx, [&](int64_t i) { return log_probabilities[static_cast<size_t>(i)]; });
}

void reference_negative_log_likelihood_loss(ReferenceContext& ctx) {
  write_loss_of(ctx, ctx.doubles(0));
}

void reference_softmax_cross_entropy_loss(ReferenceContext& ctx) {
  const ClassDims d = class_dims(ctx);
  auto values = ctx.doubles(0);
  for (int64_t b = 0; b < d.batches; ++b) {
    for (int64_t i = 0; i < d.inner && d.classes > 0; ++i) {
      double* column = values.data() + b * d.classes * d.inner + i;
      double largest = column[0];
      for (int64_t c = 1; c < d.classes; ++c) largest = std::max(largest, column[c * d.inner]);
      double sum = 0;
      for (int64_t c = 0; c < d.classes; ++c) sum += std::exp(column[c * d.inner] - largest);
      const double shift = largest + std::log(sum);
      for (int64_t c = 0; c < d.classes; ++c) column[c * d.inner] -= shift;
    }
  }
  write_loss_of(ctx, values);
  if (ctx.output_count() > 1 && ctx.has_output(1))
    store_doubles(ctx.output(1, ctx.input(0).dtype(), ctx.input(0).dims()), values);
}

}  // namespace

void add_loss_ops(OpRegistry& ops) {
  ops.add({.name = "NegativeLogLikelihoodLoss",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = infer_loss,
           .reference = reference_negative_log_likelihood_loss});
  ops.add({.name = "SoftmaxCrossEntropyLoss",
           .min_inputs = 2,
           .max_inputs = 3,
           .max_outputs = 2,
           .infer = infer_loss,
           .reference = reference_softmax_cross_entropy_loss});
}

}  // namespace neo
