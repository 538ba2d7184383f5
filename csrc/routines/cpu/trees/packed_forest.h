#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ops/forest.h"
#include "routines/cpu/trees/forest.h"

namespace neo {

// Integers in the order of the floating-point numbers they stand for. Zeros of both signs have one key; NaN has none.
template <class Key, class Float>
inline Key order_key_of(Float x) {
  static_assert(sizeof(Key) == sizeof(Float));
  const Key bits = std::bit_cast<Key>(x);
  constexpr Key kMagnitude = std::numeric_limits<Key>::max();
  if ((bits & kMagnitude) == 0) return 0;
  return bits ^ ((bits >> (8 * sizeof(Key) - 1)) & kMagnitude);
}
inline int32_t order_key(float x) {
  return order_key_of<int32_t>(x);
}
inline int64_t order_key(double x) {
  return order_key_of<int64_t>(x);
}

struct ForestPacking {
  bool ranked = false;  // features are compared as doubles: a key is a rank among the thresholds of its feature
  int lanes = 8;        // of the vectors that test rows
};

// A forest in which every branch asks "key <= bound?".
struct PackedForest {
  // How the votes of leaves are held.
  enum class Votes : uint8_t {
    One,   // one value per leaf, for the target of its tree
    All,   // one value per leaf and target
    List,  // votes[votes_begin[leaf]] up to votes_begin[leaf + 1]
  };

  std::vector<ForestTree> trees;
  std::vector<ForestEntry> entries;
  std::vector<ForestWord> words;
  std::vector<ForestTest> tests;
  Votes form = Votes::One;
  std::vector<double> values;
  std::vector<uint32_t> votes_begin;
  std::vector<Vote> votes;
  int64_t targets = 0;
  int64_t leaves = 0;

  std::vector<ForestSlot> slots;     // slot i + 1; slot 0 has the smallest keys
  std::vector<int64_t> rank_begin;   // by slot, and the end of the last, where keys are ranks
  std::vector<int64_t> rank_keys;    // order keys of thresholds, ascending
  int64_t features = 0;              // that rows must have at least
  double steps = 0;                  // down all trees, to leaves of mean depth
  std::vector<int64_t> block_begin;  // trees that are in the first-level cache together, and the end of the last
  int64_t bytes = 0;

  // Throws a ModelError at `place` where a tree has a cycle or the forest is too large.
  static PackedForest of(const Forest& forest, const ForestPacking& packing, const std::string& place);
  ForestView view() const { return {trees.data(), entries.data(), words.data(), tests.data(), values.data(), targets}; }
};

}  // namespace neo
