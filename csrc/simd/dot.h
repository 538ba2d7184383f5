#pragma once

// Products of small integers, summed in the int32 lanes of a vector: what products of 8-bit codes are written in. Every
// tier gives the same numbers.
//
//   dot_pairs(c, a, b)     c + a0 * b0 + a1 * b1, where each lane of a and b holds two int16. Where kSplitsPairs, all
//                          lanes of a are the same, and b holds the first ones of all lanes and then the second
//   split_pairs(a)         such words of one int16 beside the other, as dot_pairs takes them for b
//   load_pairs(a, b)       kLanes bytes from each address as such words, which are not split
//
// Tiers with kHasDotBytes also have:
//
//   dot_bytes(c, a, b)     c + the sum of four a * b, where each lane of a holds four uint8 and each of b four int8; on
//                          processors with kIsaAvx512Vnni alone
//   load_columns(p)        the bytes of four pixels of kLanes channels each, as a word for each channel
//   load_columns(a, b, c, d)  of pixels that lie anywhere
//   store_columns(p, a)    the pixels of load_columns
//   gather_bytes(at, index, flip)  of the 16 bytes at one place, or at one for each quarter of the lanes, those
//                          that the bytes of index name, xor those of flip; 0 where one is 128
//   load_word_planes(p, w)  of kLanes pixels of kLanes channels each the words of four channels: w[k] has word k of all
//   store_triples(p, a)    the low three bytes of each lane without gaps; as many bytes as a vector has are written

#include "simd/vec.h"

