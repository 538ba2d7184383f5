#include "routines/cpu/move/transpose.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

NEO_INLINE F32 load_lanes(const float* p) {
  return load(p);
}
NEO_INLINE F32 load_lanes_n(const float* p, int64_t n) {
  return load_n(p, n);
}
NEO_INLINE void store_lanes(float* p, F32 x) {
  store(p, x);
}
NEO_INLINE void store_lanes_n(float* p, F32 x, int64_t n) {
  store_n(p, x, n);
}
// Bytes are moved as the low ones of 4.
NEO_INLINE F32 load_lanes(const uint8_t* p) {
  return bits_as_f32(load_u8(p));
}
NEO_INLINE F32 load_lanes_n(const uint8_t* p, int64_t n) {
  return bits_as_f32(load_u8_n(p, n));
}
NEO_INLINE void store_lanes(uint8_t* p, F32 x) {
  store_u8(p, bits_as_i32(x));
}
NEO_INLINE void store_lanes_n(uint8_t* p, F32 x, int64_t n) {
  store_u8_n(p, bits_as_i32(x), n);
}

// So are words of 2 bytes.
NEO_INLINE F32 load_lanes(const uint16_t* p) {
  return bits_as_f32(load_u16(p));
}
NEO_INLINE F32 load_lanes_n(const uint16_t* p, int64_t n) {
  return bits_as_f32(load_u16_n(p, n));
}
NEO_INLINE void store_lanes(uint16_t* p, F32 x) {
  store_u16(p, bits_as_i32(x));
}
NEO_INLINE void store_lanes_n(uint16_t* p, F32 x, int64_t n) {
  store_u16_n(p, bits_as_i32(x), n);
}

// A block of kLanes columns and up to kLanes rows; missing rows read as zero.
template <class T>
NEO_INLINE void transpose_block(const ElementPlane<T>& p, int64_t row, int64_t column, int64_t columns) {
  F32 x[kLanes];
  const T* src = p.src + row * p.src_row + column;
  T* dst = p.dst + column * p.dst_row + row;
  const int64_t rows = p.rows - row < kLanes ? p.rows - row : kLanes;
  const int64_t stored = p.padded_rows - row < kLanes ? p.padded_rows - row : kLanes;
  if (rows == kLanes && columns == kLanes) {
    for (int i = 0; i < kLanes; ++i) x[i] = load_lanes(src + i * p.src_row);
    transpose(x);
    for (int i = 0; i < kLanes; ++i) store_lanes(dst + i * p.dst_row, x[i]);
    return;
  }
  for (int i = 0; i < kLanes; ++i) x[i] = i < rows ? load_lanes_n(src + i * p.src_row, columns) : zero();
  transpose(x);
  for (int64_t i = 0; i < columns; ++i) store_lanes_n(dst + i * p.dst_row, x[i], stored);
}

template <class T>
NEO_INLINE void transpose_blocks(const ElementPlane<T>& p) {
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

}  // namespace

void transpose_plane(const TransposePlane& p) {
  transpose_blocks(p);
}

void transpose_words(const WordPlane& p) {
  transpose_blocks(p);
}

void transpose_bytes(const BytePlane& p) {
  transpose_blocks(p);
}

}  // namespace neo::NEO_ISA
