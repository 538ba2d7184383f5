#include "ops/forest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "ops/elements.h"

namespace neo {
namespace {

void check_forest(const Node& node, const Forest& forest) {
  const auto count = static_cast<int64_t>(forest.nodes.size());
  const auto inside = [count](int64_t at) { return at >= 0 && at < count; };
  for (const TreeNode& n : forest.nodes) {
    const bool children = n.branch == Branch::Leaf || (inside(n.when_true) && inside(n.when_false) && n.feature >= 0);
    NEO_CHECK(children, Model, node.op, "a branch must have a feature and two children. Got ", n.when_true, " and ",
              n.when_false, " of ", count, " nodes - at ", node.place());
    for (const Vote& vote : n.votes) {
      NEO_CHECK(vote.target >= 0 && vote.target < forest.targets, Model, node.op, "a leaf must vote for a target. Got ",
                vote.target, ", expected 0 to ", forest.targets - 1, " - at ", node.place());
    }
  }
  for (const int64_t root : forest.roots) {
    NEO_CHECK(inside(root), Model, node.op, "a root must be a node. Got ", root, " of ", count, " nodes - at ",
              node.place());
  }
}

void check_lengths(const Node& node, std::initializer_list<size_t> lengths) {
  for (const size_t length : lengths) {
    NEO_CHECK(length == *lengths.begin(), Model, node.op, "attributes of one prefix must have one length. Got ",
              *lengths.begin(), " and ", length, " - at ", node.place());
  }
}

// "key" as floats, or "key_as_tensor".
std::vector<double> floats_or_tensor(const Node& node, const std::string& key) {
  if (const Tensor* tensor = node.tensor_attr(key + "_as_tensor")) return load_doubles(*tensor);
  return node.floats_attr(key);
}

Branch branch_of(const Node& node, const std::string& mode) {
  constexpr std::array<std::pair<std::string_view, Branch>, 7> kModes = {{{"BRANCH_LEQ", Branch::LessEqual},
                                                                          {"BRANCH_LT", Branch::Less},
                                                                          {"BRANCH_GTE", Branch::GreaterEqual},
                                                                          {"BRANCH_GT", Branch::Greater},
                                                                          {"BRANCH_EQ", Branch::Equal},
                                                                          {"BRANCH_NEQ", Branch::NotEqual},
                                                                          {"LEAF", Branch::Leaf}}};
  for (const auto& [text, branch] : kModes) {
    if (mode == text) return branch;
  }
  fail(
      ErrorKind::Model, node.op,
      str("nodes_modes must be BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ or LEAF. Got \"", mode, "\" - at ", node.place()));
}

// The older form: nodes named by (tree, node), leaves' votes apart under `prefix`.
Forest read_named_forest(const Node& node, const std::string& prefix, int64_t targets) {
  const auto trees = node.ints_attr("nodes_treeids");
  const auto ids = node.ints_attr("nodes_nodeids");
  const auto features = node.ints_attr("nodes_featureids");
  const auto modes = node.strings_attr("nodes_modes");
  const auto when_true = node.ints_attr("nodes_truenodeids");
  const auto when_false = node.ints_attr("nodes_falsenodeids");
  const auto values = floats_or_tensor(node, "nodes_values");
  const auto missing = node.ints_attr("nodes_missing_value_tracks_true");
  check_lengths(node, {trees.size(), ids.size(), features.size(), modes.size(), when_true.size(), when_false.size(),
                       values.size()});
  Forest forest;
  forest.targets = targets;
  std::map<std::pair<int64_t, int64_t>, int64_t> positions;
  std::set<int64_t> seen;
  for (size_t i = 0; i < trees.size(); ++i) {
    positions.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i));
    if (seen.insert(trees[i]).second) forest.roots.push_back(static_cast<int64_t>(i));
  }
  const auto position = [&](int64_t tree, int64_t id) {
    const auto found = positions.find({tree, id});
    return found == positions.end() ? -1 : found->second;
  };
  for (size_t i = 0; i < trees.size(); ++i) {
    TreeNode n;
    n.branch = branch_of(node, modes[i]);
    n.feature = features[i];
    n.threshold = values[i];
    n.missing_is_true = i < missing.size() && missing[i] != 0;
    n.when_true = position(trees[i], when_true[i]);
    n.when_false = position(trees[i], when_false[i]);
    forest.nodes.push_back(std::move(n));
  }
  const auto vote_trees = node.ints_attr(prefix + "_treeids");
  const auto vote_nodes = node.ints_attr(prefix + "_nodeids");
  const auto vote_ids = node.ints_attr(prefix + "_ids");
  const auto weights = floats_or_tensor(node, prefix + "_weights");
  check_lengths(node, {vote_trees.size(), vote_nodes.size(), vote_ids.size(), weights.size()});
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t at = position(vote_trees[i], vote_nodes[i]);
    NEO_CHECK(at >= 0, Model, node.op, "a vote must belong to a node. Got tree ", vote_trees[i], ", node ",
              vote_nodes[i], " - at ", node.place());
    forest.nodes[static_cast<size_t>(at)].votes.push_back({vote_ids[i], weights[i]});
  }
  forest.base = floats_or_tensor(node, "base_values");
  NEO_CHECK(forest.base.size() <= 1 || static_cast<int64_t>(forest.base.size()) == targets, Model, node.op,
            "base_values must be one per target. Got ", forest.base.size(), ", expected ", targets, " - at ",
            node.place());
  check_forest(node, forest);
  return forest;
}

