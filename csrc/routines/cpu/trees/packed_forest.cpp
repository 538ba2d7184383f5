#include "routines/cpu/trees/packed_forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/int_math.h"

namespace neo {
namespace {

constexpr int64_t kMinKey = std::numeric_limits<int64_t>::min();
constexpr int64_t kMaxKey = std::numeric_limits<int64_t>::max();
constexpr size_t kWordLeaves = 32;
constexpr size_t kMaxWords = 8;
constexpr int64_t kBlockBytes = 24 << 10;  // beside them the first-level cache holds the keys of a group

// Cycles of a test of one vector of rows beside others and alone, and of a step of one row beside others.
constexpr double kTestCycles = 1.2, kLoneTestCycles = 2.2, kStepCycles = 3.5;

// A branch that asks only "x <= key?"; children are nodes of the list, leaves those of the forest, as ~position.
struct SimpleBranch {
  int64_t key;
  int64_t feature;
  bool missing_is_true;
  int64_t when_true;
  int64_t when_false;
};

// A tree in which nothing is shared, its leaves from those of the true branches on.
struct ExpandedTree {
  struct Node {
    int64_t branch;                 // SimpleBranch
    size_t begin, middle, end;      // leaves; the first ones are reached where the answer is yes
    int64_t when_true, when_false;  // nodes, or ~leaf
  };
  std::vector<Node> nodes;
  std::vector<int64_t> leaves;  // nodes of the forest
};

class Packer {
 public:
  Packer(const Forest& forest, const ForestPacking& packing, const std::string& place)
      : forest_(forest), packing_(packing), place_(place) {}

  PackedForest pack() {
    packed_.targets = forest_.targets;
    simplify();
    check_cycles();
    for (const SimpleBranch& b : branches_) packed_.features = std::max(packed_.features, b.feature + 1);
    NEO_CHECK(packed_.features < (int64_t{1} << 26) && branches_.size() < (size_t{1} << 29) &&
                  forest_.nodes.size() < (size_t{1} << 29),
              Model, "TreeEnsemble", "a forest must have less than 2^26 features and 2^29 branches. Got ",
              packed_.features, " and ", branches_.size(), " - at ", place_);
    assign_slots();
    pairs_.assign(branches_.size(), 0);
    expanded_left_ = static_cast<int64_t>(4 * branches_.size() + 1024);
    packed_.block_begin.push_back(0);
    for (const int64_t root : forest_.roots) place_tree(root);
    packed_.block_begin.push_back(std::ssize(packed_.trees));
    packed_.leaves = std::ssize(leaf_of_);
    packed_.bytes += static_cast<int64_t>(packed_.entries.size() * sizeof(ForestEntry));
    gather_votes();
    return std::move(packed_);
  }

 private:
  // The largest key of a number <= x, and of one < x.
  int64_t key_at_most(double x) const {
    if (std::isnan(x)) return min_key();
    if (packing_.ranked) return order_key(x);
    auto nearest = static_cast<float>(x);
    if (static_cast<double>(nearest) > x) nearest = std::nextafter(nearest, -std::numeric_limits<float>::infinity());
    return order_key(nearest);
  }
  int64_t key_below(double x) const {
    const int64_t at_most = key_at_most(x);
    if (std::isnan(x)) return at_most;
    return packing_.ranked || static_cast<double>(static_cast<float>(x)) == x ? at_most - 1 : at_most;
  }
  // No number has these.
  int64_t min_key() const { return packing_.ranked ? kMinKey : std::numeric_limits<int32_t>::min(); }
  int64_t max_key() const { return packing_.ranked ? kMaxKey : std::numeric_limits<int32_t>::max(); }

  int64_t add(SimpleBranch branch) {
    branches_.push_back(branch);
    return static_cast<int64_t>(branches_.size()) - 1;
  }

