#pragma once

// Products of matrices of float64 and integers, and of float32 where B has few columns. Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/patterns/gemm_shape.h"

namespace neo {

constexpr int64_t kTypedGemmRows = 64;  // of a task
constexpr int64_t kDotColumns = 3;      // so few columns are sums of products of rows, each by itself

struct TypedGemmArgs : GemmStrides {
  GemmShape shape;
  Lane lane = Lane::F64;  // F32, F64, or U32 and U64 for integers of any sign, which wrap
  const void* a = nullptr;
  const void* b = nullptr;
  const void* residual = nullptr;  // or null; through its strides
  double alpha = 1, beta = 1;      // of floats
  void* c = nullptr;
};

}  // namespace neo
