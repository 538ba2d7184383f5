#include <algorithm>
#include <cmath>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/scores.h"
#include "ops/sizes.h"
#include "ops/support_vectors.h"

namespace neo {

namespace {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One label per row, given by its position; without labels the position itself.
void write_labels(ReferenceContext& ctx, const ClassLabels& labels, const std::vector<int64_t>& positions) {
  const Tensor& y = ctx.output(0, labels.dtype(), {static_cast<int64_t>(positions.size())});
  std::vector<int64_t> ints;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<size_t>(positions[i]);
    if (!labels.strings.empty()) {
      ctx.check(at < labels.size(),
                str("there must be a label per class. Got ", labels.size(), ", expected more than ", at));
      y.strings()[i] = labels.strings[at];
    } else {
      ctx.check(labels.ints.empty() || at < labels.size(),
                str("there must be a label per class. Got ", labels.size(), ", expected more than ", at));
      ints.push_back(labels.ints.empty() ? positions[i] : labels.ints[at]);
    }
  }
  if (labels.strings.empty()) store_ints(y, ints);
}

// LinearClassifier

// The sets of coefficients: one per class, or one for two classes.
std::optional<int64_t> coefficient_sets(const Node& node, std::optional<int64_t> features) {
  const auto count = static_cast<int64_t>(node.floats_attr("coefficients").size());
  const auto intercepts = static_cast<int64_t>(node.floats_attr("intercepts").size());
  if (features && *features > 0) return count / *features;
  if (intercepts > 0) return intercepts;
  return std::nullopt;
}

void infer_linear_classifier(InferContext& ctx) {
  post_transform_attr(ctx.node());
  const ClassLabels labels(ctx.node(), "classlabels_ints");
  const Dim rows = feature_row_count(ctx, 0);
  std::optional<int64_t> features;
  if (ctx.ranked(0) && ctx.shape(0).dims().back().is_constant()) features = ctx.shape(0).dims().back().value();
  const auto sets = coefficient_sets(ctx.node(), features);
  ctx.set_output(0, labels.dtype(), Shape({rows}));
  const Dim width = sets ? Dim(*sets == 1 && labels.size() == 2 ? 2 : *sets) : ctx.fresh("classes");
  ctx.set_output(1, DType::Float32, Shape({rows, width}));
}

void reference_linear_classifier(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const ClassLabels labels(node, "classlabels_ints");
  const PostTransform transform = post_transform_attr(node);
  const FeatureRows x = read_features(ctx, 0);
  const auto coefficients = node.floats_attr("coefficients");
  const auto intercepts = node.floats_attr("intercepts");
  const int64_t sets = x.features == 0 ? 0 : static_cast<int64_t>(coefficients.size()) / x.features;
  ctx.check(sets > 0 && sets * x.features == static_cast<int64_t>(coefficients.size()) &&
                (intercepts.empty() || static_cast<int64_t>(intercepts.size()) == sets),
            str("coefficients must be one row of features per class, intercepts one per class. Got ",
                coefficients.size(), " and ", intercepts.size(), " for ", x.features, " features"));
  const LinearClasses classes{transform, sets, labels.size()};
  std::vector<double> scores;
  std::vector<int64_t> positions;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> row;
    for (int64_t s = 0; s < sets; ++s) {
      const double bias = intercepts.empty() ? 0 : intercepts[static_cast<size_t>(s)];
      row.push_back(dot(x.row(r), coefficients.data() + s * x.features, x.features) + bias);
    }
    row.resize(static_cast<size_t>(classes.width()));
    positions.push_back(classes.finish(row));
    scores.insert(scores.end(), row.begin(), row.end());
  }
  if (!ctx.has_output(0)) {
  } else if (!classes.is_single()) {
    write_labels(ctx, labels, positions);
  } else if (labels.strings.empty()) {
    for (int64_t& label : positions) label = label != 0 && !labels.ints.empty() ? labels.ints[0] : label;
    store_ints(ctx.output(0, DType::Int64, {x.rows}), positions);
  } else {
    const Tensor& y = ctx.output(0, DType::String, {x.rows});
    for (size_t i = 0; i < positions.size(); ++i)
      y.strings()[i] = positions[i] != 0 ? labels.strings[0] : std::string();
  }
  if (ctx.output_count() > 1 && ctx.has_output(1))
    store_doubles(ctx.output(1, DType::Float32, {x.rows, classes.width()}), scores);
}

// LinearRegressor

void infer_linear_regressor(InferContext& ctx) {
  post_transform_attr(ctx.node());
  ctx.set_output(0, DType::Float32, Shape({feature_row_count(ctx, 0), ctx.node().int_attr("targets", 1)}));
}

void reference_linear_regressor(ReferenceContext& ctx) {
  const FeatureRows x = read_features(ctx, 0);
  const int64_t targets = ctx.node().int_attr("targets", 1);
  const auto coefficients = ctx.node().floats_attr("coefficients");
  const auto intercepts = ctx.node().floats_attr("intercepts");
  ctx.check(
      static_cast<int64_t>(coefficients.size()) == targets * x.features &&
          (intercepts.empty() || static_cast<int64_t>(intercepts.size()) == targets),
      str("coefficients must be one row of features per target, intercepts one per target. Got ", coefficients.size(),
          " and ", intercepts.size(), " for ", targets, " targets of ", x.features, " features"));
  std::vector<double> scores;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> row;
    for (int64_t t = 0; t < targets; ++t) {
      const double bias = intercepts.empty() ? 0 : intercepts[static_cast<size_t>(t)];
      row.push_back(dot(x.row(r), coefficients.data() + t * x.features, x.features) + bias);
    }
    apply_post_transform(post_transform_attr(ctx.node()), row);
    scores.insert(scores.end(), row.begin(), row.end());
  }
  store_doubles(ctx.output(0, DType::Float32, {x.rows, targets}), scores);
}