std::vector<double> tensor_numbers(const Node& node, std::string_view key) {
  const Tensor* tensor = node.tensor_attr(key);
  return tensor == nullptr ? std::vector<double>{} : load_doubles(*tensor);
}

Forest read_numbered_forest(const Node& node) {
  const auto modes = tensor_numbers(node, "nodes_modes");
  const auto splits = tensor_numbers(node, "nodes_splits");
  const auto features = node.ints_attr("nodes_featureids");
  const auto when_true = node.ints_attr("nodes_truenodeids");
  const auto when_false = node.ints_attr("nodes_falsenodeids");
  const auto true_leafs = node.ints_attr("nodes_trueleafs");
  const auto false_leafs = node.ints_attr("nodes_falseleafs");
  const auto missing = node.ints_attr("nodes_missing_value_tracks_true");
  const auto leaf_targets = node.ints_attr("leaf_targetids");
  const auto leaf_weights = tensor_numbers(node, "leaf_weights");
  const auto members = tensor_numbers(node, "membership_values");
  check_lengths(node, {modes.size(), splits.size(), features.size(), when_true.size(), when_false.size(),
                       true_leafs.size(), false_leafs.size()});
  check_lengths(node, {leaf_targets.size(), leaf_weights.size()});
  Forest forest;
  forest.targets = node.int_attr("n_targets", 1);
  forest.roots = node.ints_attr("tree_roots");
  const auto inner = static_cast<int64_t>(modes.size());
  for (const int64_t root : forest.roots) {
    NEO_CHECK(root >= 0 && root < inner, Model, node.op, "a root must be a node. Got ", root, " of ", inner,
              " nodes - at ", node.place());
  }
  size_t next_member = 0;
  for (size_t i = 0; i < modes.size(); ++i) {
    NEO_CHECK(modes[i] >= 0 && modes[i] <= 6, Model, node.op, "nodes_modes must be 0 to 6. Got ", modes[i], " - at ",
              node.place());
    TreeNode n;
    n.branch = static_cast<Branch>(static_cast<int>(modes[i]));
    n.feature = features[i];
    n.threshold = splits[i];
    n.missing_is_true = i < missing.size() && missing[i] != 0;
    // Leaves follow the branches in the array.
    const auto child = [&](int64_t at, int64_t is_leaf) {
      const int64_t limit = is_leaf != 0 ? static_cast<int64_t>(leaf_targets.size()) : inner;
      NEO_CHECK(at >= 0 && at < limit, Model, node.op, "a child must be a node or a leaf. Got ", at, ", expected 0 to ",
                limit - 1, " - at ", node.place());
      return is_leaf != 0 ? inner + at : at;
    };
    n.when_true = child(when_true[i], true_leafs[i]);
    n.when_false = child(when_false[i], false_leafs[i]);
    if (n.branch == Branch::Member) {
      for (; next_member < members.size() && !std::isnan(members[next_member]); ++next_member)
        n.members.insert(members[next_member]);
      NEO_CHECK(next_member < members.size(), Model, node.op,
                "every BRANCH_MEMBER must have its members, ended by a NaN - at ", node.place());
      ++next_member;
    }
    forest.nodes.push_back(std::move(n));
  }
  for (size_t i = 0; i < leaf_targets.size(); ++i) {
    TreeNode leaf;
    leaf.votes.push_back({leaf_targets[i], leaf_weights[i]});
    forest.nodes.push_back(std::move(leaf));
  }
  const int64_t aggregate = node.int_attr("aggregate_function", 1);
  NEO_CHECK(aggregate >= 0 && aggregate <= 3, Model, node.op, "aggregate_function must be 0 to 3. Got ", aggregate,
            " - at ", node.place());
  forest.aggregate = static_cast<Aggregate>(aggregate);
  check_forest(node, forest);
  return forest;
}

