#include "routines/cpu/int8/dot_store.h"

namespace neo::NEO_ISA {
namespace {

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

// The sums of a vector of columns, of any result: elements `row` apart from element `at` on. To the sums of a row its
// number of `row_sums`, if any, is added as often as the columns' shift says.
void store_any_rows(const int32_t* sums, int64_t sums_step, const int32_t* row_sums, int64_t rows,
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
    for (int64_t r = 0; r < rows; ++r)
      store_codes(to + r * row, (steps_of(r) + zero_point) & mask, result.is_signed, count);
  };
  if (!residual && !result.addend) {
    store_all([&](int64_t r) __attribute__((always_inline)) { return round_to_i32(min(hi, max(lo, number_of(r)))); });
    return;
  }
  const F32 addend = result.addend ? load(result.addend + column) : zero();
  const CodesDivisor y_scale(result.y_scale);
  store_all([&](int64_t r) __attribute__((always_inline)) {
    const uint8_t* added = residual ? residual + r * residual_row : nullptr;
    return y_scale.round(add_residual(number_of(r), result, added, addend, count), lo, hi);
  });
}

// Sums of `rows` rows of vectors of columns, all of which are stored, that become codes.
struct WholeSums {
  const int32_t* sums;
  int64_t sums_row, rows, vectors;
  const DotResult* result;
  int64_t column;
  uint8_t* dst;
  int64_t dst_row, dst_vector;
  const uint8_t* residual;  // or null
  int64_t residual_row, residual_vector;
};

template <int kRows>
struct RowCount {};

// steps_of(RowCount<n>(), r, steps) gives the codes, less the zero point, of n rows of vector v from row r on.
template <class StepsOf>
NEO_INLINE void store_vector(const WholeSums& s, int64_t v, const StepsOf& steps_of) {
  const DotResult& result = *s.result;
  const I32 mask = load_i32(result.mask + s.column + v * kLanes), zero_point = broadcast_i32(result.zero);
  const bool has_padding = !all(eq(mask, broadcast_i32(-1)));
  const int32_t plus = has_padding ? 0 : result.zero;
  uint8_t* dst = s.dst + v * s.dst_vector;
  const auto store = [&]<int kRows>(RowCount<kRows> count, int64_t r) __attribute__((always_inline)) {
    I32 steps[4];
    steps_of(count, r, steps);
    if (has_padding) {
      for (int i = 0; i < kRows; ++i) steps[i] = (steps[i] + zero_point) & mask;
    }
    for (int i = kRows; i < 4; ++i) steps[i] = steps[i - kRows];
    store_four(dst + r * s.dst_row, s.dst_row, kRows, steps[0], steps[1], steps[2], steps[3], plus, result.is_signed);
  };
  int64_t r = 0;
  for (; r + 4 <= s.rows; r += 4) store(RowCount<4>(), r);
  if (r + 2 <= s.rows) {
    store(RowCount<2>(), r);
    r += 2;
  }
  if (r < s.rows) store(RowCount<1>(), r);
}

void store_whole(const WholeSums& s) {
  const DotResult& result = *s.result;
  const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
  for (int64_t v = 0; v < s.vectors; ++v) {
    const int64_t column = s.column + v * kLanes;
    const int32_t* sums = s.sums + v * kLanes;
    const F32 scale = load(result.scale + column), add = load(result.add + column);
    store_vector(
        s, v, [&]<int kRows>(RowCount<kRows>, int64_t r, I32(&steps)[4]) __attribute__((always_inline)) {
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i)
            steps[i] = round_to_i32(min(hi, max(lo, to_f32(load_i32(sums + (r + i) * s.sums_row)) * scale + add)));
        });
  }
}

// The kinds of a result that has more than its sum: codes of a residual and a sum that is rounded to the middle grid
// first, as models of QuantizeLinear and DequantizeLinear have them, or any.
enum class Added : uint8_t { Any, UnsignedToMiddle, SignedToMiddle };