// Support vector machines (LIBSVM)

void infer_svm_regressor(InferContext& ctx) {
  post_transform_attr(ctx.node());
  ctx.set_output(0, DType::Float32, Shape({feature_row_count(ctx, 0), 1}));
}

void reference_svm_regressor(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const FeatureRows x = read_features(ctx, 0);
  const SvmKernel kernel(node);
  const int64_t supports = node.int_attr("n_supports", 0);
  const auto coefficients = node.floats_attr("coefficients");
  const auto vectors = node.floats_attr("support_vectors");
  const auto rho = node.floats_attr("rho", {0.0});
  const int64_t wanted = supports > 0 ? supports : x.features;
  ctx.check(!rho.empty() && static_cast<int64_t>(coefficients.size()) >= wanted &&
                (supports <= 0 || static_cast<int64_t>(vectors.size()) == supports * x.features),
            str("coefficients and support_vectors must fit the features. Got ", coefficients.size(), " and ",
                vectors.size(), " for ", supports, " vectors of ", x.features, " features"));
  std::vector<double> scores;
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = rho[0];
    if (supports > 0) {
      for (int64_t v = 0; v < supports; ++v) {
        sum += coefficients[static_cast<size_t>(v)] * kernel(x.row(r), vectors.data() + v * x.features, x.features);
      }
    } else {
      sum += dot(x.row(r), coefficients.data(), x.features);
    }
    if (node.int_attr("one_class", 0) != 0) sum = sum > 0 ? 1 : -1;
    apply_post_transform(post_transform_attr(node), std::span(&sum, 1));
    scores.push_back(sum);
  }
  store_doubles(ctx.output(0, DType::Float32, {x.rows, 1}), scores);
}

void infer_svm_classifier(InferContext& ctx) {
  const SvmClassifier svm(ctx.node());
  const Dim rows = feature_row_count(ctx, 0);
  ctx.set_output(0, svm.labels.dtype(), Shape({rows}));
  ctx.set_output(1, DType::Float32, Shape({rows, static_cast<int64_t>(svm.width())}));
}

void reference_svm_classifier(ReferenceContext& ctx) {
  const SvmClassifier svm(ctx.node());
  const FeatureRows x = read_features(ctx, 0);
  const auto features = static_cast<size_t>(x.features);
  ctx.check(
      svm.pairwise() ? svm.vectors.size() == svm.total * features : svm.coefficients.size() == svm.classes * features,
      str("support_vectors and coefficients must fit the features. Got ", svm.vectors.size(), " and ",
          svm.coefficients.size(), " for ", x.features, " features"));
  std::vector<double> all;
  std::vector<int64_t> positions;
  std::vector<double> kernels(svm.total);
  std::vector<double> scores(svm.score_room());
  std::vector<double> scratch(svm.scratch_room());
  for (int64_t r = 0; r < x.rows; ++r) {
    if (svm.pairwise()) {
      for (size_t v = 0; v < svm.total; ++v)
        kernels[v] = svm.kernel(x.row(r), svm.vectors.data() + static_cast<int64_t>(v * features), x.features);
      size_t next = 0;
      svm.for_pairs([&](size_t i, size_t j) {
        double sum = svm.rho[next];
        sum += dot(svm.coefficients.data() + (j - 1) * svm.total + svm.first[i], kernels.data() + svm.first[i],
                   svm.per_class[i]);
        sum += dot(svm.coefficients.data() + i * svm.total + svm.first[j], kernels.data() + svm.first[j],
                   svm.per_class[j]);
        scores[next++] = sum;
      });
    } else {
      for (size_t c = 0; c < svm.classes; ++c)
        scores[c] = svm.rho[0] + dot(x.row(r), svm.coefficients.data() + c * features, x.features);
    }
    positions.push_back(svm.finish(scores, scratch));
    all.insert(all.end(), scores.begin(), scores.begin() + static_cast<int64_t>(svm.width()));
  }
  if (ctx.has_output(0)) {
    if (svm.names_positions()) {
      store_ints(ctx.output(0, DType::Int64, {x.rows}), positions);
    } else {
      write_labels(ctx, svm.labels, positions);
    }
  }
  if (ctx.output_count() > 1 && ctx.has_output(1)) {
    store_doubles(ctx.output(1, DType::Float32, {x.rows, static_cast<int64_t>(svm.width())}), all);
  }
}

// Products of each row with all weights; a kernel's value takes about as long again.
Work model_work(const Node& node) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank()) return {0, operand_bytes(node)};
  const Dim rows = x->shape().rank() == 2 ? x->shape()[0] : Dim(1);
  const size_t weights = node.floats_attr("coefficients").size() + 2 * node.floats_attr("support_vectors").size();
  return {rows * Dim(static_cast<int64_t>(2 * weights)), operand_bytes(node)};
}

}  // namespace

void add_linear_model_ops(OpRegistry& ops) {
  ops.add({.name = "ai.onnx.ml.LinearClassifier",
           .max_outputs = 2,
           .infer = infer_linear_classifier,
           .reference = reference_linear_classifier,
           .work = model_work});
  ops.add({.name = "ai.onnx.ml.LinearRegressor",
           .infer = infer_linear_regressor,
           .reference = reference_linear_regressor,
           .work = model_work});
  ops.add({.name = "ai.onnx.ml.SVMClassifier",
           .max_outputs = 2,
           .infer = infer_svm_classifier,
           .reference = reference_svm_classifier,
           .work = model_work});
  ops.add({.name = "ai.onnx.ml.SVMRegressor",
           .infer = infer_svm_regressor,
           .reference = reference_svm_regressor,
           .work = model_work});
}

}  // namespace neo
