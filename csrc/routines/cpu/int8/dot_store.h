#pragma once

// How kernels read codes, and how their sums become the result (DotResult).

#include "routines/cpu/int8/dot_tile.h"
#include "simd/bytes.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {

NEO_INLINE I32 load_codes(const uint8_t* p, bool is_signed) {
  return is_signed ? load_i8((const int8_t*)p) : load_u8(p);
}

// Two vectors of codes.
typedef uint8_t PairBytes __attribute__((vector_size(2 * kLanes)));
typedef int16_t PairWords __attribute__((vector_size(4 * kLanes)));

// kLanes bytes from each address.
NEO_INLINE PairBytes load_pair(const uint8_t* a, const uint8_t* b) {
#ifdef NEO_ISA_AVX512
  const auto half = [](const uint8_t* p) NEO_LAMBDA { return _mm_loadu_si128((const __m128i*)p); };
  return (PairBytes)_mm256_inserti128_si256(_mm256_castsi128_si256(half(a)), half(b), 1);
#elif defined(NEO_ISA_AVX2)
  uint64_t halves[2];
  __builtin_memcpy(&halves[0], a, 8);
  __builtin_memcpy(&halves[1], b, 8);
  return (PairBytes)_mm_set_epi64x((int64_t)halves[1], (int64_t)halves[0]);
#else
  PairBytes bytes;
  __builtin_memcpy(&bytes, a, kLanes);
  __builtin_memcpy((uint8_t*)&bytes + kLanes, b, kLanes);
  return bytes;
#endif
}

// Codes as bytes that count from 0 on.
NEO_INLINE void copy_as_bytes(uint8_t* dst, const uint8_t* src, int64_t count, bool is_signed) {
  if (!is_signed) {
    __builtin_memcpy(dst, src, (size_t)count);
    return;
  }
  // Whole words first: compilers leave a loop over bytes that may overlap as it is.
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t bytes;
    __builtin_memcpy(&bytes, src + i, 8);
    bytes ^= 0x8080808080808080u;
    __builtin_memcpy(dst + i, &bytes, 8);
  }
  for (; i < count; ++i) dst[i] = (uint8_t)(src[i] ^ 0x80);
}

NEO_INLINE void store_codes(uint8_t* p, I32 codes, bool is_signed, int64_t count) {
  if (count >= kLanes) {
    is_signed ? store_i8((int8_t*)p, codes) : store_u8(p, codes);
  } else {
    is_signed ? store_i8_n((int8_t*)p, codes, count) : store_u8_n(p, codes, count);
  }
}

// Divides by the scale of codes of 8 bits and rounds. The product with the reciprocal is within 3 * 2^-24 of the
// quotient's magnitude, which is below 256: lanes are divided where that could round to another code.
struct CodesDivisor {
  F32 scale, reciprocal, sure;

  NEO_INLINE explicit CodesDivisor(float by)
      : scale(broadcast(by)),
        reciprocal(broadcast(1 / by)),
        sure(broadcast(by > 1e-30f && by < 1e30f ? 0.4999f : -1.0f)) {}

  // Codes of x, and the lanes that are sure to have the quotient's.
  NEO_INLINE Mask nearby(F32 x, F32 lo, F32 hi, I32& codes) const {
    const F32 steps = min(hi, max(lo, x * reciprocal));
    codes = round_to_i32(steps);
    return lt(abs(steps - to_f32(codes)), sure);
  }

  NEO_INLINE I32 exact(F32 x, F32 lo, F32 hi) const {
    const F32 steps = x / scale;
    return round_to_i32(select(is_nan(steps), zero(), min(hi, max(lo, steps))));
  }

  // round(x / scale) between lo and hi; 0 of a NaN.
  NEO_INLINE I32 round(F32 x, F32 lo, F32 hi) const {
    I32 codes;
    return all(nearby(x, lo, hi, codes)) ? codes : exact(x, lo, hi);
  }
};

// Whether sums become codes by scale and addend alone.
NEO_INLINE bool is_plain(const DotResult& result, const uint8_t* residual) {
  return !residual && !result.addend && !result.is_whole && !result.is_float;
}

// The first `count` of R rows of a vector of sums, sum_of(row), as codes of a plain result.
template <int R, bool kMayPad, class SumOf>
NEO_INLINE void store_plain(const DotResult& result, int64_t column, uint8_t* dst, int64_t dst_row, int64_t count,
                            const SumOf& sum_of) {
  const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
  const F32 scale = load(result.scale + column), add = load(result.add + column);
  const I32 zero_point = broadcast_i32(result.zero), mask = load_i32(result.mask + column);
#pragma GCC unroll 4
  for (int r = 0; r < R; r += 4) {
    const int rows = R - r < 4 ? R - r : 4;
    I32 steps[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (i >= rows) {
        steps[i] = steps[i - rows];
        continue;
      }
      steps[i] = round_to_i32(min(hi, max(lo, to_f32(sum_of(r + i)) * scale + add)));
      if (kMayPad) steps[i] = (steps[i] + zero_point) & mask;
    }
    if (r == 0 || r < count) {
      store_four(dst + r * dst_row, dst_row, count - r < rows ? count - r : rows, steps[0], steps[1], steps[2],
                 steps[3], kMayPad ? 0 : result.zero, result.is_signed);
    }
  }
}

// The sums of a tile, row by row, as its result says.
void store_tile(const DotTile& tile, const int32_t* sums, int64_t vectors, int64_t rows);

// The first `count` lanes of rows of a vector of sums each, of which the result's elements are `row` apart from element
// `at` on.
void store_rows(const int32_t* sums, int64_t rows, const DotResult& result, int64_t column, int64_t count, void* dst,
                int64_t at, int64_t row, const uint8_t* residual, int64_t residual_row);

}  // namespace neo::NEO_ISA