  // Adds a branch for "x == value?" and returns where it begins.
  int64_t add_equal(double value, int64_t feature, bool missing, int64_t when_true, int64_t when_false) {
    const int64_t below = add({key_below(value), feature, false, when_false, when_true});
    return add({key_at_most(value), feature, missing, below, when_false});
  }

  void simplify() {
    const auto count = static_cast<int64_t>(forest_.nodes.size());
    first_.assign(static_cast<size_t>(count), 0);
    // Two rounds: branches first name nodes of the forest, then what those became.
    for (int64_t i = 0; i < count; ++i) {
      const TreeNode& n = forest_.nodes[static_cast<size_t>(i)];
      first_[static_cast<size_t>(i)] = n.branch == Branch::Leaf ? ~i : simplify(n);
    }
    for (SimpleBranch& b : branches_) {
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
        return add({key_at_most(n.threshold), n.feature, missing, yes, no});
      case Branch::Less:
        return add({key_below(n.threshold), n.feature, missing, yes, no});
      case Branch::GreaterEqual:
        return add_unless_nan(n, key_below(n.threshold));
      case Branch::Greater:
        return add_unless_nan(n, key_at_most(n.threshold));
      case Branch::Equal:
        return std::isnan(n.threshold) ? add_never(n, no) : add_equal(n.threshold, n.feature, missing, yes, no);
      case Branch::NotEqual:
        // Every number differs from NaN, and no number has the largest keys.
        if (std::isnan(n.threshold)) return add({max_key() - 1, n.feature, missing, yes, no});
        return add_equal(n.threshold, n.feature, !missing, no, yes);
      case Branch::Member:
        break;
      case Branch::Leaf:
        NEO_ASSERT(false, "a leaf has no branch");
    }
    int64_t rest = no;
    // The first member decides for NaN.
    for (const double member : n.members) rest = add_equal(member, n.feature, missing, yes, rest);
    return n.members.empty() ? add_never(n, no) : rest;
  }

  // "x > threshold?" as "x <= threshold?" with its children exchanged. Nothing compares with a threshold of NaN.
  int64_t add_unless_nan(const TreeNode& n, int64_t key) {
    if (std::isnan(n.threshold)) return add_never(n, kNode + n.when_false);
    return add({key, n.feature, !n.missing_is_true, kNode + n.when_false, kNode + n.when_true});
  }

  // A branch that every number takes to `numbers`.
  int64_t add_never(const TreeNode& n, int64_t numbers) {
    return add({min_key(), n.feature, n.missing_is_true, kNode + n.when_true, numbers});
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
        const SimpleBranch& b = branches_[static_cast<size_t>(visit.branch)];
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
    mean_depth_ = leaves == 0 ? 0 : depths / leaves;
  }

