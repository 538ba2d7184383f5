#include "ops/scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace neo {

PostTransform post_transform_attr(const Node& node) {
  const std::string text = node.string_attr("post_transform", "NONE");
  if (text == "NONE") return PostTransform::None;
  if (text == "SOFTMAX") return PostTransform::Softmax;
  if (text == "LOGISTIC") return PostTransform::Logistic;
  if (text == "SOFTMAX_ZERO") return PostTransform::SoftmaxZero;
  NEO_CHECK(text == "PROBIT", Model, node.op,
            "post_transform must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT. Got \"", text, "\" - at ",
            node.place());
  return PostTransform::Probit;
}

namespace {

double logistic(double x) {
  const double y = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - y : y;
}

// Winitzki's approximation, which ONNX's own implementation uses.
double inverse_erf(double x) {
  const double inside = (1 - x) * (1 + x);
  if (inside == 0) return 0;
  const double logarithm = std::log(inside);
  const double a = 2 / (std::numbers::pi * 0.147) + 0.5 * logarithm;
  const double root = std::sqrt(-a + std::sqrt(a * a - logarithm / 0.147));
  return x < 0 ? -root : root;
}

void softmax(std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - largest);
  for (double& x : row) x /= sum;
}

// Softmax in which scores of zero stay near zero.
void softmax_zero(std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) {
    x = std::abs(x) > 1e-7 ? std::exp(x - largest) : x * std::exp(-largest);
    sum += x;
  }
  for (double& x : row) x = sum == 0 ? 0.5 : x / sum;
}

}  // namespace

void apply_post_transform(PostTransform transform, std::span<double> row) {
  if (row.empty()) return;
  switch (transform) {
    case PostTransform::None:
      return;
    case PostTransform::Softmax:
      return softmax(row);
    case PostTransform::SoftmaxZero:
      return softmax_zero(row);
    case PostTransform::Logistic:
      for (double& x : row) x = logistic(x);
      return;
    case PostTransform::Probit:
      for (double& x : row) x = std::numbers::sqrt2 * inverse_erf(2 * x - 1);
      return;
  }
}

int64_t apply_to_classes(PostTransform transform, std::span<double> row) {
  const auto largest = [row] { return std::max_element(row.begin(), row.end()) - row.begin(); };
  const int64_t before = largest();
  apply_post_transform(transform, row);
  return keeps_order(transform) ? before : largest();
}

void LinearClasses::lay_out(std::span<double> row) const {
  if (!are_opposite()) return;
  row[1] = row[0];
  row[0] = -row[1];
}

int64_t LinearClasses::finish(std::span<double> row) const {
  lay_out(row);
  const int64_t position = apply_to_classes(transform, row);
  return is_single() ? (row[0] >= (transform == PostTransform::None ? 0 : 0.5) ? 1 : 0) : position;
}

FeatureRows read_features(const ReferenceContext& ctx, int input) {
  const Tensor& x = ctx.input(input);
  ctx.check(x.rank() == 1 || x.rank() == 2, str("features must be [N,F] or [F]. Got ", to_string(x.dims())));
  return {x.rank() == 2 ? x.dims()[0] : 1, x.dims().back(), ctx.doubles(input)};
}

Dim feature_row_count(InferContext& ctx, int input) {
  if (!ctx.ranked(input)) return ctx.fresh("rows");
  const Shape& shape = ctx.shape(input);
  ctx.check(shape.rank() == 1 || shape.rank() == 2, str("features must be [N,F] or [F]. Got ", shape.to_string()));
  return shape.rank() == 2 ? shape[0] : Dim(1);
}

ClassLabels::ClassLabels(const Node& node, std::string_view int_key)
    : ints(node.ints_attr(int_key)), strings(node.strings_attr("classlabels_strings")) {
  NEO_CHECK(ints.empty() || strings.empty(), Model, node.op, "class labels must be integers or strings. Got both - at ",
            node.place());
}

}  // namespace neo
