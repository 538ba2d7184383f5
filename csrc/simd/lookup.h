#pragma once

// Bytes through a table of 256.

#include "simd/vec.h"

namespace neo::NEO_ISA {

#if defined(NEO_ISA_AVX512)

// Four bits of each byte pick from a part of the table, the other four pick the part.
NEO_INLINE __m512i look_up(const uint8_t* table, __m512i x) {
  const __m512i low = _mm512_and_si512(x, _mm512_set1_epi8(15));
  const __mmask64 bit4 = _mm512_movepi8_mask(_mm512_slli_epi16(x, 3));
  const __mmask64 bit5 = _mm512_movepi8_mask(_mm512_slli_epi16(x, 2));
  const __mmask64 bit6 = _mm512_movepi8_mask(_mm512_slli_epi16(x, 1));
  const __mmask64 bit7 = _mm512_movepi8_mask(x);
  const auto part = [&](int i) __attribute__((always_inline)) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)(table + 16 * i)));
  };
  const auto of_two = [&](int i) __attribute__((always_inline)) {
    return _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(part(i), low), bit4, part(i + 1), low);
  };
  const auto of_four = [&](int i) __attribute__((always_inline)) {
    return _mm512_mask_blend_epi8(bit5, of_two(i), of_two(i + 2));
  };
  const auto of_eight = [&](int i) __attribute__((always_inline)) {
    return _mm512_mask_blend_epi8(bit6, of_four(i), of_four(i + 4));
  };
  return _mm512_mask_blend_epi8(bit7, of_eight(0), of_eight(8));
}
// Seven bits of each byte pick from half of the table: one instruction, on processors with VBMI.
NEO_INLINE void look_up_halves(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  const auto part = [&](int i) __attribute__((always_inline)) {
    return _mm512_loadu_si512(table + 64 * i);
  };
  const __m512i parts[] = {part(0), part(1), part(2), part(3)};
  const auto found_in = [&](__m512i at, int i) __attribute__((always_inline)) {
    // The tier's flags leave VBMI out, so that only the assembler may know it.
    asm("vpermi2b %2, %1, %0" : "+v"(at) : "v"(parts[i]), "v"(parts[i + 1]));
    return at;
  };
  const auto found = [&](__m512i at) __attribute__((always_inline)) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), found_in(at, 0), found_in(at, 2));
  };
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) _mm512_storeu_si512(y + i, found(_mm512_loadu_si512(x + i)));
  if (i == count) return;
  const __mmask64 rest = (__mmask64{1} << (count - i)) - 1;
  _mm512_mask_storeu_epi8(y + i, rest, found(_mm512_maskz_loadu_epi8(rest, x + i)));
}
NEO_INLINE int64_t look_up_vectors(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  if (__builtin_cpu_supports("avx512vbmi")) {
    look_up_halves(table, x, y, count);
    return count;
  }
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) _mm512_storeu_si512(y + i, look_up(table, _mm512_loadu_si512(x + i)));
  return i;
}

#elif defined(NEO_ISA_AVX2)

NEO_INLINE __m256i look_up(const uint8_t* table, __m256i x) {
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi8(15));
  const __m256i bit4 = _mm256_slli_epi16(x, 3), bit5 = _mm256_slli_epi16(x, 2), bit6 = _mm256_slli_epi16(x, 1);
  const auto part = [&](int i) __attribute__((always_inline)) {
    const __m128i sixteen = _mm_loadu_si128((const __m128i*)(table + 16 * i));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen), low);
  };
  const auto of_two = [&](int i) __attribute__((always_inline)) {
    return _mm256_blendv_epi8(part(i), part(i + 1), bit4);
  };
  const auto of_four = [&](int i) __attribute__((always_inline)) {
    return _mm256_blendv_epi8(of_two(i), of_two(i + 2), bit5);
  };
  const auto of_eight = [&](int i) __attribute__((always_inline)) {
    return _mm256_blendv_epi8(of_four(i), of_four(i + 4), bit6);
  };
  return _mm256_blendv_epi8(of_eight(0), of_eight(8), x);
}
NEO_INLINE int64_t look_up_vectors(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i codes = _mm256_loadu_si256((const __m256i*)(x + i));
    _mm256_storeu_si256((__m256i*)(y + i), look_up(table, codes));
  }
  return i;
}

#elif defined(NEO_ISA_NEON)

// An index beyond a part of 64 leaves what another part gave.
NEO_INLINE int64_t look_up_vectors(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  const uint8x16x4_t parts[4] = {vld1q_u8_x4(table), vld1q_u8_x4(table + 64), vld1q_u8_x4(table + 128),
                                 vld1q_u8_x4(table + 192)};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    uint8x16_t at = vld1q_u8(x + i);
    uint8x16_t found = vqtbl4q_u8(parts[0], at);
    for (int part = 1; part < 4; ++part) {
      at = vsubq_u8(at, vdupq_n_u8(64));
      found = vqtbx4q_u8(found, parts[part], at);
    }
    vst1q_u8(y + i, found);
  }
  return i;
}

#else

NEO_INLINE int64_t look_up_vectors(const uint8_t*, const uint8_t*, uint8_t*, int64_t) {
  return 0;
}

#endif

// y[i] = table[x[i]]; y may be x.
NEO_INLINE void look_up_bytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  for (int64_t i = look_up_vectors(table, x, y, count); i < count; ++i) y[i] = table[x[i]];
}

}  // namespace neo::NEO_ISA
