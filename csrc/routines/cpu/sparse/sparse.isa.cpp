#include "routines/cpu/sparse/sparse.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Few sums keep the units busy only where neighbouring weights have sums of their own.
constexpr int kBusySums = 8;

// Results [at, at + kVectors vectors) of every output.
template <int kOutputs, int kVectors>
NEO_INLINE void sum_vectors(const SparseRun& run, int64_t at) {
  constexpr int kApart = kBusySums / (kOutputs * kVectors), kSums = kApart > 4 ? 4 : (kApart < 1 ? 1 : kApart);
  F32 sums[kSums][kOutputs][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kSums; ++i) {
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      const bool has_bias = i == 0 && run.bias && o < run.outputs;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[i][o][v] = has_bias ? broadcast(run.bias[o]) : zero();
    }
  }
  const auto add_weights = [&](const SparseWeights<kOutputs>& w, F32(&to)[kOutputs][kVectors]) NEO_LAMBDA {
    const float* x = run.src + run.sources[w.source] + at;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const F32 vector = load(x + v * kLanes);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) accumulate(to[o][v], vector, broadcast(w.value[o]));
    }
  };
  const auto* w = (const SparseWeights<kOutputs>*)run.weights;
  const auto* const end = w + run.weight_count;
  if constexpr (kSums > 1) {
    for (; end - w >= kSums; w += kSums) {
#pragma GCC unroll 4
      for (int i = 0; i < kSums; ++i) add_weights(w[i], sums[i]);
    }
  }
  for (; w != end; ++w) add_weights(*w, sums[0]);
  const F32 lo = broadcast(run.lo), hi = broadcast(run.hi);
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) {
    if (o == run.outputs) return;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const int64_t first = at + v * kLanes;
      if (first >= run.count) break;
      const int64_t count = run.count - first < kLanes ? run.count - first : kLanes;
      F32 sum = sums[0][o][v];
#pragma GCC unroll 4
      for (int i = 1; i < kSums; ++i) sum = add(sum, sums[i][o][v]);
      if (run.residual) sum = add(sum, load_n(run.residual + o * run.residual_step + first, count));
      store_n(run.dst + o * run.dst_step + first, clamp_nan(sum, lo, hi), count);
    }
  }
}

// One result of every output, whose sources lie anywhere.
template <int kOutputs>
NEO_INLINE void sum_one(const SparseRun& run) {
  constexpr int kSums = kBusySums / kOutputs;
  float sums[kSums][kOutputs] = {};
  const auto add_weights = [&](const SparseWeights<kOutputs>& w, float(&to)[kOutputs]) NEO_LAMBDA {
    const float x = run.src[run.sources[w.source]];
    for (int o = 0; o < kOutputs; ++o) to[o] += w.value[o] * x;
  };
  const auto* w = (const SparseWeights<kOutputs>*)run.weights;
  const auto* const end = w + run.weight_count;
  for (; end - w >= kSums; w += kSums) {
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) add_weights(w[i], sums[i]);
  }
  for (; w != end; ++w) add_weights(*w, sums[0]);
  for (int o = 0; o < kOutputs && o < run.outputs; ++o) {
    float sum = run.bias ? run.bias[o] : 0.0f;
    for (const auto& part : sums) sum += part[o];
    if (run.residual) sum += run.residual[o * run.residual_step];
    store_n(run.dst + o * run.dst_step, clamp_nan(broadcast(sum), broadcast(run.lo), broadcast(run.hi)), 1);
  }
}

// As many vectors at a time as leave a register for each output's weight.
constexpr int kBlockVectors = kVectorRegisters == 32 ? 4 : 2;

void run_sparse(const SparseRun& run) {
  if (run.is_block) {
    if (run.count == 1) return sum_one<kSparseBlock>(run);
    if (run.count <= kLanes) return sum_vectors<kSparseBlock, 1>(run, 0);
    int64_t at = 0;
    if constexpr (kBlockVectors > 2) {
      for (; run.count - at > 2 * kLanes; at += kBlockVectors * kLanes)
        sum_vectors<kSparseBlock, kBlockVectors>(run, at);
    }
    for (; at < run.count; at += 2 * kLanes) sum_vectors<kSparseBlock, 2>(run, at);
    return;
  }
  if (run.count == 1) return sum_one<1>(run);
  if (run.count <= kLanes) return sum_vectors<1, 1>(run, 0);
  static_assert(kSparseVectors == 8, "a case for every even number of vectors");
  switch ((run.count + 2 * kLanes - 1) / (2 * kLanes)) {
    case 1:
      return sum_vectors<1, 2>(run, 0);
    case 2:
      return sum_vectors<1, 4>(run, 0);
    case 3:
      return sum_vectors<1, 6>(run, 0);
    default:
      return sum_vectors<1, 8>(run, 0);
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
