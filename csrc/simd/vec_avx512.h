#pragma once

// The avx512 tier of simd/vec.h: F, BW, VL, DQ with AVX2, FMA and F16C below it. Include simd/vec.h instead.

// GCC 12 warns inside its own header that the undefined value behind an unmasked intrinsic is uninitialized.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "base/span.h"

namespace neo::NEO_ISA {

constexpr int kLanes = 16;
constexpr int kVectorRegisters = 32;
constexpr bool kFusedMultiplyAdd = true;

struct F32 {
  __m512 v;
};
struct I32 {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

NEO_INLINE __mmask16 first_lanes(int64_t n) {
  return (__mmask16)((1u << n) - 1u);
}

NEO_INLINE F32 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
NEO_INLINE F32 load_n(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
}
NEO_INLINE void store(float* p, F32 x) {
  _mm512_storeu_ps(p, x.v);
}
NEO_INLINE void store_n(float* p, F32 x, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x.v);
}
NEO_INLINE F32 broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
NEO_INLINE F32 zero() {
  return {_mm512_setzero_ps()};
}

NEO_INLINE F32 add(F32 a, F32 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
NEO_INLINE F32 sub(F32 a, F32 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
NEO_INLINE F32 mul(F32 a, F32 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
NEO_INLINE F32 div(F32 a, F32 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
NEO_INLINE F32 limit(F32 x, F32 b) {
  return {_mm512_range_ps(x.v, b.v, 2)};  // the smaller magnitude, the sign of x
}
// 14 bits of 1 / b, doubled by a step of Newton's method: a division of all lanes takes as long as 16 of these steps.
NEO_INLINE F32 quotient(F32 a, F32 b, Mask m) {
  const __m512 inverse = _mm512_maskz_rcp14_ps(m.v, b.v);
  const __m512 rest = _mm512_fnmadd_ps(b.v, inverse, _mm512_set1_ps(1.0f));
  return {_mm512_mul_ps(a.v, _mm512_fmadd_ps(inverse, rest, inverse))};
}
// 2^n for x = 1.5 * 2^23 / kExp2Steps + n, where n is a multiple of 1 / kExp2Steps and -126 <= n <= 126: the last bits
// of x choose a fraction of a power, which is held less what they add to it beside those of whole powers.
constexpr int kExp2Steps = 32;
alignas(64) constexpr uint32_t kExp2OfSteps[kExp2Steps] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};
NEO_INLINE F32 exp2_of_steps(F32 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i part =
      _mm512_permutex2var_epi32(_mm512_load_si512(kExp2OfSteps), bits, _mm512_load_si512(kExp2OfSteps + 16));
  return {_mm512_castsi512_ps(_mm512_add_epi32(part, _mm512_slli_epi32(bits, 18)))};
}
NEO_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
NEO_INLINE void accumulate(F32& c, F32 a, F32 b) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(c.v) : "v"(a.v), "v"(b.v));
}
// A broadcast of its own takes a third of the time of a product on AMD Zen 4.
NEO_INLINE void accumulate(F32& c, const float& a, F32 b) {
  asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(c.v) : "m"(a), "v"(b.v));
}
NEO_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
NEO_INLINE F32 neg(F32 a) {
  return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
NEO_INLINE F32 abs(F32 a) {
  return {_mm512_abs_ps(a.v)};
}
NEO_INLINE F32 sqrt(F32 a) {
  return {_mm512_sqrt_ps(a.v)};
}
NEO_INLINE F32 floor(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
NEO_INLINE F32 ceil(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)};
}
NEO_INLINE F32 trunc(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}
NEO_INLINE F32 round_even(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

NEO_INLINE Mask lt(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
NEO_INLINE Mask le(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
NEO_INLINE Mask gt(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)};
}
NEO_INLINE Mask ge(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)};
}
NEO_INLINE Mask eq(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
NEO_INLINE Mask ne(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)};
}
NEO_INLINE Mask mask_and(Mask a, Mask b) {
  return {(__mmask16)(a.v & b.v)};
}
NEO_INLINE Mask mask_or(Mask a, Mask b) {
  return {(__mmask16)(a.v | b.v)};
}
NEO_INLINE Mask mask_not(Mask a) {
  return {(__mmask16)~a.v};
}
NEO_INLINE bool any(Mask a) {
  return a.v != 0;
}
NEO_INLINE bool all(Mask a) {
  return a.v == 0xffff;
}
NEO_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {_mm512_mask_blend_ps(m.v, b.v, a.v)};
}

