#pragma once

// How kernels read codes, and how their sums become the result (DotResult).

#include "routines/cpu/int8/dot_tile.h"
#include "simd/bytes.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {

NEO_INLINE I32 load_codes(const uint8_t* p, bool is_signed) {
  return is_signed ? load_i8((const int8_t*)p) : load_u8(p);
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

// The number of a tile's sum once the residual, or else the addend, is in.
NEO_INLINE F32 add_residual(F32 t, const DotResult& r, const uint8_t* residual, F32 addend, int64_t count) {
  if (r.has_middle) {
    const F32 steps = min(broadcast(r.middle_hi), max(broadcast(r.middle_lo), t));
    t = to_f32(round_to_i32(steps)) * broadcast(r.middle_scale);
  }
  if (!residual) return t + addend;
  I32 codes;
  if (count >= kLanes) {
    codes = load_codes(residual, r.residual_is_signed);
  } else {
    codes = r.residual_is_signed ? load_i8_n((const int8_t*)residual, count) : load_u8_n(residual, count);
  }
  const F32 added = to_f32(codes - broadcast_i32(r.residual_zero)) * broadcast(r.residual_scale);
  return t + added;
}

// The first `count` lanes of vectors of sums, `sums_step` apart, of which the result's elements are `row` apart from
// element `at` on. To the sums of a row its number of `row_sums`, if any, is added as often as the columns' shift says.
NEO_INLINE void store_rows(const int32_t* sums, int64_t sums_step, const int32_t* row_sums, int64_t rows,
                           const DotResult& result, int64_t column, int64_t count, void* dst, int64_t at, int64_t row,
                           const uint8_t* residual, int64_t residual_row) {
  const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
  const F32 scale = load(result.scale + column), add = load(result.add + column);
  const I32 mask = load_i32(result.mask + column), zero_point = broadcast_i32(result.zero);
  const bool is_whole = count >= kLanes;
  const I32 shift = row_sums ? load_i32(result.shift + column) : broadcast_i32(0);
  const auto sum_of = [&](int64_t r) __attribute__((always_inline)) {
    const I32 sum = load_i32(sums);
    return row_sums ? sum + broadcast_i32(row_sums[r]) * shift : sum;
  };
  if (result.is_whole) {
    for (int64_t r = 0; r < rows; ++r, sums += sums_step, at += row) {
      const I32 whole = sum_of(r) & mask;
      is_whole ? store_i32((int32_t*)dst + at, whole) : store_i32_n((int32_t*)dst + at, whole, count);
    }
    return;
  }
  if (result.is_float) {
    for (int64_t r = 0; r < rows; ++r, sums += sums_step, at += row) {
      const F32 x = min(hi, max(lo, to_f32(sum_of(r)) * scale + add));
      const F32 kept = bits_as_f32(bits_as_i32(x) & mask);
      is_whole ? store((float*)dst + at, kept) : store_n((float*)dst + at, kept, count);
    }
    return;
  }
  auto* to = (uint8_t*)dst + at;
  const auto number_of = [&](int64_t r) __attribute__((always_inline)) {
    const I32 sum = load_i32(sums + r * sums_step);
    return to_f32(row_sums ? sum + broadcast_i32(row_sums[r]) * shift : sum) * scale + add;
  };
  const auto store_all = [&](const auto& steps_of) __attribute__((always_inline)) {
    int64_t r = 0;
    if constexpr (kStoresFour) {
      const bool has_padding = !all(eq(mask, broadcast_i32(-1)));
      const auto kept = [&](I32 steps) __attribute__((always_inline)) {
        return has_padding ? (steps + zero_point) & mask : steps;
      };
      const int32_t plus = has_padding ? 0 : result.zero;
      for (; is_whole && r + 2 <= rows; r += 4) {
        const int64_t n = rows - r;
        const I32 a = kept(steps_of(r)), b = kept(steps_of(r + 1));
        const I32 c = n > 2 ? kept(steps_of(r + 2)) : a, d = n > 3 ? kept(steps_of(r + 3)) : a;
        store_four(to + r * row, row, n, a, b, c, d, plus, result.is_signed);
      }
    }
    for (; r < rows; ++r) store_codes(to + r * row, (steps_of(r) + zero_point) & mask, result.is_signed, count);
  };
  if (!residual && !result.addend) {
    store_all([&](int64_t r) __attribute__((always_inline)) { return round_to_i32(min(hi, max(lo, number_of(r)))); });
    return;
  }
  const F32 addend = result.addend ? load(result.addend + column) : zero();
  const F32 y_scale = broadcast(result.y_scale);
  store_all([&](int64_t r) __attribute__((always_inline)) {
    const uint8_t* added = residual ? residual + r * residual_row : nullptr;
    const F32 steps = add_residual(number_of(r), result, added, addend, count) / y_scale;
    return round_to_i32(min(hi, max(lo, steps)));
  });
}

}  // namespace neo::NEO_ISA
