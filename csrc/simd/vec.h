#pragma once

// The narrow vector API that every kernel (*.isa.cpp) is written in, compiled once per instruction set.
//
// The build defines NEO_ISA (scalar, avx2, avx512 or neon) and the matching NEO_ISA_SCALAR, NEO_ISA_AVX2,
// NEO_ISA_AVX512 or NEO_ISA_NEON. All of it lives in neo::NEO_ISA and is forced inline, so no symbol is shared between
// tiers.
//
//   F32, I32, Mask   kLanes lanes of float, int32_t and truth values
//   load, store      any alignment. load_n, store_n: the first n lanes, 0 <= n <= kLanes, no access beyond them;
//                    missing lanes read as zero
//   fma(a, b, c)     a * b + c, fnma(a, b, c): c - a * b; rounded once where the tier has it, else twice
//   accumulate(c, a, b)   c = fma(a, b, c), with all three in registers that they keep; a may be a float in memory,
//                         which is used once (for several products broadcast it first)
//   quotient(a, b)   a / b within 2 ulp, for 2^-120 <= |b| <= 2^120 and any a; quotient(a, b, m): a * 0 where m fails
//   min, max         the second operand where one of them is NaN (as SSE); on neon NaN. Use them where NaN cannot
//                    matter. min_nan, max_nan: NaN where either operand is NaN
//   limit(x, b)      x between -b and b; NaN passes or becomes b or -b
//   lt le gt ge eq   false for NaN; ne: true for NaN
//   select(m, a, b)  a where m holds, else b
//   reduce_*         one fixed order of operations per tier
//   round_to_i32     nearest even; trunc_to_i32 towards zero; values outside int32 give an unspecified lane
//   bits_as_*        the same bits as another type
//   bit_select(m, a, b)   the bits of a where those of m are set, else of b
//   shift_left<k>, shift_right<k> (arithmetic), shift_right_logical<k>, rotate_left<k>
//   load_u8, load_i8, load_u16   widened to int32; store_u8, store_i8 saturate, store_u16 keeps the low 16 bits
//   load_f16, load_bf16, store_f16, store_bf16   rounded to nearest even, NaN stays NaN
//   prefetch(p)      of the line at p into the second-level cache; any address
//   gather(p, i)     p[i] per lane
//   even(a, b)       lanes 0, 2, 4, ... of a, then of b
//   pick(kept, x, i) lane i of x where i is one of its lanes, what is kept where i is -1
//   transpose(rows)  rows[kLanes] as a kLanes x kLanes block, in place

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#if defined(NEO_ISA_AVX512)
#include "simd/vec_avx512.h"
#elif defined(NEO_ISA_AVX2)
#include "simd/vec_avx2.h"
#elif defined(NEO_ISA_NEON)
#include "simd/vec_neon.h"
#elif defined(NEO_ISA_SCALAR)
#include "simd/vec_scalar.h"
#else
#error "define one of NEO_ISA_SCALAR, NEO_ISA_AVX2, NEO_ISA_AVX512, NEO_ISA_NEON"
#endif

