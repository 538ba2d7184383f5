#include "routines/cpu/recurrent/recurrent_codes.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {

// Widens range[0] ... range[1] to hold the numbers, but for those that are none.
void recurrent_code_range(const float* x, int64_t x_row, int64_t rows, int64_t depth, float* range) {
  F32 low = broadcast(range[0]), high = broadcast(range[1]);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * x_row;
    int64_t k = 0;
    for (; k + kLanes <= depth; k += kLanes) {
      const F32 v = load(row + k);
      low = min(v, low);
      high = max(v, high);
    }
    if (k < depth) {
      // The lanes that are left over are zeros, which every range holds.
      const F32 v = load_n(row + k, depth - k);
      low = min(v, low);
      high = max(v, high);
    }
  }
  range[0] = reduce_min(low);
  range[1] = reduce_max(high);
}

void recurrent_codes_of_rows(const CodesOfRows& a) {
  const int64_t item = a.bytes ? 1 : 2, words = (a.depth * item + 3) / 4;
  const F32 scale = broadcast(a.scale);
  const I32 zero_point = broadcast_i32(a.zero);
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.x_row;
    uint8_t* codes = a.codes + r * a.codes_row;
    I32 sum = broadcast_i32(0);
    for (int64_t k = 0; k < a.depth; k += kLanes) {
      const int64_t count = a.depth - k < kLanes ? a.depth - k : kLanes;
      const F32 steps = load_n(x + k, count) / scale;
      const I32 code = round_to_i32(select(is_nan(steps), zero(), min(broadcast(300.0f), max(broadcast(-300.0f), steps)))) + zero_point;
      const I32 held = max(broadcast_i32(0), min(broadcast_i32(255), code));
      if (a.bytes) {
        store_u8_n(codes + k, held, count);
        int32_t each[kLanes];
        store_i32(each, held);
        for (int64_t i = count; i < kLanes; ++i) each[i] = 0;
        sum = sum + load_i32(each);
      } else {
        int32_t each[kLanes];
        store_i32(each, held - zero_point);
        for (int64_t i = 0; i < count; ++i) {
          const auto less = (int16_t)each[i];
          __builtin_memcpy(codes + 2 * (k + i), &less, sizeof less);
        }
      }
    }
    for (int64_t i = a.depth * item; i < words * 4; ++i) codes[i] = 0;
    int32_t each[kLanes], all = 0;
    store_i32(each, sum);
    for (int64_t i = 0; i < kLanes; ++i) all += each[i];
    a.sums[r] = all;
  }
}

void recurrent_sums_of_codes(const SumsOfCodes& a) {
  for (int64_t g = 0; g < a.gates; ++g) {
    const int64_t column = g * kLanes;
    const F32 scale = broadcast(a.scale) * load(a.weight_scales + column);
    const F32 bias = a.bias ? load(a.bias + column) : zero();
    const I32 zeros = load_i32(a.weight_zeros + column);
    const I32 of_column = broadcast_i32(a.zero) * load_i32(a.column_sums + column);
    int32_t* sums = a.sums + g * a.gate;
    for (int64_t r = 0; r < a.rows; ++r, sums += kLanes) {
      const I32 exact = load_i32(sums) - of_column - zeros * broadcast_i32(a.row_sums[r]);
      store((float*)sums, fma(to_f32(exact), scale, bias));
    }
  }
}

}  // namespace neo::NEO_ISA