// Stores results with a residual or an addend. Rows are divided in fours, for which the fast quotients are sure or not.
template <Added kAdded>
void store_whole_and_added(const WholeSums& s) {
  const DotResult& result = *s.result;
  const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
  const CodesDivisor y_scale(result.y_scale);
  const F32 middle_lo = broadcast(result.middle_lo), middle_hi = broadcast(result.middle_hi);
  const F32 middle_scale = broadcast(result.middle_scale), residual_scale = broadcast(result.residual_scale);
  const I32 residual_zero = broadcast_i32(result.residual_zero);
  for (int64_t v = 0; v < s.vectors; ++v) {
    const int64_t column = s.column + v * kLanes;
    const int32_t* sums = s.sums + v * kLanes;
    const F32 scale = load(result.scale + column), add = load(result.add + column);
    const F32 addend = result.addend ? load(result.addend + column) : zero();
    const uint8_t* residual = s.residual ? s.residual + v * s.residual_vector : nullptr;
    const auto number_of = [&](int64_t r) __attribute__((always_inline)) {
      const F32 number = to_f32(load_i32(sums + r * s.sums_row)) * scale + add;
      const uint8_t* added = residual ? residual + r * s.residual_row : nullptr;
      if constexpr (kAdded == Added::Any) return add_residual(number, result, added, addend, kLanes);
      const F32 steps = min(middle_hi, max(middle_lo, number));
      const I32 codes = load_codes(added, kAdded == Added::SignedToMiddle) - residual_zero;
      return to_f32(round_to_i32(steps)) * middle_scale + to_f32(codes) * residual_scale;
    };
    store_vector(
        s, v, [&]<int kRows>(RowCount<kRows>, int64_t r, I32(&steps)[4]) __attribute__((always_inline)) {
          F32 numbers[kRows];
          Mask sure;
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i) {
            numbers[i] = number_of(r + i);
            const Mask is_near = y_scale.nearby(numbers[i], lo, hi, steps[i]);
            sure = i == 0 ? is_near : mask_and(sure, is_near);
          }
          if (!all(sure)) {
#pragma GCC unroll 1
            for (int i = 0; i < kRows; ++i) steps[i] = y_scale.exact(numbers[i], lo, hi);
          }
        });
  }
}

// Stores the sums where they are codes and all columns are stored; false where they are not.
bool stores_whole(const WholeSums& s, const int32_t* row_sums, int64_t columns) {
  if constexpr (kStoresFour) {
    const DotResult& result = *s.result;
    if (row_sums || result.is_whole || result.is_float || columns < s.vectors * kLanes) return false;
    if (!s.residual && !result.addend) {
      store_whole(s);
    } else if (!s.residual || !result.has_middle) {
      store_whole_and_added<Added::Any>(s);
    } else if (result.residual_is_signed) {
      store_whole_and_added<Added::SignedToMiddle>(s);
    } else {
      store_whole_and_added<Added::UnsignedToMiddle>(s);
    }
    return true;
  }
  return false;
}

}  // namespace

void store_tile(const DotTile& t, const int32_t* sums, int64_t vectors, int64_t rows) {
  const int64_t step = vectors * kLanes;
  const WholeSums whole = {
      sums,      step,         rows,       vectors,        t.result,         t.column, (uint8_t*)t.dst,
      t.dst_row, t.dst_vector, t.residual, t.residual_row, t.residual_vector};
  if (stores_whole(whole, t.row_sums, t.columns)) return;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t at = v * t.dst_vector, added = v * t.residual_vector;
    store_any_rows(sums + v * kLanes, step, t.row_sums, rows, *t.result, t.column + v * kLanes, t.columns - v * kLanes,
                   t.dst, at, t.dst_row, t.residual ? t.residual + added : nullptr, t.residual_row);
  }
}

void store_rows(const int32_t* sums, int64_t rows, const DotResult& result, int64_t column, int64_t count, void* dst,
                int64_t at, int64_t row, const uint8_t* residual, int64_t residual_row) {
  const WholeSums whole = {sums, kLanes,   rows,         1, &result, column, (uint8_t*)dst + at, row,
                           0,    residual, residual_row, 0};
  if (stores_whole(whole, nullptr, count)) return;
  store_any_rows(sums, kLanes, nullptr, rows, result, column, count, dst, at, row, residual, residual_row);
}

}  // namespace neo::NEO_ISA