namespace neo::NEO_ISA {

NEO_INLINE F32 operator+(F32 a, F32 b) {
  return add(a, b);
}
NEO_INLINE F32 operator-(F32 a, F32 b) {
  return sub(a, b);
}
NEO_INLINE F32 operator*(F32 a, F32 b) {
  return mul(a, b);
}
NEO_INLINE F32 operator/(F32 a, F32 b) {
  return div(a, b);
}
NEO_INLINE F32 operator-(F32 a) {
  return neg(a);
}
NEO_INLINE I32 operator+(I32 a, I32 b) {
  return add(a, b);
}
NEO_INLINE I32 operator-(I32 a, I32 b) {
  return sub(a, b);
}
NEO_INLINE I32 operator*(I32 a, I32 b) {
  return mul(a, b);
}
NEO_INLINE I32 operator&(I32 a, I32 b) {
  return bit_and(a, b);
}
NEO_INLINE I32 operator|(I32 a, I32 b) {
  return bit_or(a, b);
}
NEO_INLINE I32 operator^(I32 a, I32 b) {
  return bit_xor(a, b);
}
NEO_INLINE Mask operator&(Mask a, Mask b) {
  return mask_and(a, b);
}
NEO_INLINE Mask operator|(Mask a, Mask b) {
  return mask_or(a, b);
}
NEO_INLINE Mask operator!(Mask a) {
  return mask_not(a);
}

NEO_INLINE Mask is_nan(F32 a) {
  return ne(a, a);
}
NEO_INLINE F32 copy_sign(F32 magnitude, F32 sign) {
  const I32 top = broadcast_i32(INT32_MIN);
  return bits_as_f32((bits_as_i32(sign) & top) | bits_as_i32(abs(magnitude)));
}
// NaN stays NaN; lo where lo > hi would be hi, as ONNX Clip.
NEO_INLINE F32 clamp_nan(F32 x, F32 lo, F32 hi) {
  return min_nan(max_nan(x, lo), hi);
}

// 2^n for -126 <= n <= 127.
NEO_INLINE F32 exp2_of(I32 n) {
  return bits_as_f32(shift_left<23>(n + broadcast_i32(127)));
}

NEO_INLINE F32 load_bf16(const uint16_t* p) {
  return bits_as_f32(shift_left<16>(load_u16(p)));
}
NEO_INLINE void store_bf16(uint16_t* p, F32 x) {
  const I32 u = bits_as_i32(x);
  const I32 high = shift_right_logical<16>(u);
  const I32 rounded = shift_right_logical<16>(u + broadcast_i32(0x7fff) + (high & broadcast_i32(1)));
  store_u16(p, select(is_nan(x), high | broadcast_i32(0x40), rounded));
}

NEO_INLINE I32 load_u8_n(const uint8_t* p, int64_t n) {
  uint8_t lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load_u8(lanes);
}
NEO_INLINE I32 load_i8_n(const int8_t* p, int64_t n) {
  int8_t lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load_i8(lanes);
}
#ifndef NEO_ISA_AVX512
NEO_INLINE F32 limit(F32 x, F32 b) {
  return min(b, max(neg(b), x));
}
NEO_INLINE F32 quotient(F32 a, F32 b, Mask m) {
  return select(m, a / b, a * zero());
}
#endif
NEO_INLINE I32 bit_select(I32 m, I32 a, I32 b) {
#ifdef NEO_ISA_AVX512
  return {_mm512_ternarylogic_epi32(b.v, a.v, m.v, 0xd8)};
#else
  return b ^ ((a ^ b) & m);
#endif
}
template <int k>
NEO_INLINE I32 rotate_left(I32 a) {
  return shift_left<k>(a) | shift_right_logical<32 - k>(a);
}
NEO_INLINE F32 quotient(F32 a, F32 b) {
#ifdef NEO_ISA_AVX512
  return quotient(a, b, {0xffff});
#else
  return a / b;
#endif
}

// y * 2^n, where results may overflow or become subnormal. |n| <= 252.
NEO_INLINE F32 scale_by_exp2(F32 y, F32 n) {
#ifdef NEO_ISA_AVX512
  return {_mm512_scalef_ps(y.v, n.v)};
#else
  const I32 whole = round_to_i32(n);
  const I32 half = shift_right<1>(whole);
  return y * exp2_of(half) * exp2_of(whole - half);
#endif
}
#ifndef NEO_ISA_AVX512
// 2^n for x = 1.5 * 2^23 / kExp2Steps + n, where n is a multiple of 1 / kExp2Steps and -126 <= n <= 126.
constexpr int kExp2Steps = 1;
NEO_INLINE F32 exp2_of_steps(F32 x) {
  return exp2_of(bits_as_i32(x));
}
#endif

NEO_INLINE void store_u8_n(uint8_t* p, I32 x, int64_t n) {
  uint8_t lanes[kLanes];
  store_u8(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE void store_i8_n(int8_t* p, I32 x, int64_t n) {
  int8_t lanes[kLanes];
  store_i8(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE void store_u16_n(uint16_t* p, I32 x, int64_t n) {
  uint16_t lanes[kLanes];
  store_u16(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE void store_f16_n(uint16_t* p, F32 x, int64_t n) {
  uint16_t lanes[kLanes];
  store_f16(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
NEO_INLINE void store_bf16_n(uint16_t* p, F32 x, int64_t n) {
  uint16_t lanes[kLanes];
  store_bf16(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}

NEO_INLINE void prefetch_read(const void* p) {
  __builtin_prefetch(p, 0, 3);
}
NEO_INLINE void prefetch(const void* p) {
  __builtin_prefetch(p, 0, 2);
}
NEO_INLINE void prefetch_write(const void* p) {
  __builtin_prefetch(p, 1, 3);
}

}  // namespace neo::NEO_ISA
