#pragma once

// Kernels of reductions over tensors of integers, truth values and float64, and of ArgMax and ArgMin over those and
// float32. Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/cpu/reduce/reduce.h"

namespace neo {

struct TypedReduceArgs {
  ReduceShape shape;
  ReduceKind kind = ReduceKind::Sum;
  Lane lane = Lane::I64;
  bool select_last = false;  // ArgMax, ArgMin: the last of equals
  bool is_truth = false;     // elements are 0 or 1, and so is the least of none
  const void* src = nullptr;
  void* dst = nullptr;  // of the same dtype, or int64 for ArgMax and ArgMin
};

// Whether there is a kernel.
constexpr bool has_typed_reduce(ReduceKind kind, Lane lane) {
  if (kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin) return lane != Lane::F16 && lane != Lane::BF16;
  if (lane == Lane::F64) return kind != ReduceKind::LogSumExp;
  if (lane > Lane::U64) return false;
  switch (kind) {
    case ReduceKind::Mean:  // whose sum is held in 64 bits
      return lane < Lane::I64;
    case ReduceKind::L2:
    case ReduceKind::LogSum:
    case ReduceKind::LogSumExp:
      return false;
    default:
      return true;
  }
}

}  // namespace neo
