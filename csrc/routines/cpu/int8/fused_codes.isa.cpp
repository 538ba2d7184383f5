#include "routines/cpu/int8/fused_codes.h"

#include "routines/cpu/int8/dot_store.h"

namespace neo::NEO_ISA {
namespace {

void read_codes(const uint8_t* codes, int64_t pixels, int32_t zero_point, bool is_signed, float* numbers) {
  const I32 from = broadcast_i32(zero_point);
  if (is_signed) {
    for (int64_t p = 0; p < pixels * kLanes; p += kLanes)
      store(numbers + p, to_f32(load_codes(codes + p, true) - from));
  } else {
    for (int64_t p = 0; p < pixels * kLanes; p += kLanes)
      store(numbers + p, to_f32(load_codes(codes + p, false) - from));
  }
}

// A vector's share of a result.
struct ResultColumn {
  F32 lo, hi, scale, add;

  NEO_INLINE ResultColumn(const DotResult& r, int64_t column)
      : lo(broadcast(r.lo)), hi(broadcast(r.hi)), scale(load(r.scale + column)), add(load(r.add + column)) {}
  NEO_INLINE F32 steps_of(F32 sum) const { return min(hi, max(lo, sum * scale + add)); }
};

void numbers_of_sums(const int32_t* sums, int64_t step, int64_t pixels, const DotResult& result, int64_t column,
                     float* numbers) {
  const ResultColumn of(result, column);
  for (int64_t p = 0; p < pixels; ++p, sums += step, numbers += kLanes)
    store(numbers, round_even(of.steps_of(to_f32(load_i32(sums)))));
}

void codes_of_sums(const float* sums, int64_t pixels, const DotResult& result, int64_t column, uint8_t* codes) {
  const ResultColumn of(result, column);
  const I32 mask = load_i32(result.mask + column), zero_point = broadcast_i32(result.zero);
  const auto steps_of = [&](int64_t p) __attribute__((always_inline)) {
    return round_to_i32(of.steps_of(load(sums + p * kLanes)));
  };
  int64_t p = 0;
  if constexpr (kStoresFour) {
    if (all(eq(mask, broadcast_i32(-1)))) {
      for (; p + 4 <= pixels; p += 4) {
        store_four(codes + p * kLanes, kLanes, 4, steps_of(p), steps_of(p + 1), steps_of(p + 2), steps_of(p + 3),
                   result.zero, result.is_signed);
      }
    }
  }
  for (; p < pixels; ++p) store_codes(codes + p * kLanes, (steps_of(p) + zero_point) & mask, result.is_signed, kLanes);
}

constexpr CodesChainKernels kChainKernels = {&read_codes, &numbers_of_sums, &codes_of_sums};

}  // namespace

const CodesChainKernels& codes_chain_kernels() {
  return kChainKernels;
}

}  // namespace neo::NEO_ISA
