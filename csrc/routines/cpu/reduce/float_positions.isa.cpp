#include <math.h>

#include "routines/cpu/reduce/positions.h"
#include "simd/vec.h"

// Positions of the largest or least of float32 numbers: values and positions side by side in vectors.

namespace neo::NEO_ISA {
namespace {

template <bool largest>
NEO_INLINE Mask better(F32 a, F32 b) {
  return largest ? gt(a, b) : lt(a, b);
}

// The best of each lane so far, and where it is.
template <bool largest>
struct Extremes {
  F32 best;
  I32 at;

  NEO_INLINE void take(F32 x, I32 position, bool last) {
    const Mask replaces = last ? mask_not(better<largest>(best, x)) : better<largest>(x, best);
    best = select(replaces, x, best);
    at = select(replaces, position, at);
  }
};

template <bool largest>
int64_t find_in_row(const float* x, int64_t n, bool last) {
  // Positions are compared as float32, which holds so many.
  constexpr int64_t kMax = 1 << 24;
  if (n < kLanes || n > kMax) return find_one_by_one<largest>(x, n, 1, last);
  Extremes<largest> e = {load(x), iota_i32()};
  Mask is_nan = ne(e.best, e.best);
  const auto take = [&](int64_t i) NEO_LAMBDA {
    const F32 v = load(x + i);
    e.take(v, add(iota_i32(), broadcast_i32((int32_t)i)), last);
    is_nan = mask_or(is_nan, ne(v, v));
  };
  for (int64_t i = kLanes; i + kLanes <= n; i += kLanes) take(i);
  // The last elements, some of them once more: no lane sees its elements out of order.
  if (n % kLanes != 0) take(n - kLanes);
  if (any(is_nan)) return find_one_by_one<largest>(x, n, 1, last);
  const F32 top = broadcast(largest ? reduce_max(e.best) : reduce_min(e.best));
  const F32 places = select(eq(e.best, top), to_f32(e.at), broadcast(last ? -1.0f : INFINITY));
  return (int64_t)(last ? reduce_max(places) : reduce_min(places));
}

template <bool largest>
void find_in_columns(const float* x, int64_t along, int64_t stride, int64_t columns, bool last, int64_t* dst) {
  int64_t j = 0;
  for (; j + kLanes <= columns && along <= INT32_MAX; j += kLanes) {
    Extremes<largest> e = {load(x + j), broadcast_i32(0)};
    for (int64_t i = 1; i < along; ++i) e.take(load(x + i * stride + j), broadcast_i32((int32_t)i), last);
    int32_t at[kLanes];
    store_i32(at, e.at);
    for (int64_t l = 0; l < kLanes; ++l) dst[j + l] = at[l];
  }
  for (; j < columns; ++j) dst[j] = find_one_by_one<largest>(x + j, along, stride, last);
}

}  // namespace

void float_positions(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  if (args.kind == ReduceKind::ArgMax)
    return find_positions<float>(args, begin, end, find_in_row<true>, find_in_columns<true>);
  find_positions<float>(args, begin, end, find_in_row<false>, find_in_columns<false>);
}

}  // namespace neo::NEO_ISA
