#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/scores.h"
#include "ops/sizes.h"

namespace neo {

namespace {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

size_t largest_of(std::span<const double> row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
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
  const bool two = sets == 1 && labels.size() == 2;
  const bool single = sets == 1 && !two;
  std::vector<double> scores;
  std::vector<int64_t> positions;
  std::vector<int64_t> thresholded;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> row;
    for (int64_t s = 0; s < sets; ++s) {
      const double bias = intercepts.empty() ? 0 : intercepts[static_cast<size_t>(s)];
      row.push_back(dot(x.row(r), coefficients.data() + s * x.features, x.features) + bias);
    }
    if (two) row = {-row[0], row[0]};
    apply_post_transform(transform, row);
    if (single) thresholded.push_back(row[0] >= (transform == PostTransform::None ? 0 : 0.5));
    positions.push_back(static_cast<int64_t>(largest_of(row)));
    scores.insert(scores.end(), row.begin(), row.end());
  }
  if (!ctx.has_output(0)) {
  } else if (!single) {
    write_labels(ctx, labels, positions);
  } else if (labels.strings.empty()) {
    for (int64_t& label : thresholded) label = label != 0 && !labels.ints.empty() ? labels.ints[0] : label;
    store_ints(ctx.output(0, DType::Int64, {x.rows}), thresholded);
  } else {
    const Tensor& y = ctx.output(0, DType::String, {x.rows});
    for (size_t i = 0; i < thresholded.size(); ++i)
      y.strings()[i] = thresholded[i] != 0 ? labels.strings[0] : std::string();
  }
  if (ctx.output_count() > 1 && ctx.has_output(1))
    store_doubles(ctx.output(1, DType::Float32, {x.rows, two ? 2 : sets}), scores);
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

class SvmKernel {
 public:
  explicit SvmKernel(const Node& node) : type_(node.string_attr("kernel_type", "LINEAR")) {
    NEO_CHECK(type_ == "LINEAR" || type_ == "POLY" || type_ == "RBF" || type_ == "SIGMOID", Model, node.op,
              "kernel_type must be LINEAR, POLY, RBF or SIGMOID. Got \"", type_, "\" - at ", node.place());
    const auto params = node.floats_attr("kernel_params", {0, 0, 0});
    NEO_CHECK(params.size() == 3, Model, node.op, "kernel_params must be gamma, coef0 and degree. Got ", params.size(),
              " numbers - at ", node.place());
    gamma_ = params[0];
    coef0_ = params[1];
    degree_ = params[2];
  }
  double operator()(const double* a, const double* b, int64_t n) const {
    if (type_ == "RBF") {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
      return std::exp(-gamma_ * sum);
    }
    const double product = dot(a, b, n);
    if (type_ == "POLY") return std::pow(gamma_ * product + coef0_, degree_);
    if (type_ == "SIGMOID") return std::tanh(gamma_ * product + coef0_);
    return product;
  }

 private:
  std::string type_;
  double gamma_;
  double coef0_;
  double degree_;
};

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

// Class probabilities from pairwise ones (Wu, Lin and Weng 2004, second approach).
std::vector<double> couple_probabilities(size_t k, const std::vector<double>& pairwise) {
  std::vector<double> q(k * k, 0.0);
  std::vector<double> p(k, 1.0 / static_cast<double>(k));
  std::vector<double> qp(k);
  for (size_t t = 0; t < k; ++t) {
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pairwise[j * k + t] * pairwise[j * k + t];
      q[t * k + j] = -pairwise[j * k + t] * pairwise[t * k + j];
    }
  }
  const size_t rounds = std::max<size_t>(100, k);
  const double epsilon = 0.005 / static_cast<double>(k);
  for (size_t round = 0; round < rounds; ++round) {
    double pqp = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = dot(q.data() + t * k, p.data(), static_cast<int64_t>(k));
      pqp += p[t] * qp[t];
    }
    double worst = 0;
    for (size_t t = 0; t < k; ++t) worst = std::max(worst, std::abs(qp[t] - pqp));
    if (worst < epsilon) break;
    for (size_t t = 0; t < k; ++t) {
      const double change = (pqp - qp[t]) / q[t * k + t];
      p[t] += change;
      pqp = (pqp + change * (change * q[t * k + t] + 2 * qp[t])) / ((1 + change) * (1 + change));
      for (size_t j = 0; j < k; ++j) {
        p[j] /= 1 + change;
        qp[j] = (qp[j] + change * q[t * k + j]) / (1 + change);
      }
    }
  }
  return p;
}