Aggregate aggregate_attr(const Node& node) {
  const std::string text = node.string_attr("aggregate_function", "SUM");
  NEO_CHECK(text == "SUM" || text == "AVERAGE" || text == "MIN" || text == "MAX", Model, node.op,
            "aggregate_function must be AVERAGE, SUM, MIN or MAX. Got \"", text, "\" - at ", node.place());
  return text == "SUM"       ? Aggregate::Sum
         : text == "AVERAGE" ? Aggregate::Average
         : text == "MIN"     ? Aggregate::Min
                             : Aggregate::Max;
}

bool votes_for_one(const Node& node) {
  const auto ids = node.ints_attr("class_ids");
  return !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids.front(); });
}

}  // namespace

Forest read_forest(const Node& node) {
  if (node.op == "ai.onnx.ml.TreeEnsemble") return read_numbered_forest(node);
  if (node.op == "ai.onnx.ml.TreeEnsembleClassifier") return read_named_forest(node, "class", tree_class_count(node));
  Forest forest = read_named_forest(node, "target", node.int_attr("n_targets", 1));
  forest.aggregate = aggregate_attr(node);
  return forest;
}

PostTransform tree_post_transform(const Node& node) {
  if (node.op != "ai.onnx.ml.TreeEnsemble") return post_transform_attr(node);
  const int64_t number = node.int_attr("post_transform", 0);
  NEO_CHECK(number >= 0 && number <= 4, Model, node.op, "post_transform must be 0 to 4. Got ", number, " - at ",
            node.place());
  return static_cast<PostTransform>(number);
}

Work forest_work(const Node& node) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank()) return {0, operand_bytes(node)};
  const auto ids = node.ints_attr("nodes_treeids");
  const auto nodes = static_cast<double>(node.ints_attr("nodes_featureids").size());
  const double trees = ids.empty() ? static_cast<double>(node.ints_attr("tree_roots").size())
                                   : static_cast<double>(std::set<int64_t>(ids.begin(), ids.end()).size());
  const double depth = 1 + std::log2(std::max(1.0, nodes / std::max(1.0, trees)));
  const Dim rows = x->shape().rank() == 2 ? x->shape()[0] : Dim(1);
  return {rows * Dim(static_cast<int64_t>(2 * trees * depth)), operand_bytes(node)};
}

int64_t tree_class_count(const Node& node) {
  return static_cast<int64_t>(std::max<size_t>(1, ClassLabels(node, "classlabels_int64s").size()));
}

bool is_binary_classifier(const Node& node) {
  return tree_class_count(node) <= 2 && votes_for_one(node);
}

}  // namespace neo
