#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/forest.h"

namespace neo {

// Integers in the order of the floating-point numbers they stand for, so that comparing needs no floating-point mode.
// Zeros of both signs have one key; NaN has none.
int32_t order_key(float x);
int64_t order_key(double x);

// Rows that descend a tree together: the steps of one wait for memory while others go on.
inline constexpr int64_t kForestLanes = 8;

// A forest in which every branch asks "key of the feature <= key?" and lies with its sibling behind it, so that a step
// down is a load, a comparison and an addition. A leaf is its own child.
template <class Key>
struct PackedForest {
  struct Entry {
    Key key;
    uint32_t feature;  // in kForestLanes: keys of a feature lie side by side for all lanes
    uint32_t child;    // where the answer is yes; the one behind it where it is no
  };
  struct Tree {
    uint32_t root;
    int32_t target;  // of all its leaves, which vote once each with `value`; -1: leaves have `votes`
  };

  std::vector<Entry> entries;
  std::vector<Tree> trees;
  std::vector<double> value;          // by entry
  std::vector<uint32_t> votes_begin;  // by entry, and the end of the last; empty where every tree has a target
  std::vector<Vote> votes;
  int64_t features = 0;      // that rows must have at least
  bool has_missing = false;  // some branches answer yes to NaN: they look at a second copy of the features, in which
                             // NaN has the smallest key instead of the largest
  double mean_depth = 0;     // of the leaves

  // Throws a ModelError at `place` where a tree has a cycle or the forest is too large.
  static PackedForest of(const Forest& forest, const std::string& place);
};

extern template struct PackedForest<int32_t>;
extern template struct PackedForest<int64_t>;

}  // namespace neo
