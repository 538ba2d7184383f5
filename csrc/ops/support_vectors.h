#pragma once

#include <span>
#include <vector>

#include "ops/scores.h"

// Support vector machines, as LIBSVM has them.

namespace neo {

struct SvmKernel {
  enum class Type : uint8_t { Linear, Poly, Rbf, Sigmoid };

  explicit SvmKernel(const Node& node);
  double operator()(const double* a, const double* b, int64_t n) const;

  Type type = Type::Linear;
  double gamma = 0;
  double coef0 = 0;
  double degree = 0;
};

struct SvmClassifier {
  explicit SvmClassifier(const Node& node);

  bool pairwise() const { return total > 0; }
  bool has_probabilities() const { return pairwise() && !prob_a.empty(); }
  size_t raw_scores() const { return !pairwise() || has_probabilities() ? classes : classes * (classes - 1) / 2; }
  // A single score of two classes is written for both.
  bool doubles_score() const {
    return raw_scores() == 1 && rho.size() == 1 && classes == 2 && transform != PostTransform::Probit;
  }
  size_t width() const { return doubles_score() ? 2 : raw_scores(); }
  // A single class is told by 0 or 1.
  bool names_positions() const { return rho.size() == 1 && classes == 1 && labels.strings.empty(); }

  // f(i, j) for the pairs of classes in the order of their scores.
  template <class F>
  void for_pairs(F&& f) const {
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = i + 1; j < classes; ++j) f(i, j);
    }
  }

  // From the scores of the pairs, or of the classes, of a row to width() scores. The position of its class.
  int64_t finish(std::span<double> scores, std::span<double> scratch) const;
  size_t score_room() const;
  size_t scratch_room() const;

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

}  // namespace neo
