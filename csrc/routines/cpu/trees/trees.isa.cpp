#include "routines/cpu/trees/forest.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kWalkers = 8;       // descents that go on together: while one waits for memory others do not
constexpr int kTreeWalkers = 12;  // of several trees, which lie further apart

NEO_INLINE I32 keys_of(I32 bits, int32_t nan_key) {
  const I32 magnitude = broadcast_i32(INT32_MAX);
  const I32 ordered = bits ^ (shift_right<31>(bits) & magnitude);
  const I32 zeros = select(eq(bits, broadcast_i32(INT32_MIN)), broadcast_i32(0), ordered);
  return select(gt(bits & magnitude, broadcast_i32(0x7f800000)), broadcast_i32(nan_key), zeros);
}

int32_t key_of(float x, int32_t nan_key) {
  int32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const int32_t magnitude = bits & INT32_MAX;
  if (magnitude > 0x7f800000) return nan_key;
  return bits < 0 ? -magnitude - (magnitude != 0) : bits;
}

// The keys of `rows` rows of a group from `first` on, with lanes that have no row.
void group_keys(const ForestKeysArgs& a, int64_t first, int64_t rows, int32_t* keys) {
  for (int64_t r = 0; r < kForestRows; ++r) keys[r] = INT32_MIN;
  keys += kForestRows;
  const float* x = a.x + first * a.features;
  if (rows < kForestFewRows) {
    for (int64_t s = 0; s < a.slot_count; ++s) {
      for (int64_t r = 0; r < kForestFewRows; ++r) {
        keys[s * kForestRows + r] = r < rows ? key_of(x[r * a.features + a.slots[s].feature], a.slots[s].nan_key) : 0;
      }
    }
    return;
  }
  for (int64_t r = 0; r < (rows + kWalkers - 1) / kWalkers * kWalkers; r += kLanes) {
    int64_t s = 0;
    while (s < a.slot_count) {
      const int64_t f = a.slots[s].feature;
      const int64_t n = a.features - f < kLanes ? a.features - f : kLanes;
      F32 lanes[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const float* row = x + (r + i) * a.features + f;
        lanes[i] = r + i >= rows ? zero() : n == kLanes ? load(row) : load_n(row, n);
      }
      transpose(lanes);
      for (; s < a.slot_count && a.slots[s].feature < f + kLanes; ++s) {
        const I32 bits = bits_as_i32(lanes[a.slots[s].feature - f]);
        store_i32(keys + s * kForestRows + r, keys_of(bits, a.slots[s].nan_key));
      }
    }
  }
}

// Leaves of `count` vectors of rows. Every test is made for every row: what it costs does not depend on the rows.
template <int count>
NEO_INLINE void test_rows(const ForestView& f, const ForestTree& tree, const int32_t* keys, uint32_t* leaves) {
  I32 leaf[count];
  for (int v = 0; v < count; ++v) leaf[v] = broadcast_i32(0);
  for (int64_t w = (int64_t)tree.words - 1; w >= 0; --w) {
    const ForestWord word = f.words[tree.first_word + w];
    I32 left[count];
    for (int v = 0; v < count; ++v) left[v] = broadcast_i32(-1);
    for (const ForestTest* t = f.tests + word.begin; t != f.tests + word.end; ++t) {
      const I32 bound = broadcast_i32(t->bound), kept = broadcast_i32(t->kept);
      const int32_t* x = keys + t->slot;
      for (int v = 0; v < count; ++v) {
        left[v] = left[v] & select(gt(bound, load_i32(x + v * kLanes)), broadcast_i32(-1), kept);
      }
    }
    // The number of the lowest bit is the exponent of its float.
    const I32 number = broadcast_i32((int32_t)(tree.first_leaf + 32 * w) - 127);
    for (int v = 0; v < count; ++v) {
      const I32 lowest = left[v] & (broadcast_i32(0) - left[v]);
      const I32 exponent = shift_right_logical<23>(bits_as_i32(to_f32(lowest))) & broadcast_i32(0xff);
      leaf[v] = select(eq(left[v], broadcast_i32(0)), leaf[v], exponent + number);
    }
  }
  for (int v = 0; v < count; ++v) store_i32((int32_t*)leaves + v * kLanes, leaf[v]);
}

// Entries of leaves below `at`; key(i, slot) are the keys of descent i.
template <int count, class F>
NEO_INLINE void walk(const ForestEntry* entries, uint32_t (&at)[count], const F& key) {
  const auto step = [&](int i) NEO_LAMBDA {
    const ForestEntry& e = entries[at[i]];
    return e.child + (uint32_t)(key(i, e.slot) > e.key);
  };
  uint32_t moved;
  do {
    // A leaf stays where it is: not every step needs to be the last.
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) at[i] = step(i);
    moved = 0;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const uint32_t next = step(i);
      moved |= next ^ at[i];
      at[i] = next;
    }
  } while (moved != 0);
}

NEO_INLINE void walk_rows(const ForestView& f, const ForestTree& tree, const int32_t* keys, int64_t rows,
                          uint32_t* leaves) {
  for (int64_t r = 0; r < rows; r += kWalkers) {
    uint32_t at[kWalkers];
    for (int i = 0; i < kWalkers; ++i) at[i] = tree.root;
    const int32_t* x = keys + r;
    walk(f.entries, at, [x](int i, uint32_t slot) NEO_LAMBDA { return (x + i)[slot]; });
    for (int i = 0; i < kWalkers; ++i) leaves[r + i] = (uint32_t)f.entries[at[i]].key;
  }
}