  // Keys become ranks where they are, and every branch's feature the number of its slot.
  void assign_slots() {
    std::map<std::pair<int64_t, bool>, int64_t> slots;
    std::map<int64_t, std::vector<int64_t>> thresholds;
    for (const SimpleBranch& b : branches_) {
      slots[{b.feature, b.missing_is_true}] = 0;
      if (packing_.ranked) thresholds[b.feature].push_back(b.key);
    }
    for (auto& [feature, keys] : thresholds) {
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    for (auto& [of, slot] : slots) {
      const auto [feature, missing] = of;
      constexpr auto kMin = std::numeric_limits<int32_t>::min(), kMax = std::numeric_limits<int32_t>::max();
      packed_.slots.push_back({feature, missing ? kMin : kMax});
      slot = std::ssize(packed_.slots);
      if (!packing_.ranked) continue;
      const std::vector<int64_t>& keys = thresholds[feature];
      packed_.rank_begin.push_back(std::ssize(packed_.rank_keys));
      packed_.rank_keys.insert(packed_.rank_keys.end(), keys.begin(), keys.end());
    }
    packed_.rank_begin.push_back(std::ssize(packed_.rank_keys));
    for (SimpleBranch& b : branches_) {
      if (packing_.ranked) {
        const std::vector<int64_t>& keys = thresholds[b.feature];
        b.key = std::lower_bound(keys.begin(), keys.end(), b.key) - keys.begin();
      }
      b.feature = slots[{b.feature, b.missing_is_true}];
    }
  }

  static uint32_t slot_of(const SimpleBranch& b) { return static_cast<uint32_t>(b.feature * kForestRows); }

  void place_tree(int64_t root) {
    const int64_t first = first_[static_cast<size_t>(root)];
    const auto entries = std::ssize(packed_.entries), tests = std::ssize(packed_.tests);
    ForestTree tree{};
    ExpandedTree expanded;
    if (expand(first, expanded)) {
      tree = place_expanded(expanded);
      expanded_left_ -= std::ssize(expanded.nodes) + 1;
    } else {
      tree = place_shared(first);
      packed_.steps += mean_depth_;
    }
    packed_.trees.push_back(tree);
    // Bytes that rows read of it.
    const int64_t bytes = tree.words > 0
                              ? (std::ssize(packed_.tests) - tests) * static_cast<int64_t>(sizeof(ForestTest))
                              : (std::ssize(packed_.entries) - entries) * static_cast<int64_t>(sizeof(ForestEntry));
    block_bytes_ += bytes;
    if (tree.words > 0) packed_.bytes += bytes;
    const int64_t at = std::ssize(packed_.trees) - 1;
    if (block_bytes_ > kBlockBytes || at - packed_.block_begin.back() == kForestBlockTrees) {
      if (at > packed_.block_begin.back()) packed_.block_begin.push_back(at);
      block_bytes_ = bytes;
    }
  }

  // Whether the tree is small enough; then it has all that is reached from `first`.
  bool expand(int64_t first, ExpandedTree& tree) const {
    constexpr size_t kMaxLeaves = kWordLeaves * kMaxWords;
    struct Visit {
      size_t node;
      int next;
    };
    std::vector<Visit> path;
    // ~leaf or node of the tree; none where it has become too large.
    const auto enter = [&](int64_t position) -> std::optional<int64_t> {
      if (position < 0) {
        if (tree.leaves.size() == kMaxLeaves) return std::nullopt;
        tree.leaves.push_back(~position);
        return ~(std::ssize(tree.leaves) - 1);
      }
      if (tree.nodes.size() + 1 == kMaxLeaves || std::ssize(tree.nodes) >= expanded_left_) return std::nullopt;
      path.push_back({tree.nodes.size(), 0});
      tree.nodes.push_back({position, tree.leaves.size(), 0, 0, 0, 0});
      return std::ssize(tree.nodes) - 1;
    };
    if (!enter(first)) return false;
    while (!path.empty()) {
      const size_t at = path.back().node;
      const int next = path.back().next++;
      const SimpleBranch& b = branches_[static_cast<size_t>(tree.nodes[at].branch)];
      if (next == 2) {
        tree.nodes[at].end = tree.leaves.size();
        path.pop_back();
        continue;
      }
      if (next == 1) tree.nodes[at].middle = tree.leaves.size();
      const auto child = enter(next == 0 ? b.when_true : b.when_false);
      if (!child) return false;
      (next == 0 ? tree.nodes[at].when_true : tree.nodes[at].when_false) = *child;
    }
    return true;
  }

  ForestTree place_expanded(const ExpandedTree& tree) {
    ForestTree placed{};
    placed.root = static_cast<uint32_t>(packed_.entries.size());
    placed.first_leaf = static_cast<uint32_t>(leaf_of_.size());
    placed.target = common_target(tree.leaves);
    leaf_of_.insert(leaf_of_.end(), tree.leaves.begin(), tree.leaves.end());
    // Entries, nearest to the root first.
    std::vector<std::pair<uint32_t, int64_t>> waiting = {{placed.root, tree.nodes.empty() ? ~int64_t{0} : 0}};
    packed_.entries.push_back({});
    for (size_t i = 0; i < waiting.size(); ++i) {
      const auto [at, position] = waiting[i];
      if (position < 0) {
        packed_.entries[at] = {static_cast<int32_t>(placed.first_leaf + static_cast<uint32_t>(~position)), 0, at};
        continue;
      }
      const ExpandedTree::Node& n = tree.nodes[static_cast<size_t>(position)];
      const SimpleBranch& b = branches_[static_cast<size_t>(n.branch)];
      const auto pair = static_cast<uint32_t>(packed_.entries.size());
      packed_.entries[at] = {static_cast<int32_t>(b.key), slot_of(b), pair};
      packed_.entries.resize(pair + 2);
      waiting.emplace_back(pair, n.when_true);
      waiting.emplace_back(pair + 1, n.when_false);
    }
    // Every leaf is as far down as the branches that have it.
    double depths = 0;
    for (const ExpandedTree::Node& n : tree.nodes) depths += static_cast<double>(n.end - n.begin);
    const double depth = depths / static_cast<double>(tree.leaves.size());
    packed_.steps += depth;
    place_words(tree, depth, placed);
    return placed;
  }

  void place_words(const ExpandedTree& tree, double depth, ForestTree& placed) {
    const auto words = static_cast<size_t>(ceil_div(std::ssize(tree.leaves), static_cast<int64_t>(kWordLeaves)));
    const size_t first_test = packed_.tests.size();
    placed.first_word = static_cast<uint32_t>(packed_.words.size());
    for (size_t w = 0; w < words; ++w) {
      const auto begin = static_cast<uint32_t>(packed_.tests.size());
      for (const ExpandedTree::Node& n : tree.nodes) {
        const size_t from = std::max(n.begin, w * kWordLeaves), to = std::min(n.middle, (w + 1) * kWordLeaves);
        if (from >= to) continue;
        const uint32_t lost = (0xffffffffU >> (kWordLeaves - (to - from))) << (from - w * kWordLeaves);
        const SimpleBranch& b = branches_[static_cast<size_t>(n.branch)];
        packed_.tests.push_back({static_cast<int32_t>(b.key) + 1, slot_of(b), static_cast<int32_t>(~lost)});
      }
      packed_.words.push_back({begin, static_cast<uint32_t>(packed_.tests.size())});
    }
    const auto tests = static_cast<double>(packed_.tests.size() - first_test + 4 * words);
    const double steps = (depth + 2) * kStepCycles;
    placed.words = static_cast<uint32_t>(words);
    placed.walked_rows = static_cast<uint32_t>(std::min<double>(tests * kLoneTestCycles / steps, packing_.lanes));
    if (tests * kTestCycles / packing_.lanes <= steps) return;
    placed.words = 0;
    placed.walked_rows = kForestRows;
    packed_.tests.resize(first_test);
    packed_.words.resize(placed.first_word);
  }

  // The target that all these leaves vote for once, -1 where there is none.
  int32_t common_target(const std::vector<int64_t>& leaves) const {
    int64_t target = -1;
    for (const int64_t leaf : leaves) {
      const std::vector<Vote>& votes = forest_.nodes[static_cast<size_t>(leaf)].votes;
      if (votes.size() != 1 || (target >= 0 && votes.front().target != target)) return -1;
      target = votes.front().target;
    }
    return static_cast<int32_t>(target);
  }

  // Branches that another tree has placed keep their children there.
  ForestTree place_shared(int64_t first) {
    ForestTree placed{};
    placed.root = static_cast<uint32_t>(packed_.entries.size());
    std::vector<std::pair<uint32_t, int64_t>> waiting = {{placed.root, first}};
    std::vector<int64_t> leaves;
    bool is_alone = true;
    packed_.entries.push_back({});
    for (size_t i = 0; i < waiting.size(); ++i) {
      const auto [at, position] = waiting[i];
      if (position < 0) {
        packed_.entries[at] = {static_cast<int32_t>(leaf_of_.size()), 0, at};
        leaf_of_.push_back(~position);
        leaves.push_back(~position);
        continue;
      }
      const SimpleBranch& b = branches_[static_cast<size_t>(position)];
      uint32_t& pair = pairs_[static_cast<size_t>(position)];
      if (pair == 0) {
        pair = static_cast<uint32_t>(packed_.entries.size());
        packed_.entries.resize(pair + 2);
        waiting.emplace_back(pair, b.when_true);
        waiting.emplace_back(pair + 1, b.when_false);
      } else {
        is_alone &= pair > placed.root;
      }
      packed_.entries[at] = {static_cast<int32_t>(b.key), slot_of(b), pair};
    }
    placed.walked_rows = kForestRows;
    placed.target = is_alone ? common_target(leaves) : -1;
    return placed;
  }

  void gather_votes() {
    const auto leaves = std::ssize(leaf_of_);
    const bool adds = forest_.aggregate == Aggregate::Sum || forest_.aggregate == Aggregate::Average;
    bool one = adds, all = adds;
    int64_t count = 0;
    for (const ForestTree& tree : packed_.trees) one &= tree.target >= 0;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      count += std::ssize(votes_of(leaf));
      all &= votes_differ(votes_of(leaf));
    }
    constexpr int64_t kMaxBlanks = 4;
    if (one) {
      packed_.form = PackedForest::Votes::One;
      packed_.values.resize(leaf_of_.size());
      for (int64_t leaf = 0; leaf < leaves; ++leaf)
        packed_.values[static_cast<size_t>(leaf)] = votes_of(leaf).front().weight;
    } else if (all && forest_.targets <= kMaxBlanks * count / std::max<int64_t>(1, leaves)) {
      packed_.form = PackedForest::Votes::All;
      packed_.values.resize(leaf_of_.size() * static_cast<size_t>(forest_.targets));
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        for (const Vote& v : votes_of(leaf))
          packed_.values[static_cast<size_t>(leaf * forest_.targets + v.target)] = v.weight;
      }
    } else {
      packed_.form = PackedForest::Votes::List;
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        packed_.votes_begin.push_back(static_cast<uint32_t>(packed_.votes.size()));
        packed_.votes.insert(packed_.votes.end(), votes_of(leaf).begin(), votes_of(leaf).end());
      }
      packed_.votes_begin.push_back(static_cast<uint32_t>(packed_.votes.size()));
    }
  }

