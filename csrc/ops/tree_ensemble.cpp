#include <algorithm>
#include <cmath>
#include <limits>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/forest.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

bool takes_true(const TreeNode& node, double x) {
  if (std::isnan(x)) return node.missing_is_true;
  switch (node.branch) {
    case Branch::LessEqual:
      return x <= node.threshold;
    case Branch::Less:
      return x < node.threshold;
    case Branch::GreaterEqual:
      return x >= node.threshold;
    case Branch::Greater:
      return x > node.threshold;
    case Branch::Equal:
      return x == node.threshold;
    case Branch::NotEqual:
      return x != node.threshold;
    case Branch::Member:
      return node.members.count(x) > 0;
    case Branch::Leaf:
      break;
  }
  return false;
}

const TreeNode& find_leaf(const ReferenceContext& ctx, const Forest& forest, int64_t root, const double* x,
                          int64_t features) {
  const TreeNode* node = &forest.nodes[static_cast<size_t>(root)];
  size_t steps = 0;
  while (node->branch != Branch::Leaf) {
    ctx.check(node->feature < features,
              str("a branch must look at a feature. Got ", node->feature, ", expected less than ", features));
    if (++steps > forest.nodes.size()) ctx.fail(ErrorKind::Model, "a tree must not have cycles");
    node = &forest.nodes[static_cast<size_t>(takes_true(*node, x[node->feature]) ? node->when_true : node->when_false)];
  }
  return *node;
}

std::vector<double> score_row(const ReferenceContext& ctx, const Forest& forest, const double* x, int64_t features) {
  const double start = forest.aggregate == Aggregate::Min   ? std::numeric_limits<float>::max()
                       : forest.aggregate == Aggregate::Max ? std::numeric_limits<float>::lowest()
                                                            : 0;
  auto scores = make_scratch<double>(forest.targets, start);
  for (const int64_t root : forest.roots) {
    for (const Vote& vote : find_leaf(ctx, forest, root, x, features).votes) {
      double& score = scores[static_cast<size_t>(vote.target)];
      switch (forest.aggregate) {
        case Aggregate::Average:
        case Aggregate::Sum:
          score += vote.weight;
          break;
        case Aggregate::Min:
          score = std::min(score, vote.weight);
          break;
        case Aggregate::Max:
          score = std::max(score, vote.weight);
          break;
      }
    }
  }
  for (size_t t = 0; t < scores.size(); ++t) {
    if (forest.aggregate == Aggregate::Average)
      scores[t] /= static_cast<double>(std::max<size_t>(1, forest.roots.size()));
    if (!forest.base.empty()) scores[t] += forest.base[forest.base.size() == 1 ? 0 : t];
  }
  return scores;
}

// TreeEnsembleRegressor

void infer_tree_regressor(InferContext& ctx) {
  post_transform_attr(ctx.node());
  ctx.set_output(0, DType::Float32, Shape({feature_row_count(ctx, 0), ctx.node().int_attr("n_targets", 1)}));
}

void write_rows(ReferenceContext& ctx, int output, DType dtype, int64_t rows, int64_t width,
                const std::vector<double>& scores) {
  store_doubles(ctx.output(output, dtype, {rows, width}), scores);
}

void reference_tree_regressor(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Forest forest = read_forest(node);
  const FeatureRows x = read_features(ctx, 0);
  std::vector<double> scores;
  for (int64_t r = 0; r < x.rows; ++r) {
    auto row = score_row(ctx, forest, x.row(r), x.features);
    apply_post_transform(post_transform_attr(node), row);
    scores.insert(scores.end(), row.begin(), row.end());
  }
  write_rows(ctx, 0, DType::Float32, x.rows, forest.targets, scores);
}

// TreeEnsembleClassifier

void infer_tree_classifier(InferContext& ctx) {
  post_transform_attr(ctx.node());
  const ClassLabels labels(ctx.node(), "classlabels_int64s");
  const Dim rows = feature_row_count(ctx, 0);
  ctx.set_output(0, labels.dtype(), Shape({rows}));
  const int64_t classes = is_binary_classifier(ctx.node()) ? 2 : tree_class_count(ctx.node());
  ctx.set_output(1, DType::Float32, Shape({rows, classes}));
}

void reference_tree_classifier(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const ClassLabels labels(node, "classlabels_int64s");
  const PostTransform transform = post_transform_attr(node);
  const int64_t classes = tree_class_count(node);
  const Forest forest = read_forest(node);
  const bool binary = is_binary_classifier(node);
  const FeatureRows x = read_features(ctx, 0);
  std::vector<double> scores;
  std::vector<size_t> best;
  for (int64_t r = 0; r < x.rows; ++r) {
    auto row = score_row(ctx, forest, x.row(r), x.features);
    if (binary) {
      const double score = row[static_cast<size_t>(node.ints_attr("class_ids").front())];
      const bool chance = transform == PostTransform::None || transform == PostTransform::Probit;
      row = {chance ? 1 - score : -score, score};
    }
    best.push_back(static_cast<size_t>(apply_to_classes(transform, row)));
    scores.insert(scores.end(), row.begin(), row.end());
  }
  if (ctx.has_output(0)) {
    const Tensor& y = ctx.output(0, labels.dtype(), {x.rows});
    std::vector<int64_t> ints;
    for (size_t i = 0; i < best.size(); ++i) {
      if (!labels.strings.empty()) {
        y.strings()[i] =
            labels.size() == 1 ? (best[i] == 1 ? labels.strings[0] : std::string()) : labels.strings[best[i]];
      } else {
        ints.push_back(labels.size() > 1                    ? labels.ints[best[i]]
                       : best[i] == 1 && labels.size() == 1 ? labels.ints[0]
                                                            : 0);
      }
    }
    if (labels.strings.empty()) store_ints(y, ints);
  }
  if (ctx.output_count() > 1 && ctx.has_output(1)) {
    write_rows(ctx, 1, DType::Float32, x.rows, binary ? 2 : classes, scores);
  }
}

// TreeEnsemble

void infer_tree_ensemble(InferContext& ctx) {
  tree_post_transform(ctx.node());
  ctx.set_output(0, ctx.dtype(0), Shape({feature_row_count(ctx, 0), ctx.node().int_attr("n_targets", 1)}));
}

void reference_tree_ensemble(ReferenceContext& ctx) {
  const Forest forest = read_forest(ctx.node());
  const FeatureRows x = read_features(ctx, 0);
  std::vector<double> scores;
  for (int64_t r = 0; r < x.rows; ++r) {
    auto row = score_row(ctx, forest, x.row(r), x.features);
    apply_post_transform(tree_post_transform(ctx.node()), row);
    scores.insert(scores.end(), row.begin(), row.end());
  }
  write_rows(ctx, 0, ctx.input(0).dtype(), x.rows, forest.targets, scores);
}

}  // namespace

void add_tree_ops(OpRegistry& ops) {
  ops.add({.name = "ai.onnx.ml.TreeEnsemble",
           .infer = infer_tree_ensemble,
           .reference = reference_tree_ensemble,
           .work = forest_work});
  ops.add({.name = "ai.onnx.ml.TreeEnsembleRegressor",
           .infer = infer_tree_regressor,
           .reference = reference_tree_regressor,
           .work = forest_work});
  ops.add({.name = "ai.onnx.ml.TreeEnsembleClassifier",
           .max_outputs = 2,
           .infer = infer_tree_classifier,
           .reference = reference_tree_classifier,
           .work = forest_work});
}

}  // namespace neo
