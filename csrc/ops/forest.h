#pragma once

#include <set>
#include <vector>

#include "ops/scores.h"

// The trees that the attributes of TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier describe.

namespace neo {

enum class Branch : uint8_t { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member, Leaf };
enum class Aggregate : uint8_t { Average, Sum, Min, Max };

// A vote of a leaf for a target.
struct Vote {
  int64_t target;
  double weight;
};

struct TreeNode {
  Branch branch = Branch::Leaf;
  int64_t feature = 0;
  double threshold = 0;
  std::set<double> members;
  bool missing_is_true = false;
  int64_t when_true = 0;
  int64_t when_false = 0;
  std::vector<Vote> votes;  // leaves
};

// Trees as one array of nodes; children are positions in it.
struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 0;
  Aggregate aggregate = Aggregate::Sum;
  std::vector<double> base;  // added after aggregation; empty, one, or one per target
};

// The forest of a node of one of the three operators. Throws a ModelError where the attributes contradict each other.
Forest read_forest(const Node& node);
PostTransform tree_post_transform(const Node& node);
// Two operations for each step down a tree, as if trees were balanced.
Work forest_work(const Node& node);

// TreeEnsembleClassifier: the number of classes, at least 1.
int64_t tree_class_count(const Node& node);
// TreeEnsembleClassifier of at most two classes whose votes are all for one of them: the other one gets the rest.
bool is_binary_classifier(const Node& node);

}  // namespace neo
