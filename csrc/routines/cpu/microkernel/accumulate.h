#pragma once

// Code that the kernels of register blocks share (tile.isa.cpp, strassen_tile.isa.cpp).

#include "routines/cpu/microkernel/tile.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {

// Rows per block such that accumulators, one k of weights and a broadcast or two stay in registers.
constexpr int max_tile_rows(int vectors) {
  const int rows = kVectorRegisters == 32 ? (vectors == 4 ? 6 : (vectors == 3 ? 9 : 14))
                                          : (vectors == 4 ? 3 : (vectors == 3 ? 4 : (vectors == 2 ? 6 : 12)));
  return rows < kTileRows ? rows : kTileRows;
}

// With few registers the blocks of all widths have as many sums, and the narrow ones read fewer weights for each.
constexpr int kPanelVectors = kVectorRegisters == 32 ? kTileVectors : 2;

constexpr int kUnroll = 4;
// k that a register block multiplies before its pointers move on: where there are fewer registers blocks are small, and
// their loops may be.
constexpr int kTogether = kVectorRegisters == 32 ? kUnroll : 2;

// One k of the block. The smaller side stays in registers, the other passes through one.
template <int V, int R, class Element>
NEO_INLINE void step_k(F32 (&acc)[R][V], const float* weight, Element element) {
  if constexpr (V == 1) {
    const F32 w = load(weight);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) accumulate(acc[r][0], element(r), w);
  } else if constexpr (R < V) {
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

// Prefetches into the second-level cache beside the sums: `step` bytes per k.
struct Prefetcher {
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

// Rows that share a base: base, base + step and base + 2 * step are single addressing modes of x86-64, also with a k
// added; AArch64 adds one or the other, and has registers for all.
#if defined(__aarch64__)
constexpr int kShared = 1;
#else
constexpr int kShared = 3;
#endif

// The rows of a block. `hide` keeps the compiler from keeping sums of these, of which it would make more than there are
// registers.
template <int R>
struct Rows {
  static constexpr int kBases = (R + kShared - 1) / kShared;
  const char* base[kBases];
  int64_t step, twice;  // bytes

  NEO_INLINE Rows(const float* first, int64_t row_step)
      : step(row_step * (int64_t)sizeof(float)), twice(2 * row_step * (int64_t)sizeof(float)) {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] = (const char*)first + kShared * j * step;
  }

  NEO_INLINE void hide() {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) asm("" : "+r"(base[j]));
    asm("" : "+r"(step), "+r"(twice));
  }

  NEO_INLINE const float& at(int r, int k) const {
    const int i = r % kShared;
    return *(const float*)(base[r / kShared] + (i == 0 ? 0 : (i == 1 ? step : twice)) + k * sizeof(float));
  }

  // Into the first-level cache: where the rows behind these are read next.
  NEO_INLINE void fetch_next() const {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) {
      const char* const next = base[j] + R * step;
      for (int i = 0; i < kShared && kShared * j + i < R; ++i) prefetch_read(next + i * step);
    }
  }

  NEO_INLINE void advance(int count) {
    move(count * (int64_t)sizeof(float));
  }

  NEO_INLINE void move(int64_t bytes) {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] += bytes;
  }
};

template <int V, int R>
NEO_INLINE void sum_rows(F32 (&acc)[R][V], const float* weight, int64_t weight_step, const float* src, int64_t step,
                         int64_t count, Prefetcher& prefetched) {
  Rows<R> rows(src, step);
  int64_t k = 0;
  for (; k + kTogether <= count; k += kTogether) {
    rows.hide();
#pragma GCC unroll 4
    for (int u = 0; u < kTogether; ++u) {
      step_k<V, R>(
          acc, weight, [&](int r) __attribute__((always_inline))->const float& { return rows.at(r, u); });
      weight += weight_step;
    }
    prefetched.fetch(kTogether);
    rows.advance(kTogether);
  }
  for (; k < count; ++k) {
    rows.hide();
    step_k<V, R>(
        acc, weight, [&](int r) __attribute__((always_inline))->const float& { return rows.at(r, 0); });
    weight += weight_step;
    prefetched.fetch(1);
    rows.advance(1);
  }
}

// `count` k with dense weights. The rows stay where they are.
template <int V, int R, int count = kTogether>
NEO_INLINE void sum_together(F32 (&acc)[R][V], const float*& weight, Rows<R>& rows) {
#pragma GCC unroll 16
  for (int u = 0; u < count; ++u) {
    if (u % kTogether == 0) {
      rows.hide();
      asm("" : "+r"(weight));
    }
    step_k<V, R>(
        acc,
        weight + u * V * kLanes, [&](int r) __attribute__((always_inline))->const float& { return rows.at(r, u); });
  }
  weight += count * V * kLanes;
}

// k between two ends of a loop over dense weights. A loop's work besides the sums takes a sixth of the instructions
// of kTogether k, and cores that run another thread beside this one have none to spare: the largest blocks, and wide
// ones with a row less, take a whole vector.
template <int V, int R>
constexpr int dense_step() {
  constexpr int kMin = max_tile_rows(V) - (V > 2 ? 1 : 0);
  return kVectorRegisters == 32 && V > 1 && R >= kMin && kLanes > kTogether ? kLanes : kTogether;
}

// As many k as a vector has lanes, with dense weights; `beside` happens after each `step` of them.
template <int V, int R, int step = kTogether, class Beside>
NEO_INLINE void sum_lanes(F32 (&acc)[R][V], const float* weight, const float* src, int64_t row_step,
                          Prefetcher& prefetched, Beside beside) {
  static_assert(kLanes % step == 0);
  Rows<R> rows(src, row_step);
#pragma GCC unroll 1
  for (int k = 0; k < kLanes; k += step) {
    sum_together<V, R, step>(acc, weight, rows);
    prefetched.fetch(step);
    rows.advance(step);
    beside();
  }
}

template <int V, int R, int step = kTogether>
NEO_INLINE void sum_lanes(F32 (&acc)[R][V], const float* weight, const float* src, int64_t row_step,
                          Prefetcher& prefetched) {
  sum_lanes<V, R, step>(acc, weight, src, row_step, prefetched, [] {});
}

}  // namespace neo::NEO_ISA
