#include "routines/cpu/sparse/sparse.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Few vectors have sums enough for the units to be busy only where neighbouring weights have sums of their own.
template <int kVectors>
void sum_sparse(const SparseRun& run) {
  constexpr int kSums = kVectors <= 2 ? 4 : (kVectors <= 4 ? 2 : 1);
  F32 sums[kSums][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kSums; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[i][v] = i == 0 ? broadcast(run.bias) : zero();
  }
  const auto add_weight = [&](const SparseWeight& w, F32(&to)[kVectors]) __attribute__((always_inline)) {
    const float* x = run.src + run.sources[w.source];
    const F32 value = broadcast(w.value);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) accumulate(to[v], load(x + v * kLanes), value);
  };
  const SparseWeight* w = run.begin;
  if constexpr (kSums > 1) {
    for (; run.end - w >= kSums; w += kSums) {
#pragma GCC unroll 4
      for (int i = 0; i < kSums; ++i) add_weight(w[i], sums[i]);
    }
  }
  for (; w != run.end; ++w) add_weight(*w, sums[0]);
  F32(&sum)[kVectors] = sums[0];
#pragma GCC unroll 4
  for (int i = 1; i < kSums; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] = add(sum[v], sums[i][v]);
  }
  const F32 lo = broadcast(run.lo), hi = broadcast(run.hi);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = v * kLanes;
    if (at >= run.count) return;
    const int64_t count = run.count - at < kLanes ? run.count - at : kLanes;
    if (run.residual) sum[v] = add(sum[v], load_n(run.residual + at, count));
    store_n(run.dst + at, clamp_nan(sum[v], lo, hi), count);
  }
}

// One result, whose sources lie anywhere.
void sum_one(const SparseRun& run) {
  constexpr int kSums = 8;
  float sums[kSums] = {run.bias};
  const auto product = [&](const SparseWeight& w) __attribute__((always_inline)) {
    return w.value * run.src[run.sources[w.source]];
  };
  const SparseWeight* w = run.begin;
  for (; run.end - w >= kSums; w += kSums) {
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) sums[i] += product(w[i]);
  }
  for (; w != run.end; ++w) sums[0] += product(*w);
  float sum = 0;
  for (const float part : sums) sum += part;
  if (run.residual) sum += *run.residual;
  store_n(run.dst, clamp_nan(broadcast(sum), broadcast(run.lo), broadcast(run.hi)), 1);
}

void run_sparse(const SparseRun& run) {
  if (run.count == 1) return sum_one(run);
  if (run.count <= kLanes) return sum_sparse<1>(run);
  static_assert(kSparseVectors == 8, "a case for every even number of vectors");
  switch ((run.count + 2 * kLanes - 1) / (2 * kLanes)) {
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

NEO_INLINE int64_t lanes_left(int64_t count, int64_t at) {
  return count - at < kLanes ? count - at : kLanes;
}

void put_by_columns(const SparseRows& r) {
  for (int64_t i = 0; i < r.row_count; i += kLanes) {
    const int64_t rows = lanes_left(r.row_count, i);
    for (int64_t j = 0; j < r.column_count; j += kLanes) {
      const int64_t columns = lanes_left(r.column_count, j);
      F32 block[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        block[lane] = lane < rows ? load_n(r.rows + (i + lane) * r.row + j, columns) : zero();
      transpose(block);
      for (int64_t lane = 0; lane < columns; ++lane) store(r.columns + (j + lane) * r.column + i, block[lane]);
    }
  }
}

void put_by_rows(const SparseRows& r) {
  const F32 lo = broadcast(r.lo), hi = broadcast(r.hi), beta = broadcast(r.beta);
  const int64_t columns = r.column_count;
  for (int64_t i = 0; i < r.row_count; i += kLanes) {
    const int64_t rows = lanes_left(r.row_count, i);
    F32 block[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane)
      block[lane] = lane < columns ? load(r.columns + lane * r.column + i) : zero();
    transpose(block);
    for (int64_t lane = 0; lane < rows; ++lane) {
      F32 y = block[lane];
      if (r.residual) {
        const float* added = r.residual + (i + lane) * r.residual_row;
        if (r.residual_column == 1) {
          y = add(y, mul(load_n(added, columns), beta));
        } else {
          float one_by_one[kLanes] = {};
          for (int64_t j = 0; j < columns; ++j) one_by_one[j] = added[j * r.residual_column];
          y = add(y, mul(load(one_by_one), beta));
        }
      }
      store_n(r.rows + (i + lane) * r.row, clamp_nan(y, lo, hi), columns);
    }
  }
}

constexpr SparseKernels kSparseKernels = {&run_sparse, &put_by_columns, &put_by_rows};

}  // namespace

const SparseKernels& sparse_kernels() {
  return kSparseKernels;
}

}  // namespace neo::NEO_ISA
