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

// HardSwish on vectors of whole numbers.
struct HardSwishOf {
  F32 slope, factor, lo, hi;

  NEO_INLINE explicit HardSwishOf(const CodesHardSwish& f)
      : slope(broadcast(f.slope)), factor(broadcast(f.factor)), lo(broadcast(f.lo)), hi(broadcast(f.hi)) {}
  NEO_INLINE F32 steps_of(F32 x) const {
    const F32 part = min(broadcast(1.0f), max(zero(), x * slope + broadcast(0.5f)));
    return min(hi, max(lo, x * factor * part));
  }
};

void numbers_of_sums(const int32_t* sums, int64_t step, int64_t pixels, const DotResult& result, int64_t column,
                     const CodesHardSwish* function, float* numbers) {
  const ResultColumn of(result, column);
  const auto store_all = [&](const auto& steps_of) __attribute__((always_inline)) {
    for (int64_t p = 0; p < pixels; ++p, sums += step, numbers += kLanes)
      store(numbers, round_even(steps_of(to_f32(load_i32(sums)))));
  };
  if (!function) {
    store_all([&](F32 sum) __attribute__((always_inline)) { return of.steps_of(sum); });
  } else {
    const HardSwishOf swish(*function);
    store_all([&](F32 sum) __attribute__((always_inline)) { return swish.steps_of(round_even(of.steps_of(sum))); });
  }
}

void codes_of_sums(const float* sums, int64_t pixels, const DotResult& result, int64_t column,
                   const CodesHardSwish* function, uint8_t* codes) {
  const ResultColumn of(result, column);
  const I32 mask = load_i32(result.mask + column);
  const int32_t plus = function ? function->zero : result.zero;
  const bool is_signed = function ? function->is_signed : result.is_signed, is_whole = all(eq(mask, broadcast_i32(-1)));
  const auto store_all = [&](const auto& steps_at) __attribute__((always_inline)) {
    int64_t p = 0;
    if constexpr (kStoresFour) {
      for (; is_whole && p + 4 <= pixels; p += 4)
        store_four(codes + p * kLanes, kLanes, 4, steps_at(p), steps_at(p + 1), steps_at(p + 2), steps_at(p + 3), plus,
                   is_signed);
    }
    for (; p < pixels; ++p)
      store_codes(codes + p * kLanes, (steps_at(p) + broadcast_i32(plus)) & mask, is_signed, kLanes);
  };
  if (!function) {
    store_all([&](int64_t p)
                  __attribute__((always_inline)) { return round_to_i32(of.steps_of(load(sums + p * kLanes))); });
  } else {
    const HardSwishOf swish(*function);
    store_all([&](int64_t p) __attribute__((always_inline)) {
      return round_to_i32(swish.steps_of(round_even(of.steps_of(load(sums + p * kLanes)))));
    });
  }
}

constexpr CodesChainKernels kChainKernels = {&read_codes, &numbers_of_sums, &codes_of_sums};

}  // namespace

const CodesChainKernels& codes_chain_kernels() {
  return kChainKernels;
}

}  // namespace neo::NEO_ISA
