#pragma once

// The avx2 tier of simd/vec.h: AVX2, FMA and F16C. Include simd/vec.h instead.

#include <immintrin.h>

#include "base/span.h"

namespace neo::NEO_ISA {

constexpr int kLanes = 8;
constexpr int kVectorRegisters = 16;
constexpr bool kFusedMultiplyAdd = true;

struct F32 {
  __m256 v;
};
struct I32 {
  __m256i v;
};
struct Mask {
  __m256 v;
};

NEO_INLINE __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

NEO_INLINE F32 load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
NEO_INLINE F32 load_n(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, first_lanes(n))};
}
NEO_INLINE void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.v);
}
NEO_INLINE void store_n(float* p, F32 x, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x.v);
}
NEO_INLINE F32 broadcast(float x) {
  return {_mm256_set1_ps(x)};
}
NEO_INLINE F32 zero() {
  return {_mm256_setzero_ps()};
}

NEO_INLINE F32 add(F32 a, F32 b) {
  return {_mm256_add_ps(a.v, b.v)};
}
NEO_INLINE F32 sub(F32 a, F32 b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
NEO_INLINE F32 mul(F32 a, F32 b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
NEO_INLINE F32 div(F32 a, F32 b) {
  return {_mm256_div_ps(a.v, b.v)};
}
NEO_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
// Left to themselves, compilers short of registers load an operand again for every use, and copy sums about.
NEO_INLINE void accumulate(F32& c, F32 a, F32 b) {
  asm("vfmadd231ps %2, %1, %0" : "+x"(c.v) : "x"(a.v), "x"(b.v));
}
NEO_INLINE void accumulate(F32& c, const float& a, F32 b) {
  accumulate(c, broadcast(a), b);
}
NEO_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}
NEO_INLINE F32 neg(F32 a) {
  return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))};
}
NEO_INLINE F32 abs(F32 a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}
NEO_INLINE F32 sqrt(F32 a) {
  return {_mm256_sqrt_ps(a.v)};
}
NEO_INLINE F32 floor(F32 a) {
  return {_mm256_floor_ps(a.v)};
}
NEO_INLINE F32 ceil(F32 a) {
  return {_mm256_ceil_ps(a.v)};
}
NEO_INLINE F32 trunc(F32 a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}
NEO_INLINE F32 round_even(F32 a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

NEO_INLINE Mask lt(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
NEO_INLINE Mask le(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)};
}
NEO_INLINE Mask gt(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)};
}
NEO_INLINE Mask ge(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)};
}
NEO_INLINE Mask eq(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)};
}
NEO_INLINE Mask ne(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)};
}
NEO_INLINE Mask mask_and(Mask a, Mask b) {
  return {_mm256_and_ps(a.v, b.v)};
}
NEO_INLINE Mask mask_or(Mask a, Mask b) {
  return {_mm256_or_ps(a.v, b.v)};
}
NEO_INLINE Mask mask_not(Mask a) {
  return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))};
}
NEO_INLINE bool any(Mask a) {
  return _mm256_movemask_ps(a.v) != 0;
}
NEO_INLINE bool all(Mask a) {
  return _mm256_movemask_ps(a.v) == 0xff;
}
NEO_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {_mm256_blendv_ps(b.v, a.v, m.v)};
}

NEO_INLINE F32 min(F32 a, F32 b) {
  return {_mm256_min_ps(a.v, b.v)};
}
NEO_INLINE F32 max(F32 a, F32 b) {
  return {_mm256_max_ps(a.v, b.v)};
}
NEO_INLINE F32 min_nan(F32 a, F32 b) {
  return {_mm256_blendv_ps(_mm256_min_ps(b.v, a.v), b.v, _mm256_cmp_ps(b.v, b.v, _CMP_UNORD_Q))};
}
NEO_INLINE F32 max_nan(F32 a, F32 b) {
  return {_mm256_blendv_ps(_mm256_max_ps(b.v, a.v), b.v, _mm256_cmp_ps(b.v, b.v, _CMP_UNORD_Q))};
}

