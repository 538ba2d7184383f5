#pragma once

// Columns of a reduction that one task works on, for kernels (*.isa.cpp).

#include "base/span.h"
#include "routines/cpu/reduce/reduce.h"

namespace neo::NEO_ISA {

struct ReduceTile {
  int64_t src, dst;  // its first elements
  int64_t columns;

  // The tile of a task, for a shape whose `inner` is more than 1.
  static NEO_INLINE ReduceTile of(const ReduceShape& s, int64_t task) {
    const int64_t tiles = (s.inner + kReduceColumns - 1) / kReduceColumns;
    const int64_t outer = task / tiles, first = task % tiles * kReduceColumns;
    const int64_t columns = s.inner - first < kReduceColumns ? s.inner - first : kReduceColumns;
    return {outer * s.along * s.inner + first, outer * s.inner + first, columns};
  }
};

// Rows of a few elements side by side, as so many columns of kReduceColumns.
template <class T>
__attribute__((noinline)) void rows_to_columns(const T* rows, int64_t along, T* columns) {
  for (int64_t i = 0; i < along; ++i) {
    for (int64_t r = 0; r < kReduceColumns; ++r) columns[i * kReduceColumns + r] = rows[r * along + i];
  }
}

}  // namespace neo::NEO_ISA
