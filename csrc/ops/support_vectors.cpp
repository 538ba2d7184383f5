#include "ops/support_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace neo {
namespace {

double product(const double* a, const double* b, int64_t n) {
  return std::inner_product(a, a + n, b, 0.0);
}

// Class probabilities from pairwise ones (Wu, Lin and Weng 2004, second approach). `q` has room for k * k numbers, `qp`
// for k.
void couple_probabilities(size_t k, const double* pairwise, double* q, double* qp, double* p) {
  std::fill(q, q + k * k, 0.0);
  std::fill(p, p + k, 1.0 / static_cast<double>(k));
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
      qp[t] = product(q + t * k, p, static_cast<int64_t>(k));
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
}

}  // namespace

SvmKernel::SvmKernel(const Node& node) {
  const std::string text = node.string_attr("kernel_type", "LINEAR");
  NEO_CHECK(text == "LINEAR" || text == "POLY" || text == "RBF" || text == "SIGMOID", Model, node.op,
            "kernel_type must be LINEAR, POLY, RBF or SIGMOID. Got \"", text, "\" - at ", node.place());
  type = text == "LINEAR" ? Type::Linear : text == "POLY" ? Type::Poly : text == "RBF" ? Type::Rbf : Type::Sigmoid;
  const auto params = node.floats_attr("kernel_params", {0, 0, 0});
  NEO_CHECK(params.size() == 3, Model, node.op, "kernel_params must be gamma, coef0 and degree. Got ", params.size(),
            " numbers - at ", node.place());
  gamma = params[0];
  coef0 = params[1];
  degree = params[2];
}

double SvmKernel::operator()(const double* a, const double* b, int64_t n) const {
  switch (type) {
    case Type::Rbf: {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
      return std::exp(-gamma * sum);
    }
    case Type::Poly:
      return std::pow(gamma * product(a, b, n) + coef0, degree);
    case Type::Sigmoid:
      return std::tanh(gamma * product(a, b, n) + coef0);
    case Type::Linear:
      break;
  }
  return product(a, b, n);
}

SvmClassifier::SvmClassifier(const Node& node)
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
  NEO_CHECK(prob_a.size() == prob_b.size() && (prob_a.empty() || total == 0 || prob_a.size() >= pairs), Model, node.op,
            "prob_a and prob_b must have one number per pair of classes. Got ", prob_a.size(), " and ", prob_b.size(),
            " - at ", node.place());
  positive = std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return c >= 0; });
}

size_t SvmClassifier::score_room() const {
  return std::max({pairwise() ? classes * (classes - 1) / 2 : 0, classes, width()});
}

size_t SvmClassifier::scratch_room() const {
  return has_probabilities() ? 2 * classes * classes + 2 * classes : classes;
}

int64_t SvmClassifier::finish(std::span<double> scores, std::span<double> scratch) const {
  const std::span<double> votes = scratch.subspan(0, classes);
  if (pairwise()) {
    std::fill(votes.begin(), votes.end(), 0.0);
    size_t next = 0;
    for_pairs([&](size_t i, size_t j) { votes[scores[next++] > 0 ? i : j] += 1; });
  } else {
    std::copy_n(scores.begin(), classes, votes.begin());
  }
  const auto best = std::max_element(votes.begin(), votes.end());
  auto position = static_cast<int64_t>(best - votes.begin());
  if (rho.size() == 1 && classes == 2 && !has_probabilities() && positive && *best >= 0.5) position = 1;
  if (rho.size() == 1 && classes != 2) position = *best > 0 ? 1 : 0;
  if (has_probabilities()) {
    double* chances = scratch.data() + classes;
    double* q = chances + classes * classes;
    size_t next = 0;
    for (size_t i = 0; i < classes; ++i) chances[i * classes + i] = 0;
    for_pairs([&](size_t i, size_t j) {
      const double chance = 1 / (1 + std::exp(scores[next] * prob_a[next] + prob_b[next]));
      ++next;
      chances[i * classes + j] = std::clamp(chance, 1e-7, 1 - 1e-7);
      chances[j * classes + i] = 1 - chances[i * classes + j];
    });
    couple_probabilities(classes, chances, q, q + classes * classes, scores.data());
  }
  if (doubles_score()) {
    scores[1] = scores[0];
    scores[0] = -scores[1];
  }
  apply_post_transform(transform, scores.subspan(0, width()));
  return position;
}

}  // namespace neo
