#pragma once

// Vectors whose lanes hold four bytes each:
//
//   max_bytes(a, b)                                          the larger of unsigned bytes
//
// Where kStoresFour, int32 that become bytes:
//
//   store_four(p, step, count, a, b, c, d, plus, is_signed)  the first `count` of a + plus at p, b + plus at p + step,
//                                                            ...: kLanes bytes each, saturated to int8 or uint8, of
//                                                            sums that int16 holds

#include "simd/vec.h"

namespace neo::NEO_ISA {

#if defined(NEO_ISA_AVX512)
NEO_INLINE I32 max_bytes(I32 a, I32 b) {
  return {_mm512_max_epu8(a.v, b.v)};
}
#elif defined(NEO_ISA_AVX2)
NEO_INLINE I32 max_bytes(I32 a, I32 b) {
  return {_mm256_max_epu8(a.v, b.v)};
}
#elif defined(NEO_ISA_NEON)
NEO_INLINE I32 max_bytes(I32 a, I32 b) {
  return {vreinterpretq_s32_u8(vmaxq_u8(vreinterpretq_u8_s32(a.v), vreinterpretq_u8_s32(b.v)))};
}
#else
NEO_INLINE I32 max_bytes(I32 a, I32 b) {
  uint8_t x[4 * kLanes], y[4 * kLanes];
  store_i32((int32_t*)x, a);
  store_i32((int32_t*)y, b);
  for (int i = 0; i < 4 * kLanes; ++i) x[i] = x[i] > y[i] ? x[i] : y[i];
  return load_i32((const int32_t*)x);
}
#endif

#if defined(NEO_ISA_AVX512)
constexpr bool kStoresFour = true;
NEO_INLINE void store_four(uint8_t* p, int64_t step, int64_t count, I32 a, I32 b, I32 c, I32 d, int32_t plus,
                           bool is_signed) {
  const __m512i offset = _mm512_set1_epi16((int16_t)plus);
  const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a.v, b.v), offset);
  const __m512i cd = _mm512_adds_epi16(_mm512_packs_epi32(c.v, d.v), offset);
  const __m512i mixed = is_signed ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
  const __m512i by_four = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_permutexvar_epi32(by_four, mixed);
  if (step == kLanes && count >= 4) {
    _mm512_storeu_si512(p, bytes);
    return;
  }
  _mm_storeu_si128((__m128i*)p, _mm512_castsi512_si128(bytes));
  if (count > 1) _mm_storeu_si128((__m128i*)(p + step), _mm512_extracti32x4_epi32(bytes, 1));
  if (count > 2) _mm_storeu_si128((__m128i*)(p + 2 * step), _mm512_extracti32x4_epi32(bytes, 2));
  if (count > 3) _mm_storeu_si128((__m128i*)(p + 3 * step), _mm512_extracti32x4_epi32(bytes, 3));
}
#elif defined(NEO_ISA_AVX2)
constexpr bool kStoresFour = true;
NEO_INLINE void store_four(uint8_t* p, int64_t step, int64_t count, I32 a, I32 b, I32 c, I32 d, int32_t plus,
                           bool is_signed) {
  const __m256i offset = _mm256_set1_epi16((int16_t)plus);
  const __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32(a.v, b.v), offset);
  const __m256i cd = _mm256_adds_epi16(_mm256_packs_epi32(c.v, d.v), offset);
  const __m256i mixed = is_signed ? _mm256_packs_epi16(ab, cd) : _mm256_packus_epi16(ab, cd);
  const __m256i bytes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  if (step == kLanes && count >= 4) {
    _mm256_storeu_si256((__m256i*)p, bytes);
    return;
  }
  const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
  const auto store_last = [](uint8_t* to, __m128i pixels) NEO_LAMBDA {
    const int64_t bits = _mm_extract_epi64(pixels, 1);
    __builtin_memcpy(to, &bits, sizeof bits);
  };
  _mm_storel_epi64((__m128i*)p, low);
  if (count > 1) store_last(p + step, low);
  if (count > 2) _mm_storel_epi64((__m128i*)(p + 2 * step), high);
  if (count > 3) store_last(p + 3 * step, high);
}
#else
constexpr bool kStoresFour = false;
NEO_INLINE void store_four(uint8_t*, int64_t, int64_t, I32, I32, I32, I32, int32_t, bool) {}
#endif

}  // namespace neo::NEO_ISA