struct SvmClassifier {
  explicit SvmClassifier(const Node& node)
      : labels(node, "classlabels_ints"),
        kernel(node),
        transform(post_transform_attr(node)),
        coefficients(node.floats_attr("coefficients")),
        vectors(node.floats_attr("support_vectors")),
        rho(node.floats_attr("rho")),
        prob_a(node.floats_attr("prob_a")),
        prob_b(node.floats_attr("prob_b")),
        per_class(node.ints_attr("vectors_per_class")),
        classes(std::max<size_t>(1, labels.size())) {
    for (const int64_t count : per_class) {
      NEO_CHECK(count >= 0 && count < kMaxExtent, Model, node.op, "vectors_per_class must not be negative. Got ", count,
                " - at ", node.place());
      first.push_back(total);
      total += static_cast<size_t>(count);
    }
    const size_t pairs = classes * (classes - 1) / 2;
    NEO_CHECK(!rho.empty() && (total == 0 || (per_class.size() == classes && rho.size() >= pairs &&
                                              coefficients.size() == (classes - 1) * total)),
              Model, node.op, "coefficients, rho and vectors_per_class must fit the classes. Got ", coefficients.size(),
              ", ", rho.size(), " and ", per_class.size(), " for ", classes, " classes - at ", node.place());
    NEO_CHECK(prob_a.size() == prob_b.size() && (prob_a.empty() || total == 0 || prob_a.size() >= pairs), Model,
              node.op, "prob_a and prob_b must have one number per pair of classes. Got ", prob_a.size(), " and ",
              prob_b.size(), " - at ", node.place());
    positive = std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return c >= 0; });
  }

  bool pairwise() const { return total > 0; }
  bool has_probabilities() const { return pairwise() && !prob_a.empty(); }
  size_t raw_scores() const { return !pairwise() || has_probabilities() ? classes : classes * (classes - 1) / 2; }
  // A single score of two classes is written for both.
  bool doubles_score() const {
    return raw_scores() == 1 && rho.size() == 1 && classes == 2 && transform != PostTransform::Probit;
  }
  size_t width() const { return doubles_score() ? 2 : raw_scores(); }

  ClassLabels labels;
  SvmKernel kernel;
  PostTransform transform;
  std::vector<double> coefficients;
  std::vector<double> vectors;
  std::vector<double> rho;
  std::vector<double> prob_a;
  std::vector<double> prob_b;
  std::vector<int64_t> per_class;
  size_t classes;
  std::vector<size_t> first;  // vector of each class
  size_t total = 0;
  bool positive = false;
};

void infer_svm_classifier(InferContext& ctx) {
  const SvmClassifier svm(ctx.node());
  const Dim rows = feature_row_count(ctx, 0);
  ctx.set_output(0, svm.labels.dtype(), Shape({rows}));
  ctx.set_output(1, DType::Float32, Shape({rows, static_cast<int64_t>(svm.width())}));
}

// Pairwise scores and votes of one row.
void score_pairs(const SvmClassifier& svm, const double* x, int64_t features, std::vector<double>& scores,
                 std::vector<double>& votes) {
  std::vector<double> kernels;
  for (size_t v = 0; v < svm.total; ++v)
    kernels.push_back(svm.kernel(x, svm.vectors.data() + static_cast<int64_t>(v) * features, features));
  votes.assign(svm.classes, 0.0);
  scores.clear();
  for (size_t i = 0; i < svm.classes; ++i) {
    for (size_t j = i + 1; j < svm.classes; ++j) {
      double sum = svm.rho[scores.size()];
      sum += dot(svm.coefficients.data() + (j - 1) * svm.total + svm.first[i], kernels.data() + svm.first[i],
                 svm.per_class[i]);
      sum +=
          dot(svm.coefficients.data() + i * svm.total + svm.first[j], kernels.data() + svm.first[j], svm.per_class[j]);
      scores.push_back(sum);
      votes[sum > 0 ? i : j] += 1;
    }
  }
}

