#pragma once

// What the kernels of register blocks share (tile.isa.cpp, strassen_tile.isa.cpp).

#include "routines/cpu/gemm/tile.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {

// Rows per block such that accumulators, one k of weights and a broadcast or two stay in registers.
constexpr int max_tile_rows(int vectors) {
  const int rows = kVectorRegisters == 32 ? (vectors == 4 ? 6 : (vectors == 3 ? 9 : 14))
                                          : (vectors == 4 ? 3 : (vectors == 3 ? 4 : (vectors == 2 ? 6 : 12)));
  return rows < kTileRows ? rows : kTileRows;
}

constexpr int kUnroll = 4;

// One k of the block. The smaller side stays in registers, the other passes through one.
template <int V, int R, class Element>
NEO_INLINE void step_k(F32 (&acc)[R][V], const float* weight, Element element) {
  if constexpr (R < V) {
    F32 x[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) x[r] = broadcast(element(r));
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const F32 w = load(weight + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) accumulate(acc[r][v], x[r], w);
    }
  } else {
    F32 w[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) w[v] = load(weight + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F32 x = broadcast(element(r));
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) accumulate(acc[r][v], x, w[v]);
    }
  }
}

// What is fetched into the second-level cache beside the sums: `step` bytes per k.
struct Ahead {
  const char* at;
  int64_t step;

  NEO_INLINE void fetch(int64_t count) {
    constexpr int64_t kLine = 64;
    const char* const end = at + count * step;
    // With few registers the loads of the sums already fill the ports.
    if constexpr (kVectorRegisters == 32) {
      for (; at < end; at += kLine) prefetch(at);
    }
    at = end;
  }
};

// Three rows share a base: base, base + step and base + 2 * step are single addressing modes.
// kCount: `count` where that is known, else 0.
template <int V, int R, int kCount>
NEO_INLINE void sum_rows(F32 (&acc)[R][V], const float* weight, int64_t weight_step, const float* src, int64_t step,
                         int64_t count, Ahead& ahead) {
  if constexpr (kCount > 0) count = kCount;
  constexpr int kBases = (R + 2) / 3;
  const float* base[kBases];
#pragma GCC unroll 16
  for (int j = 0; j < kBases; ++j) {
    base[j] = src + 3 * j * step;
    asm("" : "+r"(base[j]));
  }
  int64_t k = 0;
  for (; k + kUnroll <= count; k += kUnroll) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) {
      step_k<V, R>(
          acc, weight, [&](int r) __attribute__((always_inline)) { return base[r / 3][(r % 3) * step + u]; });
      weight += weight_step;
    }
    ahead.fetch(kUnroll);
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] += kUnroll;
  }
  for (; k < count; ++k) {
    step_k<V, R>(
        acc, weight, [&](int r) __attribute__((always_inline)) { return base[r / 3][(r % 3) * step]; });
    weight += weight_step;
    ahead.fetch(1);
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] += 1;
  }
}

}  // namespace neo::NEO_ISA
