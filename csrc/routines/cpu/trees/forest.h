#pragma once

#include <stdint.h>

// Types that packing, step and kernel of a forest share.

namespace neo {

// Rows whose keys lie side by side: the key of row r of a group is keys[slot * kForestRows + r].
inline constexpr int64_t kForestRows = 32;

// Fewer rows descend several trees together; where there are more, each tree is done for all of them.
inline constexpr int64_t kForestFewRows = 4;

// From the leaves of one tree to those of the next.
static inline int64_t leaf_stride(int64_t rows) {
  return rows < kForestFewRows ? kForestFewRows : kForestRows;
}

// Trees whose leaves are found before the votes of those are summed.
inline constexpr int64_t kForestBlockTrees = 64;

// A branch, or a leaf, of a tree that is walked. The next entry is `child`, or the one behind it where the key of the
// slot is larger than `key`. A leaf is its own child, asks slot 0, where all keys are the smallest, and has its number
// for a key.
struct ForestEntry {
  int32_t key;
  uint32_t slot;  // times kForestRows
  uint32_t child;
};

// A branch of a tree whose leaves are bits of words, as in QuickScorer (Lucchese et al. 2015): where the key of the
// slot is not below `bound`, only the leaves `kept` remain.
struct ForestTest {
  int32_t bound;
  uint32_t slot;  // times kForestRows
  int32_t kept;
};

// The tests that 32 consecutive leaves need.
struct ForestWord {
  uint32_t begin, end;
};

struct ForestTree {
  uint32_t root;        // entry
  uint32_t first_leaf;  // number of the first bit's leaf, where the tree has words
  uint32_t first_word, words;
  uint32_t walked_rows;  // so many rows of a group, or fewer, walk; without words any number does
  int32_t target;        // of all leaves, which vote once each; -1: leaves have votes
};

struct ForestView {
  const ForestTree* trees;
  const ForestEntry* entries;
  const ForestWord* words;
  const ForestTest* tests;
  const double* values;  // by leaf: its one vote, or one sum of votes per target
  int64_t targets;
};

// Keys of a column of features. NaN has the smallest key or the largest, as its branches want it.
struct ForestSlot {
  int64_t feature;
  int32_t nan_key;
};

// A key is an integer in the order of the numbers, so that comparing needs no floating-point mode.
struct ForestKeysArgs {
  const float* x;  // `rows` times `features`
  int64_t rows, features;
  const ForestSlot* slots;  // in the order of their features
  int64_t slot_count;
  int32_t* keys;
};

}  // namespace neo
