#include "routines/cpu/conv/pointwise/sparse.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

template <int kVectors>
void sum_sparse(const SparseRun& run) {
  F32 sum[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sum[v] = broadcast(run.bias);
  for (const SparseWeight* w = run.begin; w != run.end; ++w) {
    const float* x = run.src + w->channel * run.src_channel;
    const F32 value = broadcast(w->value);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) accumulate(sum[v], load(x + v * kLanes), value);
  }
  const F32 lo = broadcast(run.lo), hi = broadcast(run.hi);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = v * kLanes;
    if (at >= run.pixels) return;
    const int64_t count = run.pixels - at < kLanes ? run.pixels - at : kLanes;
    if (run.residual) sum[v] = add(sum[v], load_n(run.residual + at, count));
    store_n(run.dst + at, clamp_nan(sum[v], lo, hi), count);
  }
}

}  // namespace

void sparse_run(const SparseRun& run) {
  static_assert(kSparseVectors == 8, "a case for every even number of vectors");
  switch ((run.pixels + 2 * kLanes - 1) / (2 * kLanes)) {
    case 1:
      return sum_sparse<2>(run);
    case 2:
      return sum_sparse<4>(run);
    case 3:
      return sum_sparse<6>(run);
    default:
      return sum_sparse<8>(run);
  }
}

}  // namespace neo::NEO_ISA
