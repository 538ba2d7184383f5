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

// The extreme first, by several vectors that do not wait for each other, then where it is.
template <bool largest>
__attribute__((noinline)) int64_t find_in_long_row(const float* x, int64_t n, bool last) {
  constexpr int kParts = 4;
  F32 best[kParts];
  Mask is_nan[kParts];
  for (int p = 0; p < kParts; ++p) {
    best[p] = load(x + p * kLanes);
    is_nan[p] = ne(best[p], best[p]);
  }
  const auto take = [&](int p, int64_t i) NEO_LAMBDA {
    const F32 v = load(x + i);
    best[p] = largest ? max(v, best[p]) : min(v, best[p]);
    is_nan[p] = mask_or(is_nan[p], ne(v, v));
  };
  int64_t i = kParts * kLanes;
  for (; i + kParts * kLanes <= n; i += kParts * kLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) take(p, i + p * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) take(0, i);
  take(1, n - kLanes);
  if (any(mask_or(mask_or(is_nan[0], is_nan[1]), mask_or(is_nan[2], is_nan[3]))))
    return find_one_by_one<largest>(x, n, 1, last);
  const F32 top = broadcast(largest ? reduce_max(max(max(best[0], best[1]), max(best[2], best[3])))
                                    : reduce_min(min(min(best[0], best[1]), min(best[2], best[3]))));
  const float value = largest ? reduce_max(top) : reduce_min(top);
  const auto has = [&](int64_t from) NEO_LAMBDA { return any(eq(load(x + from), top)); };
  if (last) {
    int64_t end = n;
    while (end > kLanes && !has(end - kLanes)) end -= kLanes;
    while (x[end - 1] != value) --end;
    return end - 1;
  }
  int64_t begin = 0;
  while (begin + kLanes < n && !has(begin)) begin += kLanes;
  while (x[begin] != value) ++begin;
  return begin;
}

template <bool largest>
int64_t find_in_row(const float* x, int64_t n, bool last) {
  // Positions are compared as float32.
  constexpr int64_t kLong = 32 * kLanes;
  if (n < kLanes) return find_one_by_one<largest>(x, n, 1, last);
  if (n > kLong) return find_in_long_row<largest>(x, n, last);
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
__attribute__((noinline)) void find_in_columns(const float* x, int64_t along, int64_t stride, int64_t columns,
                                               bool last, int64_t* dst) {
  if (along > INT32_MAX) {
    for (int64_t j = 0; j < columns; ++j) dst[j] = find_one_by_one<largest>(x + j, along, stride, last);
    return;
  }
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t n = columns - j < kLanes ? columns - j : kLanes;
    Extremes<largest> e = {load_n(x + j, n), broadcast_i32(0)};
    for (int64_t i = 1; i < along; ++i) e.take(load_n(x + i * stride + j, n), broadcast_i32((int32_t)i), last);
    int32_t at[kLanes];
    store_i32(at, e.at);
    for (int64_t l = 0; l < n; ++l) dst[j + l] = at[l];
  }
}

}  // namespace

void float_positions(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  if (args.kind == ReduceKind::ArgMax)
    return find_positions<float>(args, begin, end, find_in_row<true>, find_in_columns<true>);
  find_positions<float>(args, begin, end, find_in_row<false>, find_in_columns<false>);
}

}  // namespace neo::NEO_ISA
