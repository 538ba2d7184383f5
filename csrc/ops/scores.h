#pragma once

#include <span>

#include "ops/op.h"

// Scores of the models of ai.onnx.ml.

namespace neo {

enum class PostTransform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };

// From attribute post_transform, as text.
PostTransform post_transform_attr(const Node& node);
// Maps one row of scores.
void apply_post_transform(PostTransform transform, std::span<double> row);
// Whether scores keep their order, so that the largest is known before.
inline bool keeps_order(PostTransform transform) {
  return transform == PostTransform::None || transform == PostTransform::Softmax ||
         transform == PostTransform::Logistic;
}
// The same for a row of which the position of the largest score is wanted.
int64_t apply_to_classes(PostTransform transform, std::span<double> row);

// Rows of features: [N,F], or [F] as one row.
struct FeatureRows {
  int64_t rows = 0;
  int64_t features = 0;
  std::vector<double> elements;
  const double* row(int64_t i) const { return elements.data() + i * features; }
};
FeatureRows read_features(const ReferenceContext& ctx, int input);
// The number of rows of an input of rank 1 or 2.
Dim feature_row_count(InferContext& ctx, int input);

// Class labels of attributes that end in `int_key` or "classlabels_strings"; at most one of them is there.
struct ClassLabels {
  ClassLabels(const Node& node, std::string_view int_key);
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  size_t size() const { return strings.empty() ? ints.size() : strings.size(); }
  DType dtype() const { return strings.empty() ? DType::Int64 : DType::String; }
};

// The classes of a LinearClassifier: one per set of coefficients, or two of one set.
struct LinearClasses {
  PostTransform transform = PostTransform::None;
  int64_t sets = 0;
  size_t labels = 0;

  bool are_opposite() const { return sets == 1 && labels == 2; }
  bool is_single() const { return sets == 1 && labels != 2; }
  int64_t width() const { return are_opposite() ? 2 : sets; }
  // From the products of a row, in the first `sets` places, to width() scores before their transform.
  void lay_out(std::span<double> row) const;
  // The same with the transform. The position of the row's class; of a single one whether the row is in it.
  int64_t finish(std::span<double> row) const;
};

}  // namespace neo
