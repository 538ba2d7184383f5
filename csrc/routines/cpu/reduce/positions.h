#pragma once

// Code that the kernels of ArgMax and ArgMin share (*.isa.cpp). A candidate takes the place of the best so far where it
// is better, or, if the last of equals is asked for, where that is not better: NaN stays where it comes first, and is
// passed over or taken else.

#include "base/span.h"
#include "routines/cpu/reduce/reduce_tile.h"
#include "routines/cpu/reduce/typed_reduce.h"

namespace neo::NEO_ISA {

// Positions of float32 numbers.
void float_positions(const TypedReduceArgs& args, int64_t begin, int64_t end);

namespace {

template <bool largest, class T>
NEO_INLINE bool is_better(T a, T b) {
  return largest ? a > b : a < b;
}

template <bool largest, class T>
int64_t find_one_by_one(const T* x, int64_t n, int64_t stride, bool last) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T candidate = x[i * stride], current = x[best * stride];
    if (is_better<largest>(candidate, current) || (last && !is_better<largest>(current, candidate))) best = i;
  }
  return best;
}

// in_row(x, n, last) finds one position, in_columns(x, along, stride, columns, last, positions) those of columns.
template <class T, class InRow, class InColumns>
NEO_INLINE void find_positions(const TypedReduceArgs& args, int64_t begin, int64_t end, InRow in_row,
                               InColumns in_columns) {
  constexpr int64_t kShortRow = 16;
  const ReduceShape& s = args.shape;
  const T* src = (const T*)args.src;
  int64_t* dst = (int64_t*)args.dst;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t last = first + s.rows_per_task < s.outer ? first + s.rows_per_task : s.outer;
      int64_t row = first;
      // Short rows go side by side.
      for (; s.along > 0 && s.along <= kShortRow && row + kReduceColumns <= last; row += kReduceColumns) {
        T columns[kShortRow * kReduceColumns];
        rows_to_columns(src + row * s.along, s.along, columns);
        in_columns(columns, s.along, kReduceColumns, kReduceColumns, args.select_last, dst + row);
      }
      for (; row < last; ++row) dst[row] = in_row(src + row * s.along, s.along, args.select_last);
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    in_columns(src + tile.src, s.along, s.inner, tile.columns, args.select_last, dst + tile.dst);
  }
}

}  // namespace
}  // namespace neo::NEO_ISA
