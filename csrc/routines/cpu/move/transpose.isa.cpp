#include "routines/cpu/move/transpose.h"

#include "simd/dot.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Elements of 2 bytes or of one are moved as parts of words of 4, which neighbours in a row of the source make.
template <class T>
constexpr int64_t kInWord = 4 / (int64_t)sizeof(T);

NEO_INLINE F32 load_words(const float* p, int64_t n) {
  return n == kLanes ? load(p) : load_n(p, n);
}
template <class T>
NEO_INLINE F32 load_words(const T* p, int64_t n) {
#if defined(NEO_ISA_AVX512) || defined(NEO_ISA_AVX2)
  return load_words((const float*)p, n);
#else
  float words[kLanes] = {};
  __builtin_memcpy(words, p, (size_t)(n * 4));
  return load(words);
#endif
}

// Part k of every word, as the first n elements of a row of the destination.
template <int k>
NEO_INLINE void store_part(float* p, F32 x, int64_t n) {
  n == kLanes ? store(p, x) : store_n(p, x, n);
}
template <int k>
NEO_INLINE void store_part(uint16_t* p, F32 x, int64_t n) {
  const I32 part = shift_right_logical<16 * k>(bits_as_i32(x));
  n == kLanes ? store_u16(p, part) : store_u16_n(p, part, n);
}
template <int k>
NEO_INLINE void store_part(uint8_t* p, F32 x, int64_t n) {
  const I32 part = shift_right_logical<8 * k>(bits_as_i32(x)) & broadcast_i32(0xff);
  n == kLanes ? store_u8(p, part) : store_u8_n(p, part, n);
}
template <class T>
NEO_INLINE void store_parts(T* p, int64_t row, F32 x, int64_t n) {
  store_part<0>(p, x, n);
  if constexpr (kInWord<T> >= 2) store_part<1>(p + row, x, n);
  if constexpr (kInWord<T> == 4) {
    store_part<2>(p + 2 * row, x, n);
    store_part<3>(p + 3 * row, x, n);
  }
}

// Blocks of channels to pixels that lie side by side, kLanes words of columns by up to kLanes rows.
NEO_INLINE bool stores_pixels(const BytePlane& p, int64_t row, int64_t words) {
  return kHasDotBytes && words == kLanes && p.dst_row == kLanes && row == 0 && p.padded_rows == kLanes;
}
// The reverse, sixteen pixels at a time from `row` on; returns the first row that is left.
NEO_INLINE int64_t split_pixels([[maybe_unused]] const BytePlane& p) {
  int64_t row = 0;
#if defined(NEO_ISA_AVX512)
  if (p.src_row != kLanes || p.columns > kLanes || p.padded_rows != p.rows) return 0;
  const uint8_t* src = p.src;
  for (; row + kLanes <= p.rows; row += kLanes, src += kLanes * kLanes) {
    __m512i x[4];
    for (int i = 0; i < 4; ++i) x[i] = load_columns(src + 4 * i * kLanes).v;
    const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]);
    const __m512i c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);
    // Part l of vector k has channel 4 l + k.
    const __m512i y[] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c), _mm512_unpacklo_epi64(b, d),
                         _mm512_unpackhi_epi64(b, d)};
    alignas(64) uint8_t pixels[4][64];
    for (int k = 0; k < 4; ++k) _mm512_store_si512(pixels[k], y[k]);
    for (int64_t j = 0; j < p.columns; ++j)
      __builtin_memcpy(p.dst + j * p.dst_row + row, pixels[j % 4] + j / 4 * kLanes, kLanes);
  }
