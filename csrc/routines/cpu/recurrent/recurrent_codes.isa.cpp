#include "routines/cpu/recurrent/recurrent_codes.h"

#include "simd/dot.h"
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

namespace {

// Codes of a vector of numbers; what is no number becomes the zero point.
NEO_INLINE I32 codes_of(F32 x, F32 scale, I32 zero_point) {
  const F32 steps = x / scale;
  const F32 near = min(broadcast(300.0f), max(broadcast(-300.0f), steps));
  const I32 code = round_to_i32(select(is_nan(steps), zero(), near)) + zero_point;
  return max(broadcast_i32(0), min(broadcast_i32(255), code));
}

NEO_INLINE int32_t sum_of(I32 x) {
  int32_t each[kLanes], all = 0;
  store_i32(each, x);
  for (int64_t i = 0; i < kLanes; ++i) all += each[i];
  return all;
}

// Exact sums of a gate become numbers.
struct GateScale {
  F32 scale, bias;
  I32 zeros, of_column;

  NEO_INLINE GateScale(const SumsOfCodes& a, int64_t gate)
      : scale(broadcast(a.scale) * load(a.weight_scales + gate * kLanes)),
        bias(a.bias ? load(a.bias + gate * kLanes) : zero()),
        zeros(a.row_sums ? load_i32(a.weight_zeros + gate * kLanes) : broadcast_i32(0)),
        of_column(broadcast_i32(a.zero) * load_i32(a.column_sums + gate * kLanes)) {}

  NEO_INLINE F32 number(const SumsOfCodes& a, I32 sum, int64_t row) const {
    I32 exact = sum - of_column;
    if (a.row_sums) exact = exact - zeros * broadcast_i32(a.row_sums[row]);
    return fma(to_f32(exact), scale, bias);
  }
};

template <bool kBytes>
NEO_INLINE void add_words(I32& sum, I32 codes, I32 weights) {
  if constexpr (kBytes) {
    dot_bytes(sum, codes, weights);
  } else {
    dot_pairs(sum, codes, weights);
  }
}

NEO_INLINE I32 broadcast_word(const uint8_t* at) {
  int32_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return broadcast_i32(word);
}

// One row has too few sums to hide the latency of their products, so it takes two parts at once.
template <bool kBytes>
void product_of_row(const SumsOfCodes& a, const int32_t* weights, const uint8_t* codes, int64_t words) {
  constexpr int kGates = 4;
  I32 even[kGates], odd[kGates];
  for (int g = 0; g < kGates; ++g) even[g] = odd[g] = broadcast_i32(0);
  int64_t k = 0;
  for (; k + 2 <= words; k += 2, weights += 2 * kGates * kLanes) {
    const I32 first = broadcast_word(codes + 4 * k), second = broadcast_word(codes + 4 * k + 4);
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) add_words<kBytes>(even[g], first, load_i32(weights + g * kLanes));
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) add_words<kBytes>(odd[g], second, load_i32(weights + (kGates + g) * kLanes));
  }
  if (k < words) {
    const I32 last = broadcast_word(codes + 4 * k);
    for (int g = 0; g < kGates; ++g) add_words<kBytes>(even[g], last, load_i32(weights + g * kLanes));
  }
  for (int g = 0; g < kGates; ++g) {
    store((float*)(a.sums + g * a.gate), GateScale(a, g).number(a, even[g] + odd[g], 0));
  }
}

}  // namespace

void recurrent_codes_of_rows(const CodesOfRows& a) {
  const int64_t item = a.bytes ? 1 : 2, words = (a.depth * item + 3) / 4;
  const F32 scale = broadcast(a.scale);
  const I32 zero_point = broadcast_i32(a.zero);
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.x_row;
    uint8_t* codes = a.codes + r * a.codes_row;
    I32 sum = broadcast_i32(0);
    int32_t rest = 0;
    for (int64_t k = 0; k < a.depth; k += kLanes) {
      const int64_t count = a.depth - k;
      const I32 held = codes_of(count >= kLanes ? load(x + k) : load_n(x + k, count), scale, zero_point);
      if (a.bytes && count >= kLanes) {
        store_u8(codes + k, held);
        sum = sum + held;
        continue;
      }
      int32_t each[kLanes];
      store_i32(each, a.bytes ? held : held - zero_point);
      for (int64_t i = 0; i < (count < kLanes ? count : kLanes); ++i) {
        const auto code = (uint16_t)each[i];
        __builtin_memcpy(codes + item * (k + i), &code, (size_t)item);
        rest += each[i];
      }
    }
    for (int64_t i = a.depth * item; i < words * 4; ++i) codes[i] = 0;
    if (a.sums) a.sums[r] = rest + sum_of(sum);
  }
}

void recurrent_sums_of_codes(const SumsOfCodes& a) {
  for (int64_t g = 0; g < a.gates; ++g) {
    const GateScale gate(a, g);
    int32_t* sums = a.sums + g * a.gate;
    for (int64_t r = 0; r < a.rows; ++r, sums += kLanes) store((float*)sums, gate.number(a, load_i32(sums), r));
  }
}

void recurrent_product_of_row(const SumsOfCodes& a, const int32_t* weights, const uint8_t* codes, int64_t words,
                              bool bytes) {
  if constexpr (kHasDotBytes) {
    if (bytes) return product_of_row<true>(a, weights, codes, words);
  }
  product_of_row<false>(a, weights, codes, words);
}

}  // namespace neo::NEO_ISA