std::vector<double> pair_probabilities(const SvmClassifier& svm, const std::vector<double>& scores) {
  std::vector<double> pairwise(svm.classes * svm.classes, 0.0);
  size_t next = 0;
  for (size_t i = 0; i < svm.classes; ++i) {
    for (size_t j = i + 1; j < svm.classes; ++j, ++next) {
      const double chance = 1 / (1 + std::exp(scores[next] * svm.prob_a[next] + svm.prob_b[next]));
      pairwise[i * svm.classes + j] = std::clamp(chance, 1e-7, 1 - 1e-7);
      pairwise[j * svm.classes + i] = 1 - pairwise[i * svm.classes + j];
    }
  }
  return couple_probabilities(svm.classes, pairwise);
}

void reference_svm_classifier(ReferenceContext& ctx) {
  const SvmClassifier svm(ctx.node());
  const FeatureRows x = read_features(ctx, 0);
  const size_t features = static_cast<size_t>(x.features);
  ctx.check(
      svm.pairwise() ? svm.vectors.size() == svm.total * features : svm.coefficients.size() == svm.classes * features,
      str("support_vectors and coefficients must fit the features. Got ", svm.vectors.size(), " and ",
          svm.coefficients.size(), " for ", x.features, " features"));
  std::vector<double> all;
  std::vector<int64_t> positions;
  std::vector<double> scores;
  std::vector<double> votes;
  for (int64_t r = 0; r < x.rows; ++r) {
    if (svm.pairwise()) {
      score_pairs(svm, x.row(r), x.features, scores, votes);
      if (svm.has_probabilities()) scores = pair_probabilities(svm, scores);
    } else {
      scores.clear();
      for (size_t c = 0; c < svm.classes; ++c) {
        scores.push_back(svm.rho[0] + dot(x.row(r), svm.coefficients.data() + c * features, x.features));
      }
      votes = scores;
    }
    const size_t best = largest_of(votes);
    auto position = static_cast<int64_t>(best);
    if (svm.rho.size() == 1 && svm.classes == 2 && !svm.has_probabilities() && svm.positive && votes[best] >= 0.5)
      position = 1;
    if (svm.rho.size() == 1 && svm.classes != 2) position = votes[best] > 0 ? 1 : 0;
    positions.push_back(position);
    if (svm.doubles_score()) scores = {-scores[0], scores[0]};
    apply_post_transform(svm.transform, scores);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  if (ctx.has_output(0)) {
    if (svm.rho.size() == 1 && svm.classes == 1 && svm.labels.strings.empty()) {
      store_ints(ctx.output(0, DType::Int64, {x.rows}), positions);
    } else {
      write_labels(ctx, svm.labels, positions);
    }
  }
  if (ctx.output_count() > 1 && ctx.has_output(1)) {
    store_doubles(ctx.output(1, DType::Float32, {x.rows, static_cast<int64_t>(svm.width())}), all);
  }
}

}  // namespace

void add_linear_model_ops(OpRegistry& ops) {
  ops.add({.name = "ai.onnx.ml.LinearClassifier",
           .max_outputs = 2,
           .infer = infer_linear_classifier,
           .reference = reference_linear_classifier});
  ops.add(
      {.name = "ai.onnx.ml.LinearRegressor", .infer = infer_linear_regressor, .reference = reference_linear_regressor});
  ops.add({.name = "ai.onnx.ml.SVMClassifier",
           .max_outputs = 2,
           .infer = infer_svm_classifier,
           .reference = reference_svm_classifier});
  ops.add({.name = "ai.onnx.ml.SVMRegressor", .infer = infer_svm_regressor, .reference = reference_svm_regressor});
}

}  // namespace neo
