#include "simd/vec.h"

namespace neo::NEO_ISA {

// 12 x kLanes x rounds fused multiply-adds on registers. Twelve chains hide the latency of the unit; they begin at the
// twelve floats of `starts`, so that they stay twelve.
float peak_multiply_add(const float* starts, int64_t rounds) {
  const F32 factor = broadcast(0.999f), term = broadcast(0.001f);
  F32 a = broadcast(starts[0]), b = broadcast(starts[1]), c = broadcast(starts[2]), d = broadcast(starts[3]),
      e = broadcast(starts[4]), f = broadcast(starts[5]), g = broadcast(starts[6]), h = broadcast(starts[7]),
      i = broadcast(starts[8]), j = broadcast(starts[9]), k = broadcast(starts[10]), l = broadcast(starts[11]);
  for (int64_t r = 0; r < rounds; ++r) {
    a = fma(a, factor, term);
    b = fma(b, factor, term);
    c = fma(c, factor, term);
    d = fma(d, factor, term);
    e = fma(e, factor, term);
    f = fma(f, factor, term);
    g = fma(g, factor, term);
    h = fma(h, factor, term);
    i = fma(i, factor, term);
    j = fma(j, factor, term);
    k = fma(k, factor, term);
    l = fma(l, factor, term);
  }
  return reduce_add(a + b + c + d + e + f + g + h + i + j + k + l);
}

int64_t peak_lanes() {
  return kLanes;
}

// The sum of `count` floats, a multiple of 8 x kLanes.
float peak_read(const float* from, int64_t count) {
  F32 a = zero(), b = zero(), c = zero(), d = zero(), e = zero(), f = zero(), g = zero(), h = zero();
  for (int64_t i = 0; i < count; i += 8 * kLanes) {
    a = a + load(from + i);
    b = b + load(from + i + kLanes);
    c = c + load(from + i + 2 * kLanes);
    d = d + load(from + i + 3 * kLanes);
    e = e + load(from + i + 4 * kLanes);
    f = f + load(from + i + 5 * kLanes);
    g = g + load(from + i + 6 * kLanes);
    h = h + load(from + i + 7 * kLanes);
  }
  return reduce_add(a + b + c + d + e + f + g + h);
}

}  // namespace neo::NEO_ISA
