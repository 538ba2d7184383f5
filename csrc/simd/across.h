#pragma once

// Sums and extremes across the lanes of vectors, of kLanes vectors at once: half the shuffles of a transposition.

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Lane r of the result is what `merge` makes of all lanes of rows[r]: of lanes that are half a vector apart first, then
// a quarter, and so on.
template <class Merge>
NEO_INLINE F32 merge_across(F32* rows, Merge merge) {
#if defined(NEO_ISA_AVX512)
  F32 wide[4];
  for (int i = 0; i < 4; ++i) {
    F32 half[2];
    for (int j = 0; j < 2; ++j) {
      const __m512 a = rows[i + 8 * j].v, b = rows[i + 8 * j + 4].v;
      half[j] = merge(F32{_mm512_shuffle_f32x4(a, b, 0x44)}, F32{_mm512_shuffle_f32x4(a, b, 0xee)});
    }
    wide[i] = merge(F32{_mm512_shuffle_f32x4(half[0].v, half[1].v, 0x88)},
                    F32{_mm512_shuffle_f32x4(half[0].v, half[1].v, 0xdd)});
  }
  F32 pair[2];
  for (int i = 0; i < 2; ++i) {
    const __m512 a = wide[2 * i].v, b = wide[2 * i + 1].v;
    pair[i] = merge(F32{_mm512_shuffle_ps(a, b, 0x44)}, F32{_mm512_shuffle_ps(a, b, 0xee)});
  }
  return merge(F32{_mm512_shuffle_ps(pair[0].v, pair[1].v, 0x88)}, F32{_mm512_shuffle_ps(pair[0].v, pair[1].v, 0xdd)});
#elif defined(NEO_ISA_AVX2)
  F32 wide[4];
  for (int i = 0; i < 4; ++i) {
    const __m256 a = rows[i].v, b = rows[i + 4].v;
    wide[i] = merge(F32{_mm256_permute2f128_ps(a, b, 0x20)}, F32{_mm256_permute2f128_ps(a, b, 0x31)});
  }
  F32 pair[2];
  for (int i = 0; i < 2; ++i) {
    const __m256 a = wide[2 * i].v, b = wide[2 * i + 1].v;
    pair[i] = merge(F32{_mm256_shuffle_ps(a, b, 0x44)}, F32{_mm256_shuffle_ps(a, b, 0xee)});
  }
  return merge(F32{_mm256_shuffle_ps(pair[0].v, pair[1].v, 0x88)}, F32{_mm256_shuffle_ps(pair[0].v, pair[1].v, 0xdd)});
#else
  transpose(rows);
  for (int n = kLanes / 2; n > 0; n /= 2) {
    for (int r = 0; r < n; ++r) rows[r] = merge(rows[r], rows[r + n]);
  }
  return rows[0];
#endif
}

}  // namespace
}  // namespace neo::NEO_ISA