#endif
  return row;
}
// A block of up to kLanes words of columns and up to kLanes rows; missing rows read as zero.
template <class T>
NEO_INLINE void transpose_block(const ElementPlane<T>& p, int64_t row, int64_t column, int64_t words) {
  F32 x[kLanes];
  const T* src = p.src + row * p.src_row + column;
  T* dst = p.dst + column * p.dst_row + row;
  const int64_t step = kInWord<T> * p.dst_row;
  const int64_t rows = p.rows - row < kLanes ? p.rows - row : kLanes;
  const int64_t stored = p.padded_rows - row < kLanes ? p.padded_rows - row : kLanes;
  if constexpr (sizeof(T) == 1) {
    if (stores_pixels(p, row, words)) {
      for (int i = 0; i < kLanes; ++i) x[i] = i < rows ? load_words(src + i * p.src_row, kLanes) : zero();
      transpose(x);
      for (int i = 0; i < kLanes; ++i) store_columns((uint8_t*)dst + i * step, bits_as_i32(x[i]));
      return;
    }
  }
  if (rows == kLanes && words == kLanes) {
    for (int i = 0; i < kLanes; ++i) x[i] = load_words(src + i * p.src_row, kLanes);
    transpose(x);
    for (int i = 0; i < kLanes; ++i) store_parts(dst + i * step, p.dst_row, x[i], kLanes);
    return;
  }
  for (int i = 0; i < kLanes; ++i) x[i] = i < rows ? load_words(src + i * p.src_row, words) : zero();
  transpose(x);
  if (stored == kLanes) {
    for (int64_t i = 0; i < words; ++i) store_parts(dst + i * step, p.dst_row, x[i], kLanes);
  } else {
    for (int64_t i = 0; i < words; ++i) store_parts(dst + i * step, p.dst_row, x[i], stored);
  }
}

// Columns that make no whole word.
template <class T>
NEO_INLINE void transpose_columns(const ElementPlane<T>& p) {
  for (int64_t j = 0; j < p.columns; ++j) {
    T* dst = p.dst + j * p.dst_row;
    for (int64_t i = 0; i < p.rows; ++i) dst[i] = p.src[i * p.src_row + j];
    for (int64_t i = p.rows; i < p.padded_rows; ++i) dst[i] = 0;
  }
}

// Pixels of `n` interleaved channels become planes, or planes become pixels. Loops are vectorized for a number that is
// known; the last pixels are those of a whole block, of which some are moved once more.
template <int n, bool splits, class T>
__attribute__((noinline)) void move_channels(const T* __restrict src, T* __restrict dst, int64_t plane,
                                             int64_t pixels) {
  for (int64_t first = 0; first < pixels; first += kPixels<T>) {
    const int64_t i = first + kPixels<T> <= pixels ? first : pixels - kPixels<T>;
#pragma GCC unroll 1
    for (int64_t j = i; j < i + kPixels<T>; ++j) {
#pragma GCC unroll 4
      for (int c = 0; c < n; ++c) dst[splits ? c * plane + j : n * j + c] = src[splits ? n * j + c : c * plane + j];
    }
  }
}

template <int n, class T>
NEO_INLINE void move_either(const ElementPlane<T>& p) {
  if (p.columns == n && p.src_row == n) return move_channels<n, true>(p.src, p.dst, p.dst_row, p.rows);
  move_channels<n, false>(p.src, p.dst, p.src_row, p.columns);
}

template <class T>
NEO_INLINE void transpose_blocks(const ElementPlane<T>& p) {
  constexpr int64_t kWord = kInWord<T>, kBlock = kLanes * kWord;
  const int64_t channels = few_channels(p);
  if (channels == 3) return move_either<3>(p);
  if constexpr (sizeof(T) != 2) {
    if (channels == 2) return move_either<2>(p);
    if (channels == 4) return move_either<4>(p);
  }
  if (p.columns < kWord) return transpose_columns(p);
  // A few rows of blocks at a time, so that both sides stay in the first cache.
  constexpr int64_t kColumns = 4 * kLanes > kBlock ? 4 * kLanes : kBlock;
  // Parts of vectors are stored one by one: the last rows are those of a whole one, of which some are moved once more.
  const bool overlaps = kWord > 1 && p.padded_rows == p.rows && p.rows >= kLanes;
  for (int64_t first = 0; first < p.columns; first += kColumns) {
    const int64_t last = first + kColumns < p.columns ? first + kColumns : p.columns;
    for (int64_t i = 0; i < p.padded_rows; i += kLanes) {
      const int64_t row = overlaps && i + kLanes > p.rows ? p.rows - kLanes : i;
      for (int64_t column = first; column < last; column += kBlock) {
        const int64_t left = last - column, words = left / kWord < kLanes ? left / kWord : kLanes;
        if (words > 0) transpose_block(p, row, column, words);
        if (left > words * kWord && words < kLanes) transpose_block(p, row, last - kWord, 1);
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
  if constexpr (!kHasDotBytes) return transpose_blocks(p);
  const int64_t row = split_pixels(p);
  if (row == p.rows && row > 0) return;
  BytePlane rest = p;
  rest.src += row * p.src_row;
  rest.dst += row;
  rest.rows -= row;
  rest.padded_rows -= row;
  transpose_blocks(rest);
}

}  // namespace neo::NEO_ISA