NEO_INLINE F32 min(F32 a, F32 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
NEO_INLINE F32 max(F32 a, F32 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
NEO_INLINE F32 min_nan(F32 a, F32 b) {
  return {_mm512_mask_mov_ps(_mm512_min_ps(b.v, a.v), _mm512_cmp_ps_mask(b.v, b.v, _CMP_UNORD_Q), b.v)};
}
NEO_INLINE F32 max_nan(F32 a, F32 b) {
  return {_mm512_mask_mov_ps(_mm512_max_ps(b.v, a.v), _mm512_cmp_ps_mask(b.v, b.v, _CMP_UNORD_Q), b.v)};
}

NEO_INLINE I32 load_i32(const int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
NEO_INLINE I32 load_i32_n(const int32_t* p, int64_t n) {
  return {_mm512_maskz_loadu_epi32(first_lanes(n), p)};
}
NEO_INLINE void store_i32(int32_t* p, I32 x) {
  _mm512_storeu_si512(p, x.v);
}
NEO_INLINE void store_i32_n(int32_t* p, I32 x, int64_t n) {
  _mm512_mask_storeu_epi32(p, first_lanes(n), x.v);
}
NEO_INLINE I32 broadcast_i32(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
NEO_INLINE I32 iota_i32() {
  return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
NEO_INLINE I32 add(I32 a, I32 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
NEO_INLINE I32 sub(I32 a, I32 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
NEO_INLINE I32 mul(I32 a, I32 b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
NEO_INLINE I32 min(I32 a, I32 b) {
  return {_mm512_min_epi32(a.v, b.v)};
}
NEO_INLINE I32 max(I32 a, I32 b) {
  return {_mm512_max_epi32(a.v, b.v)};
}
NEO_INLINE I32 bit_and(I32 a, I32 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
NEO_INLINE I32 bit_or(I32 a, I32 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
NEO_INLINE I32 bit_xor(I32 a, I32 b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
template <int k>
NEO_INLINE I32 shift_left(I32 a) {
  return {_mm512_slli_epi32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right(I32 a) {
  return {_mm512_srai_epi32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right_logical(I32 a) {
  return {_mm512_srli_epi32(a.v, k)};
}
NEO_INLINE Mask eq(I32 a, I32 b) {
  return {_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
NEO_INLINE Mask gt(I32 a, I32 b) {
  return {_mm512_cmpgt_epi32_mask(a.v, b.v)};
}
NEO_INLINE I32 select(Mask m, I32 a, I32 b) {
  return {_mm512_mask_blend_epi32(m.v, b.v, a.v)};
}

NEO_INLINE F32 to_f32(I32 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
NEO_INLINE I32 round_to_i32(F32 a) {
  return {_mm512_cvt_roundps_epi32(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
NEO_INLINE I32 trunc_to_i32(F32 a) {
  return {_mm512_cvttps_epi32(a.v)};
}
NEO_INLINE I32 bits_as_i32(F32 a) {
  return {_mm512_castps_si512(a.v)};
}
NEO_INLINE F32 bits_as_f32(I32 a) {
  return {_mm512_castsi512_ps(a.v)};
}

NEO_INLINE I32 load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p))};
}
NEO_INLINE I32 load_i8(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p))};
}
NEO_INLINE I32 load_u16(const uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p))};
}
NEO_INLINE void store_u8(uint8_t* p, I32 x) {
  const __m512i positive = _mm512_max_epi32(x.v, _mm512_setzero_si512());
  _mm_storeu_si128((__m128i*)p, _mm512_cvtusepi32_epi8(positive));
}
NEO_INLINE void store_i8(int8_t* p, I32 x) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8(x.v));
}
NEO_INLINE void store_u16(uint16_t* p, I32 x) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(x.v));
}
NEO_INLINE F32 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
}
NEO_INLINE void store_f16(uint16_t* p, F32 x) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
NEO_INLINE F32 gather(const float* p, I32 i) {
  return {_mm512_i32gather_ps(i.v, p, 4)};
}

NEO_INLINE float reduce_add(F32 a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
NEO_INLINE float reduce_max(F32 a) {
  const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
NEO_INLINE float reduce_min(F32 a) {
  const __m256 h = _mm256_min_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 q = _mm_min_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_min_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_min_ss(d, _mm_movehdup_ps(d)));
}

NEO_INLINE F32 even(F32 a, F32 b) {
  const __m512i index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(a.v, index, b.v)};
}
NEO_INLINE F32 pick(F32 kept, F32 x, I32 i) {
  return {_mm512_mask_permutexvar_ps(kept.v, _mm512_movepi32_mask(i.v) ^ 0xffff, i.v, x.v)};
}
NEO_INLINE void transpose(F32* rows) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512 ab0 = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v), ab1 = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
    const __m512 cd0 = _mm512_unpacklo_ps(rows[i + 2].v, rows[i + 3].v);
    const __m512 cd1 = _mm512_unpackhi_ps(rows[i + 2].v, rows[i + 3].v);
    t[i] = _mm512_shuffle_ps(ab0, cd0, 0x44);
    t[i + 1] = _mm512_shuffle_ps(ab0, cd0, 0xee);
    t[i + 2] = _mm512_shuffle_ps(ab1, cd1, 0x44);
    t[i + 3] = _mm512_shuffle_ps(ab1, cd1, 0xee);
  }
  // t[4 * g + c] holds, in its 128-bit lane b, column 4 * b + c of rows 4 * g ... 4 * g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512 lo01 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0x88), hi01 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0xdd);
    const __m512 lo23 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0x88);
    const __m512 hi23 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0xdd);
    rows[c].v = _mm512_shuffle_f32x4(lo01, lo23, 0x88);
    rows[8 + c].v = _mm512_shuffle_f32x4(lo01, lo23, 0xdd);
    rows[4 + c].v = _mm512_shuffle_f32x4(hi01, hi23, 0x88);
    rows[12 + c].v = _mm512_shuffle_f32x4(hi01, hi23, 0xdd);
  }
}

}  // namespace neo::NEO_ISA
