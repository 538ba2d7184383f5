#include "routines/cpu/trees/packed_forest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace neo {
namespace {

// The largest key of a number <= x, and of one < x.
template <class Key>
Key key_at_most(double x) {
  if (std::isnan(x)) return std::numeric_limits<Key>::min();
  if constexpr (sizeof(Key) == sizeof(double)) {
    return order_key(x);
  } else {
    auto nearest = static_cast<float>(x);
    if (static_cast<double>(nearest) > x) nearest = std::nextafter(nearest, -std::numeric_limits<float>::infinity());
    return order_key(nearest);
  }
}
template <class Key>
Key key_below(double x) {
  const Key at_most = key_at_most<Key>(x);
  if (std::isnan(x)) return at_most;
  if constexpr (sizeof(Key) == sizeof(double)) {
    return at_most - 1;
  } else {
    return static_cast<double>(static_cast<float>(x)) == x ? at_most - 1 : at_most;
  }
}

// A branch that asks only "x <= key?"; children are nodes of the list, leaves those of the forest, as ~position.
template <class Key>
struct SimpleBranch {
  Key key;
  int64_t feature;
  bool missing_is_true;
  int64_t when_true;
  int64_t when_false;
};

template <class Key>
class Packer {
 public:
  Packer(const Forest& forest, const std::string& place) : forest_(forest), place_(place) {}

  PackedForest<Key> pack() {
    simplify();
    check_cycles();
    for (const SimpleBranch<Key>& b : branches_) {
      packed_.has_missing |= b.missing_is_true;
      packed_.features = std::max(packed_.features, b.feature + 1);
    }
    NEO_CHECK(packed_.features < (int64_t{1} << 27) && branches_.size() < (size_t{1} << 29), Model, "TreeEnsemble",
              "a forest must have less than 2^27 features and 2^29 branches. Got ", packed_.features, " and ",
              branches_.size(), " - at ", place_);
    pairs_.assign(branches_.size(), 0);
    for (const int64_t root : forest_.roots) place_tree(root);
    if (!packed_.votes_begin.empty()) gather_votes();
    return std::move(packed_);
  }

 private:
  int64_t add(SimpleBranch<Key> branch) {
    branches_.push_back(branch);
    return static_cast<int64_t>(branches_.size()) - 1;
  }

  // Where a branch for "x == value?" begins.
  int64_t add_equal(double value, int64_t feature, bool missing, int64_t when_true, int64_t when_false) {
    const int64_t below = add({key_below<Key>(value), feature, false, when_false, when_true});
    return add({key_at_most<Key>(value), feature, missing, below, when_false});
  }

  void simplify() {
    const auto count = static_cast<int64_t>(forest_.nodes.size());
    first_.assign(static_cast<size_t>(count), 0);
    // Two rounds: branches first name nodes of the forest, then what those became.
    for (int64_t i = 0; i < count; ++i) {
      const TreeNode& n = forest_.nodes[static_cast<size_t>(i)];
      first_[static_cast<size_t>(i)] = n.branch == Branch::Leaf ? ~i : simplify(n);
    }
    for (SimpleBranch<Key>& b : branches_) {
      for (int64_t* child : {&b.when_true, &b.when_false}) {
        if (*child >= kNode) *child = first_[static_cast<size_t>(*child - kNode)];
      }
    }
  }

  int64_t simplify(const TreeNode& n) {
    const int64_t yes = kNode + n.when_true, no = kNode + n.when_false;
    const bool missing = n.missing_is_true;
    switch (n.branch) {
      case Branch::LessEqual:
        return add({key_at_most<Key>(n.threshold), n.feature, missing, yes, no});
      case Branch::Less:
        return add({key_below<Key>(n.threshold), n.feature, missing, yes, no});
      case Branch::GreaterEqual:
        return add_unless_nan(n, key_below<Key>(n.threshold));
      case Branch::Greater:
        return add_unless_nan(n, key_at_most<Key>(n.threshold));
      case Branch::Equal:
        return std::isnan(n.threshold) ? add_never(n, no) : add_equal(n.threshold, n.feature, missing, yes, no);
      case Branch::NotEqual:
        // Every number differs from NaN, and no number has the largest keys.
        if (std::isnan(n.threshold)) return add({std::numeric_limits<Key>::max() - 1, n.feature, missing, yes, no});
        return add_equal(n.threshold, n.feature, !missing, no, yes);
      case Branch::Member:
        break;
      case Branch::Leaf:
        NEO_ASSERT(false, "a leaf has no branch");
    }
    int64_t rest = no;
    // Of NaN the first member decides.
    for (const double member : n.members) rest = add_equal(member, n.feature, missing, yes, rest);
    return n.members.empty() ? add_never(n, no) : rest;
  }

  // "x > threshold?" as "x <= threshold?" with its children exchanged. Nothing compares with a threshold of NaN.
  int64_t add_unless_nan(const TreeNode& n, Key key) {
    if (std::isnan(n.threshold)) return add_never(n, kNode + n.when_false);
    return add({key, n.feature, !n.missing_is_true, kNode + n.when_false, kNode + n.when_true});
  }

  // A branch that every number takes to `numbers`.
  int64_t add_never(const TreeNode& n, int64_t numbers) {
    return add({std::numeric_limits<Key>::min(), n.feature, n.missing_is_true, kNode + n.when_true, numbers});
  }

