#pragma once

// Kernels of reductions, softmax and normalisations over a tensor seen as [outer, along, inner]. Safe in kernel files.

#include <stdint.h>

namespace neo {

enum class ReduceKind : uint8_t { Sum, Mean, Max, Min, L1, L2, SumSquare, LogSum, LogSumExp, Prod, ArgMax, ArgMin };

// The tensor as [outer, along, inner]; `inner` is 1 where the axis is the last.
struct ReduceShape {
  int64_t outer = 1;
  int64_t along = 1;
  int64_t inner = 1;
  int64_t tasks = 1;          // pieces of the work: rows, or column tiles of each outer index
  int64_t rows_per_task = 1;  // inner == 1
};

constexpr int64_t kReduceColumns = 64;  // inner elements of a task where inner > 1

struct ReduceArgs {
  ReduceShape shape;
  ReduceKind kind = ReduceKind::Sum;
  const float* src = nullptr;
  float* dst = nullptr;
};

template <class T>
struct SoftmaxArgsOf {
  ReduceShape shape;
  bool logarithm = false;
  const T* src = nullptr;
  T* dst = nullptr;
};
using SoftmaxArgs = SoftmaxArgsOf<float>;
using DoubleSoftmaxArgs = SoftmaxArgsOf<double>;

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis; without `centred`: x / sqrt(mean square
// + epsilon).
template <class T>
struct NormArgsOf {
  ReduceShape shape;  // inner == 1
  bool centred = true;
  T epsilon = (T)1e-5;
  const T* src = nullptr;
  const T* scale = nullptr;  // null: 1
  const T* bias = nullptr;   // null: 0
  // scale and bias hold one number per element of the row, or (channels > 0) one per channel: a row is `span` elements
  // of each of `along / span` channels, the first being row * (along / span) % channels.
  int64_t channels = 0;
  int64_t span = 1;
  T* dst = nullptr;
  T* mean = nullptr;  // per row, or null
  T* inverse_deviation = nullptr;
};
using NormArgs = NormArgsOf<float>;
using DoubleNormArgs = NormArgsOf<double>;

}  // namespace neo