NEO_INLINE I32 load_i32(const int32_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p)};
}
NEO_INLINE I32 load_i32_n(const int32_t* p, int64_t n) {
  return {_mm256_maskload_epi32(p, first_lanes(n))};
}
NEO_INLINE void store_i32(int32_t* p, I32 x) {
  _mm256_storeu_si256((__m256i*)p, x.v);
}
NEO_INLINE void store_i32_n(int32_t* p, I32 x, int64_t n) {
  _mm256_maskstore_epi32(p, first_lanes(n), x.v);
}
NEO_INLINE I32 broadcast_i32(int32_t x) {
  return {_mm256_set1_epi32(x)};
}
NEO_INLINE I32 iota_i32() {
  return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)};
}
NEO_INLINE I32 add(I32 a, I32 b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
NEO_INLINE I32 sub(I32 a, I32 b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}
NEO_INLINE I32 mul(I32 a, I32 b) {
  return {_mm256_mullo_epi32(a.v, b.v)};
}
NEO_INLINE I32 min(I32 a, I32 b) {
  return {_mm256_min_epi32(a.v, b.v)};
}
NEO_INLINE I32 max(I32 a, I32 b) {
  return {_mm256_max_epi32(a.v, b.v)};
}
NEO_INLINE I32 bit_and(I32 a, I32 b) {
  return {_mm256_and_si256(a.v, b.v)};
}
NEO_INLINE I32 bit_or(I32 a, I32 b) {
  return {_mm256_or_si256(a.v, b.v)};
}
NEO_INLINE I32 bit_xor(I32 a, I32 b) {
  return {_mm256_xor_si256(a.v, b.v)};
}
template <int k>
NEO_INLINE I32 shift_left(I32 a) {
  return {_mm256_slli_epi32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right(I32 a) {
  return {_mm256_srai_epi32(a.v, k)};
}
template <int k>
NEO_INLINE I32 shift_right_logical(I32 a) {
  return {_mm256_srli_epi32(a.v, k)};
}
NEO_INLINE Mask eq(I32 a, I32 b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))};
}
NEO_INLINE Mask gt(I32 a, I32 b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))};
}
NEO_INLINE I32 select(Mask m, I32 a, I32 b) {
  return {_mm256_blendv_epi8(b.v, a.v, _mm256_castps_si256(m.v))};
}

NEO_INLINE F32 to_f32(I32 a) {
  return {_mm256_cvtepi32_ps(a.v)};
}
NEO_INLINE I32 round_to_i32(F32 a) {
  return {_mm256_cvtps_epi32(a.v)};
}
NEO_INLINE I32 trunc_to_i32(F32 a) {
  return {_mm256_cvttps_epi32(a.v)};
}
NEO_INLINE I32 bits_as_i32(F32 a) {
  return {_mm256_castps_si256(a.v)};
}
NEO_INLINE F32 bits_as_f32(I32 a) {
  return {_mm256_castsi256_ps(a.v)};
}

NEO_INLINE I32 load_u8(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p))};
}
NEO_INLINE I32 load_i8(const int8_t* p) {
  return {_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p))};
}
NEO_INLINE I32 load_u16(const uint16_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p))};
}
NEO_INLINE void store_u8(uint8_t* p, I32 x) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x.v), _mm256_extracti128_si256(x.v, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(words, words));
}
NEO_INLINE void store_i8(int8_t* p, I32 x) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x.v), _mm256_extracti128_si256(x.v, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(words, words));
}
NEO_INLINE void store_u16(uint16_t* p, I32 x) {
  const __m256i low = _mm256_and_si256(x.v, _mm256_set1_epi32(0xffff));
  _mm_storeu_si128((__m128i*)p, _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}
NEO_INLINE F32 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p))};
}
NEO_INLINE void store_f16(uint16_t* p, F32 x) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
NEO_INLINE F32 gather(const float* p, I32 i) {
  return {_mm256_i32gather_ps(p, i.v, 4)};
}

NEO_INLINE float reduce_add(F32 a) {
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
NEO_INLINE float reduce_max(F32 a) {
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
NEO_INLINE float reduce_min(F32 a) {
  const __m128 q = _mm_min_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 d = _mm_min_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_min_ss(d, _mm_movehdup_ps(d)));
}

NEO_INLINE F32 even(F32 a, F32 b) {
  const __m256 pairs = _mm256_shuffle_ps(a.v, b.v, 0x88);
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8))};
}
NEO_INLINE F32 pick(F32 kept, F32 x, I32 i) {
  return {_mm256_blendv_ps(_mm256_permutevar8x32_ps(x.v, i.v), kept.v, _mm256_castsi256_ps(i.v))};
}
NEO_INLINE void transpose(F32* rows) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) {
    const __m256 ab0 = _mm256_unpacklo_ps(rows[i].v, rows[i + 1].v), ab1 = _mm256_unpackhi_ps(rows[i].v, rows[i + 1].v);
    const __m256 cd0 = _mm256_unpacklo_ps(rows[i + 2].v, rows[i + 3].v);
    const __m256 cd1 = _mm256_unpackhi_ps(rows[i + 2].v, rows[i + 3].v);
    t[i] = _mm256_shuffle_ps(ab0, cd0, 0x44);
    t[i + 1] = _mm256_shuffle_ps(ab0, cd0, 0xee);
    t[i + 2] = _mm256_shuffle_ps(ab1, cd1, 0x44);
    t[i + 3] = _mm256_shuffle_ps(ab1, cd1, 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c].v = _mm256_permute2f128_ps(t[c], t[4 + c], 0x20);
    rows[4 + c].v = _mm256_permute2f128_ps(t[c], t[4 + c], 0x31);
  }
}

}  // namespace neo::NEO_ISA