  // Two votes for a target are two sums.
  static bool votes_differ(const std::vector<Vote>& votes) {
    std::vector<int64_t> targets;
    for (const Vote& v : votes) targets.push_back(v.target);
    std::sort(targets.begin(), targets.end());
    return std::adjacent_find(targets.begin(), targets.end()) == targets.end();
  }

  const std::vector<Vote>& votes_of(int64_t leaf) const {
    return forest_.nodes[static_cast<size_t>(leaf_of_[static_cast<size_t>(leaf)])].votes;
  }

  static constexpr int64_t kNode = int64_t{1} << 40;  // marks a position in the forest

  const Forest& forest_;
  const ForestPacking& packing_;
  const std::string& place_;
  std::vector<SimpleBranch> branches_;
  std::vector<int64_t> first_;    // by node of the forest: its first branch, or ~itself where it is a leaf
  std::vector<uint32_t> pairs_;   // by branch: where its children lie, 0: nowhere yet
  std::vector<int64_t> leaf_of_;  // by number: node of the forest
  double mean_depth_ = 0;
  int64_t expanded_left_ = 0;  // branches of expanded trees, which share nothing
  int64_t block_bytes_ = 0;
  PackedForest packed_;
};

}  // namespace

PackedForest PackedForest::of(const Forest& forest, const ForestPacking& packing, const std::string& place) {
  return Packer(forest, packing, place).pack();
}

}  // namespace neo
