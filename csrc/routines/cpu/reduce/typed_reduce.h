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
  if (lane == Lane::F64) return true;
  if (lane > Lane::U64) return false;
  if (kind == ReduceKind::Mean) return lane != Lane::U64;
  const bool has_root = kind == ReduceKind::L2 || kind == ReduceKind::LogSum || kind == ReduceKind::LogSumExp;
  return !has_root || lane_bytes(lane) >= 4;
}

}  // namespace neo