namespace neo::NEO_ISA {

// Left to themselves, compilers compute many products before they add any, for which there are no registers.
constexpr bool kSplitsPairs = kLanes < 8;
#if defined(NEO_ISA_AVX512)
constexpr bool kHasDotBytes = true;
NEO_INLINE void dot_pairs(I32& c, I32 a, I32 b) {
  __m512i products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(c.v), "=&v"(products) : "v"(a.v), "v"(b.v));
}
// The tier's flags leave VNNI out, so that only the assembler may know it.
NEO_INLINE void dot_bytes(I32& c, I32 a, I32 b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(c.v) : "v"(a.v), "v"(b.v));
}
NEO_INLINE I32 columns_of(__m512i pixels) {
  const __m512i by_four = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i by_one = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return {_mm512_shuffle_epi8(_mm512_permutexvar_epi32(by_four, pixels), by_one)};
}
NEO_INLINE I32 load_columns(const uint8_t* p) {
  return columns_of(_mm512_loadu_si512(p));
}
NEO_INLINE I32 load_columns(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d) {
  const auto pixel = [](const uint8_t* p) NEO_LAMBDA { return _mm_loadu_si128((const __m128i*)p); };
  __m512i pixels = _mm512_castsi128_si512(pixel(a));
  pixels = _mm512_inserti32x4(pixels, pixel(b), 1);
  pixels = _mm512_inserti32x4(pixels, pixel(c), 2);
  return columns_of(_mm512_inserti32x4(pixels, pixel(d), 3));
}
NEO_INLINE void store_columns(uint8_t* p, I32 a) {
  const __m512i by_pixel = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i by_byte = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(by_pixel, _mm512_shuffle_epi8(a.v, by_byte)));
}
NEO_INLINE I32 gather_bytes(const uint8_t* at, I32 index, I32 flip) {
  const __m512i bytes = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)at));
  return {_mm512_shuffle_epi8(_mm512_xor_si512(bytes, flip.v), index.v)};
}
NEO_INLINE I32 gather_bytes(const uint8_t* const (&at)[4], I32 index, I32 flip) {
  const auto quarter = [&](int i) NEO_LAMBDA { return _mm_loadu_si128((const __m128i*)at[i]); };
  __m512i bytes = _mm512_castsi128_si512(quarter(0));
  bytes = _mm512_inserti32x4(bytes, quarter(1), 1);
  bytes = _mm512_inserti32x4(bytes, quarter(2), 2);
  bytes = _mm512_inserti32x4(bytes, quarter(3), 3);
  return {_mm512_shuffle_epi8(_mm512_xor_si512(bytes, flip.v), index.v)};
}
NEO_INLINE void load_word_planes(const uint8_t* p, I32 (&w)[4]) {
  const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(2));
  const __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
  const __m512i c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
  const __m512i ab = _mm512_permutex2var_epi32(a, first, b), cd = _mm512_permutex2var_epi32(c, first, d);
  const __m512i ab_last = _mm512_permutex2var_epi32(a, last, b), cd_last = _mm512_permutex2var_epi32(c, last, d);
  w[0].v = _mm512_shuffle_i64x2(ab, cd, 0x44);
  w[1].v = _mm512_shuffle_i64x2(ab, cd, 0xee);
  w[2].v = _mm512_shuffle_i64x2(ab_last, cd_last, 0x44);
  w[3].v = _mm512_shuffle_i64x2(ab_last, cd_last, 0xee);
}
NEO_INLINE void store_triples(uint8_t* p, I32 a) {
  const __m512i low = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m512i dense = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(dense, _mm512_shuffle_epi8(a.v, low)));
}
#else
constexpr bool kHasDotBytes = false;
#if defined(NEO_ISA_AVX2)
NEO_INLINE void dot_pairs(I32& c, I32 a, I32 b) {
  __m256i products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(c.v), "=&x"(products) : "x"(a.v), "x"(b.v));
}
#elif defined(NEO_ISA_NEON)
NEO_INLINE void dot_pairs(I32& c, I32 a, I32 b) {
  const int16x8_t x = vreinterpretq_s16_s32(a.v), y = vreinterpretq_s16_s32(b.v);
  c.v = vmlal_high_laneq_s16(vmlal_laneq_s16(c.v, vget_low_s16(y), x, 0), y, x, 1);
}
NEO_INLINE I32 split_pairs(I32 a) {
  const int16x8_t pairs = vreinterpretq_s16_s32(a.v);
  const int16x4x2_t split = vuzp_s16(vget_low_s16(pairs), vget_high_s16(pairs));
  return {vreinterpretq_s32_s16(vcombine_s16(split.val[0], split.val[1]))};
}
#else
NEO_INLINE void dot_pairs(I32& c, I32 a, I32 b) {
  int16_t lanes[2 * kLanes];
  __builtin_memcpy(lanes, &b, sizeof lanes);
  int32_t first[kLanes], second[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    first[i] = lanes[i];
    second[i] = lanes[kLanes + i];
  }
  c = c + shift_right<16>(shift_left<16>(a)) * load_i32(first) + shift_right<16>(a) * load_i32(second);
}
NEO_INLINE I32 split_pairs(I32 a) {
  int16_t pairs[2 * kLanes], split[2 * kLanes];
  __builtin_memcpy(pairs, &a, sizeof pairs);
  for (int i = 0; i < 2 * kLanes; ++i) split[i % 2 * kLanes + i / 2] = pairs[i];
  __builtin_memcpy(&a, split, sizeof split);
  return a;
}
#endif
#if defined(NEO_ISA_AVX2)
NEO_INLINE I32 load_pairs(const uint8_t* a, const uint8_t* b) {
  const __m128i bytes = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i*)a), _mm_loadl_epi64((const __m128i*)b));
  return {_mm256_cvtepu8_epi16(bytes)};
}
#endif
NEO_INLINE void dot_bytes(I32&, I32, I32) {}
NEO_INLINE void store_triples(uint8_t*, I32) {}
NEO_INLINE void store_columns(uint8_t*, I32) {}
NEO_INLINE void load_word_planes(const uint8_t*, I32 (&)[4]) {}
NEO_INLINE I32 gather_bytes(const uint8_t*, I32, I32) {
  return broadcast_i32(0);
}
NEO_INLINE I32 gather_bytes(const uint8_t* const (&)[4], I32, I32) {
  return broadcast_i32(0);
}
NEO_INLINE I32 load_columns(const uint8_t*) {
  return broadcast_i32(0);
}
NEO_INLINE I32 load_columns(const uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*) {
  return broadcast_i32(0);
}
#endif

#if defined(NEO_ISA_AVX512) || defined(NEO_ISA_AVX2)
NEO_INLINE I32 split_pairs(I32 a) {
  return a;
}
#endif
#if !defined(NEO_ISA_AVX2)
NEO_INLINE I32 load_pairs(const uint8_t* a, const uint8_t* b) {
  return load_u8(a) | shift_left<16>(load_u8(b));
}
#endif

}  // namespace neo::NEO_ISA