  // Also finds the mean depth of the leaves, by depth-first search from every root.
  void check_cycles() {
    enum class State : uint8_t { New, Open, Done };
    std::vector<State> states(branches_.size(), State::New);
    struct Visit {
      int64_t branch;
      int next;
    };
    std::vector<Visit> path;
    double depths = 0, leaves = 0;
    for (const int64_t root : forest_.roots) {
      const int64_t first = first_[static_cast<size_t>(root)];
      if (first < 0 || states[static_cast<size_t>(first)] != State::New) continue;
      path.push_back({first, 0});
      states[static_cast<size_t>(first)] = State::Open;
      while (!path.empty()) {
        Visit& visit = path.back();
        if (visit.next == 2) {
          states[static_cast<size_t>(visit.branch)] = State::Done;
          path.pop_back();
          continue;
        }
        const SimpleBranch<Key>& b = branches_[static_cast<size_t>(visit.branch)];
        const int64_t child = visit.next++ == 0 ? b.when_true : b.when_false;
        if (child < 0) {
          depths += static_cast<double>(path.size());
          leaves += 1;
          continue;
        }
        State& state = states[static_cast<size_t>(child)];
        NEO_CHECK(state != State::Open, Model, "TreeEnsemble", "a tree must not have cycles - at ", place_);
        if (state == State::Done) continue;
        state = State::Open;
        path.push_back({child, 0});
      }
    }
    packed_.mean_depth = leaves == 0 ? 0 : depths / leaves;
  }

  // Entries of a tree, nearest to the root first. Branches that another tree has placed keep their children there.
  void place_tree(int64_t root) {
    const auto begin = static_cast<uint32_t>(packed_.entries.size());
    std::vector<std::pair<uint32_t, int64_t>> waiting = {{begin, first_[static_cast<size_t>(root)]}};
    packed_.entries.push_back({});
    leaf_of_.push_back(-1);
    bool one_each = true;
    int64_t target = -1;
    for (size_t i = 0; i < waiting.size(); ++i) {
      const auto [at, position] = waiting[i];
      if (position < 0) {
        const int64_t leaf = ~position;
        packed_.entries[at] = {std::numeric_limits<Key>::max(), 0, at};
        leaf_of_[at] = leaf;
        const std::vector<Vote>& votes = forest_.nodes[static_cast<size_t>(leaf)].votes;
        one_each &= votes.size() == 1 && (target < 0 || votes.front().target == target);
        if (votes.size() == 1) target = votes.front().target;
        continue;
      }
      const SimpleBranch<Key>& b = branches_[static_cast<size_t>(position)];
      uint32_t& pair = pairs_[static_cast<size_t>(position)];
      if (pair == 0) {
        pair = static_cast<uint32_t>(packed_.entries.size());
        packed_.entries.resize(pair + 2);
        leaf_of_.resize(pair + 2, -1);
        waiting.emplace_back(pair, b.when_true);
        waiting.emplace_back(pair + 1, b.when_false);
      } else {
        one_each = false;  // leaves that belong to another tree, too
      }
      // The second copy of the features begins behind all of the first.
      const int64_t feature = b.feature * (packed_.has_missing ? 2 : 1) + (b.missing_is_true ? 1 : 0);
      packed_.entries[at] = {b.key, static_cast<uint32_t>(feature * kForestLanes), pair};
    }
    packed_.value.resize(packed_.entries.size(), 0);
    if (!one_each) packed_.votes_begin.resize(1);
    for (uint32_t at = begin; one_each && at < packed_.entries.size(); ++at) {
      if (leaf_of_[at] >= 0) packed_.value[at] = forest_.nodes[static_cast<size_t>(leaf_of_[at])].votes.front().weight;
    }
    packed_.trees.push_back({begin, one_each ? static_cast<int32_t>(target) : -1});
  }

  void gather_votes() {
    packed_.votes_begin.clear();
    for (const int64_t leaf : leaf_of_) {
      packed_.votes_begin.push_back(static_cast<uint32_t>(packed_.votes.size()));
      if (leaf < 0) continue;
      const std::vector<Vote>& votes = forest_.nodes[static_cast<size_t>(leaf)].votes;
      packed_.votes.insert(packed_.votes.end(), votes.begin(), votes.end());
    }
    packed_.votes_begin.push_back(static_cast<uint32_t>(packed_.votes.size()));
  }

  static constexpr int64_t kNode = int64_t{1} << 40;  // marks a position in the forest

  const Forest& forest_;
  const std::string& place_;
  std::vector<SimpleBranch<Key>> branches_;
  std::vector<int64_t> first_;    // by node of the forest: its first branch, or ~itself where it is a leaf
  std::vector<uint32_t> pairs_;   // by branch: where its children lie, 0: nowhere yet
  std::vector<int64_t> leaf_of_;  // by entry: node of the forest, -1 for branches
  PackedForest<Key> packed_;
};

template <class Key, class Float>
Key key_of(Float x) {
  Key bits;
  static_assert(sizeof(Key) == sizeof(Float));
  std::memcpy(&bits, &x, sizeof bits);
  constexpr Key kMagnitude = std::numeric_limits<Key>::max();
  if ((bits & kMagnitude) == 0) return 0;
  return bits ^ ((bits >> (8 * sizeof(Key) - 1)) & kMagnitude);
}

}  // namespace

int32_t order_key(float x) {
  return key_of<int32_t>(x);
}
int64_t order_key(double x) {
  return key_of<int64_t>(x);
}

template <class Key>
PackedForest<Key> PackedForest<Key>::of(const Forest& forest, const std::string& place) {
  return Packer<Key>(forest, place).pack();
}

template struct PackedForest<int32_t>;
template struct PackedForest<int64_t>;

}  // namespace neo
