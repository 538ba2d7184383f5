#include "routines/cpu/index/top_k.h"

#include <string.h>

#include "routines/cpu/eltwise/typed_loops.h"

namespace neo::NEO_ISA {
namespace {

constexpr int64_t kColumns = 32;    // that are compared at once
constexpr int64_t kFewColumns = 1;  // so many are put in their order one by one
constexpr int64_t kWords = kColumns / 8;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// The keys of up to kColumns neighbours: signed numbers in the order of the elements, xor `order`.
template <class Key>
using LoadKeys = void (*)(const void* src, int64_t count, Key order, Key* keys);

template <class T, class Key>
void load_keys(const void* src, int64_t count, Key order, Key* keys) {
  const auto load = [&](int64_t n) NEO_LAMBDA {
    for (int64_t j = 0; j < n; ++j) {
      const T x = ((const T*)src)[j];
      if constexpr ((T)0.5 != (T)0) {
        constexpr Key kMaxKey = (Key)(~(Unsigned<Key>)0 >> 1);
        Key bits;
        memcpy(&bits, &x, sizeof(bits));
        const Key key = (bits & kMaxKey) == 0 ? 0 : bits ^ ((bits >> (8 * sizeof(Key) - 1)) & kMaxKey);
        keys[j] = (x == x ? key : kMaxKey) ^ order;
      } else {
        keys[j] = (Key)x ^ order;
      }
    }
  };
  // A number of columns that is known is what the loop is vectorized for.
  if (count == kColumns) return load(kColumns);
  load(count);
}

// The first elements of each column so far, and where they were.
template <class Key>
struct Kept {
  Key key[TopKColumns::kMaxKept][kColumns];
  Key at[TopKColumns::kMaxKept][kColumns];

  // Puts a row behind those that come before it or are equal; the last of `count` goes.
  __attribute__((noinline)) void insert(const Key* row, Key position, int64_t count) {
    for (int64_t i = count - 1; i > 0; --i) {
#pragma GCC ivdep
#pragma GCC unroll 1
      for (int64_t j = 0; j < kColumns; ++j) {
        const Key above = key[i - 1][j], own = key[i][j], above_at = at[i - 1][j], own_at = at[i][j];
        const bool is_above = row[j] > above, is_own = row[j] > own;
        key[i][j] = is_above ? above : is_own ? row[j] : own;
        at[i][j] = is_above ? above_at : is_own ? position : own_at;
      }
    }
#pragma GCC unroll 1
    for (int64_t j = 0; j < kColumns; ++j) {
      const bool is_first = row[j] > key[0][j];
      key[0][j] = is_first ? row[j] : key[0][j];
      at[0][j] = is_first ? position : at[0][j];
    }
  }

  // The same for one column, whose last key the new one comes before.
  NEO_INLINE void insert_one(int64_t column, Key x, Key position, int64_t count) {
    int64_t i = count - 1;
    for (; i > 0 && x > key[i - 1][column]; --i) {
      key[i][column] = key[i - 1][column];
      at[i][column] = at[i - 1][column];
    }
    key[i][column] = x;
    at[i][column] = position;
  }
};

NEO_INLINE void copy_element(void* to, const void* from, int64_t bytes) {
  switch (bytes) {
    case 1:
      return (void)memcpy(to, from, 1);
    case 2:
      return (void)memcpy(to, from, 2);
    case 4:
      return (void)memcpy(to, from, 4);
    default:
      memcpy(to, from, 8);
  }
}

template <class Key>
NEO_KERNEL keep_first(const TopKColumns& c, LoadKeys<Key> load) {
  const int64_t bytes = lane_bytes(c.lane);
  const Key order = c.largest ? 0 : -1;
  Kept<Key> kept;
  for (int64_t first = 0; first < c.columns; first += kColumns) {
    const int64_t count = c.columns - first < kColumns ? c.columns - first : kColumns;
    const char* src = (const char*)c.src + first * bytes;
    Key row[kColumns] = {};
    for (int64_t i = 0; i < c.size; ++i) {
      load(src + i * c.step * bytes, count, order, row);
      if (i < c.kept) {
        // Rows fill what is kept: the new place takes the row, and then its place in the order.
        memcpy(kept.key[i], row, sizeof(row));
        for (int64_t j = 0; j < kColumns; ++j) kept.at[i][j] = (Key)i;
        if (i > 0) kept.insert(row, (Key)i, i + 1);
        continue;
      }
      uint8_t is_better[kColumns];
      const Key* last = kept.key[c.kept - 1];
      for (int64_t j = 0; j < kColumns; ++j) is_better[j] = row[j] > last[j];
      uint64_t words[kWords];
      memcpy(words, is_better, sizeof(words));
      int count_better = 0;
      for (uint64_t word : words) count_better += __builtin_popcountll(word);
      if (count_better > kFewColumns) {
        kept.insert(row, (Key)i, c.kept);
        continue;
      }
      for (int64_t w = 0; w < kWords && count_better > 0; ++w) {
        for (uint64_t word = words[w]; word != 0; word &= word - 1) {
          const int64_t column = 8 * w + __builtin_ctzll(word) / 8;
          kept.insert_one(column, row[column], (Key)i, c.kept);
        }
      }
    }
    for (int64_t r = 0; r < c.kept; ++r) {
      const int64_t to = r * c.step + first;
      for (int64_t j = 0; c.indices && j < count; ++j) c.indices[to + j] = kept.at[r][j];
      for (int64_t j = 0; c.values && j < count; ++j)
        copy_element((char*)c.values + (to + j) * bytes, src + (kept.at[r][j] * c.step + j) * bytes, bytes);
    }
  }
}

}  // namespace

void top_k_columns(const TopKColumns& c) {
  switch (c.lane) {
    case Lane::F32:
      return keep_first<int32_t>(c, load_keys<float, int32_t>);
    case Lane::F64:
      return keep_first<int64_t>(c, load_keys<double, int64_t>);
    case Lane::I8:
      return keep_first<int32_t>(c, load_keys<int8_t, int32_t>);
    case Lane::U8:
      return keep_first<int32_t>(c, load_keys<uint8_t, int32_t>);
    case Lane::I16:
      return keep_first<int32_t>(c, load_keys<int16_t, int32_t>);
    case Lane::I32:
      return keep_first<int32_t>(c, load_keys<int32_t, int32_t>);
    default:
      return keep_first<int64_t>(c, load_keys<int64_t, int64_t>);
  }
}

}  // namespace neo::NEO_ISA