// One row in several trees.
NEO_INLINE void walk_trees(const ForestView& f, const ForestTree* trees, int64_t count, const int32_t* x,
                           uint32_t* leaves) {
  for (int64_t t = 0; t < count; t += kTreeWalkers) {
    const int64_t last = count - 1 - t;
    uint32_t at[kTreeWalkers];
    for (int i = 0; i < kTreeWalkers; ++i) at[i] = trees[t + (i < last ? i : last)].root;
    walk(f.entries, at, [x](int, uint32_t slot) NEO_LAMBDA { return x[slot]; });
    for (int i = 0; i < kTreeWalkers && i <= last; ++i) {
      leaves[(t + i) * kForestFewRows] = (uint32_t)f.entries[at[i]].key;
    }
  }
}

// Some rows in several trees: where the rows of one tree end those of the next begin.
NEO_INLINE void walk_pairs(const ForestView& f, const ForestTree* trees, int64_t count, const int32_t* keys,
                           int64_t rows, uint32_t* leaves) {
  int64_t tree = 0, row = 0;
  while (tree < count) {
    const int32_t* x[kTreeWalkers];
    uint32_t at[kTreeWalkers];
    uint32_t* to[kTreeWalkers];
    uint32_t unused;
    for (int i = 0; i < kTreeWalkers; ++i) {
      const bool exists = tree < count;
      x[i] = keys + (exists ? row : 0);
      at[i] = trees[exists ? tree : count - 1].root;
      to[i] = exists ? leaves + tree * kForestRows + row : &unused;
      if (++row == rows) {
        row = 0;
        ++tree;
      }
    }
    walk(f.entries, at, [&x](int i, uint32_t slot) NEO_LAMBDA { return x[i][slot]; });
    for (int i = 0; i < kTreeWalkers; ++i) *to[i] = (uint32_t)f.entries[at[i]].key;
  }
}

}  // namespace

void forest_keys(const ForestKeysArgs& a) {
  const int64_t group = (a.slot_count + 1) * kForestRows;
  for (int64_t r = 0; r < a.rows; r += kForestRows) {
    group_keys(a, r, a.rows - r < kForestRows ? a.rows - r : kForestRows, a.keys + r / kForestRows * group);
  }
}

// leaves[i * leaf_stride(rows) + r]: the number of row r's leaf in tree i of those from `trees` on.
void forest_leaves(const ForestView& f, const ForestTree* trees, int64_t count, const int32_t* keys, int64_t rows,
                   uint32_t* leaves) {
  if (rows < kForestFewRows) {
    for (int64_t r = 0; r < rows; ++r) walk_trees(f, trees, count, keys + r, leaves + r);
    return;
  }
  for (int64_t i = 0; i < count; ++i, leaves += kForestRows) {
    const bool walks = rows <= trees[i].walked_rows;
    if (walks && rows % kWalkers == 0) {
      walk_rows(f, trees[i], keys, rows, leaves);
      continue;
    }
    if (walks) {
      int64_t walked = 1;
      while (i + walked < count && rows <= trees[i + walked].walked_rows) ++walked;
      walk_pairs(f, trees + i, walked, keys, rows, leaves);
      i += walked - 1;
      leaves += (walked - 1) * kForestRows;
      continue;
    }
    int64_t r = 0;
    for (; rows - r > 2 * kLanes; r += 4 * kLanes) test_rows<4>(f, trees[i], keys + r, leaves + r);
    for (; rows - r > kLanes; r += 2 * kLanes) test_rows<2>(f, trees[i], keys + r, leaves + r);
    for (; rows - r > 0; r += kLanes) test_rows<1>(f, trees[i], keys + r, leaves + r);
  }
}

// Adds the one vote of each of these leaves to sums[r * targets + target].
void forest_sum_one(const ForestView& f, const ForestTree* trees, int64_t count, const uint32_t* leaves, int64_t rows,
                    double* sums) {
  const int64_t stride = leaf_stride(rows);
  if (f.targets > 1) {
    for (int64_t i = 0; i < count; ++i) {
      double* sum = sums + trees[i].target;
      for (int64_t r = 0; r < rows; ++r) sum[r * f.targets] += f.values[leaves[i * stride + r]];
    }
    return;
  }
  constexpr int kSums = 8;
  int64_t r = 0;
  for (; r + kSums <= rows; r += kSums) {
    double sum[kSums];
    for (int k = 0; k < kSums; ++k) sum[k] = sums[r + k];
    for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < kSums; ++k) sum[k] += f.values[leaves[i * stride + r + k]];
    }
    for (int k = 0; k < kSums; ++k) sums[r + k] = sum[k];
  }
  for (; r < rows; ++r) {
    double sum = sums[r];
    for (int64_t i = 0; i < count; ++i) sum += f.values[leaves[i * stride + r]];
    sums[r] = sum;
  }
}

// Adds the votes of each of these leaves, one for every target.
void forest_sum_all(const ForestView& f, int64_t count, const uint32_t* leaves, int64_t rows, double* sums) {
  const int64_t stride = leaf_stride(rows);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      const double* votes = f.values + leaves[i * stride + r] * f.targets;
      double* sum = sums + r * f.targets;
      for (int64_t t = 0; t < f.targets; ++t) sum[t] += votes[t];
    }
  }
}

}  // namespace neo::NEO_ISA
