#pragma once

// Kernels of sums and products of all elements of an axis up to each of them. Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/cpu/reduce/reduce.h"

namespace neo {

struct ScanArgs {
  ReduceShape shape;
  Lane lane = Lane::F32;  // F32, F64, or an integer of at least 32 bits
  bool product = false;
  bool exclusive = false;  // a result is without its own element
  bool reverse = false;    // from the last element on
  const void* src = nullptr;
  void* dst = nullptr;
};

}  // namespace neo
