#include "routines/cpu/move/transpose.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// A block of kLanes columns and up to kLanes rows; missing rows read as zero.
NEO_INLINE void transpose_block(const TransposePlane& p, int64_t row, int64_t column, int64_t columns) {
  F32 x[kLanes];
  const float* src = p.src + row * p.src_row + column;
  float* dst = p.dst + column * p.dst_row + row;
  const int64_t rows = p.rows - row < kLanes ? p.rows - row : kLanes;
  const int64_t stored = p.padded_rows - row < kLanes ? p.padded_rows - row : kLanes;
  if (rows == kLanes && columns == kLanes) {
    for (int i = 0; i < kLanes; ++i) x[i] = load(src + i * p.src_row);
    transpose(x);
    for (int i = 0; i < kLanes; ++i) store(dst + i * p.dst_row, x[i]);
    return;
  }
  for (int i = 0; i < kLanes; ++i) x[i] = i < rows ? load_n(src + i * p.src_row, columns) : zero();
  transpose(x);
  for (int64_t i = 0; i < columns; ++i) store_n(dst + i * p.dst_row, x[i], stored);
}

}  // namespace

void transpose_plane(const TransposePlane& p) {
  // A few rows of blocks at a time, so that both sides stay in the first cache.
  constexpr int64_t kColumns = 4 * kLanes;
  for (int64_t first = 0; first < p.columns; first += kColumns) {
    const int64_t last = first + kColumns < p.columns ? first + kColumns : p.columns;
    for (int64_t row = 0; row < p.padded_rows; row += kLanes) {
      for (int64_t column = first; column < last; column += kLanes) {
        transpose_block(p, row, column, last - column < kLanes ? last - column : kLanes);
      }
    }
  }
}

}  // namespace neo::NEO_ISA
