#pragma once

// Kernels that resize one axis after the other, in float32 or, for all other dtypes, in float64. Safe in kernel files.

#include <stdint.h>

#include "routines/cpu/eltwise/typed_program.h"

namespace neo {

// A tensor seen as [outer, input, inner] that becomes [outer, output, inner]: output o is the sum of `taps` inputs, tap
// t of which is at [t * output + o] of the tables. A task is a row of the result: inner elements, or, where `inner` is
// 1, all outputs of an index of `outer`.
struct AxisMix {
  int64_t outer = 1, input = 1, output = 1, inner = 1;
  int64_t taps = 1;
  const int32_t* position = nullptr;
  const double* weight = nullptr;
  const void* src = nullptr;
  void* dst = nullptr;
  bool wide = true;  // float64

  int64_t tasks() const { return inner == 1 ? outer : outer * output; }
};

// Elements as numbers to compute with, or numbers as elements: integers rounded to nearest, as far as they reach.
struct ConvertArgs {
  Lane lane = Lane::U8;  // I8, U8, I32 or I64
  bool to_lane = false;
  const void* src = nullptr;
  void* dst = nullptr;
};

}  // namespace neo
