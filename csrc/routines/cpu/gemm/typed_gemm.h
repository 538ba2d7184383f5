#pragma once

// Products of matrices of float64 and integers. Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/patterns/gemm_shape.h"

namespace neo {

constexpr int64_t kTypedGemmRows = 64;  // of a task

struct TypedGemmArgs : GemmStrides {
  GemmShape shape;
  Lane lane = Lane::F64;  // F64, or U32 and U64 for integers of any sign, which wrap
  const void* a = nullptr;
  const void* b = nullptr;
  const void* residual = nullptr;  // or null; through its strides
  double alpha = 1, beta = 1;      // of F64
  void* c = nullptr;
};

}  // namespace neo
