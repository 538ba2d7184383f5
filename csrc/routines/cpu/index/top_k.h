#pragma once

// Kernels that keep the first few elements of neighbouring lines, a line in each lane. Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"

namespace neo {

// Lines whose elements lie `step` apart are neighbours. Equal elements keep their order; NaN is larger than all
// numbers.
struct TopKColumns {
  static constexpr int64_t kMaxKept = 16;

  Lane lane = Lane::F32;  // F32, F64, I8, U8, I16, I32 or I64
  bool largest = true;
  int64_t size = 0;     // of a line; less than 2^31
  int64_t kept = 0;     // at least 1, at most kMaxKept and the size
  int64_t step = 1;     // from one element of a line to the next, in the results too
  int64_t columns = 0;  // lines
  const void* src = nullptr;
  void* values = nullptr;      // or null
  int64_t* indices = nullptr;  // or null
};

}  // namespace neo
