#pragma once

// Kernels of pools over the plain layout in the elements' own dtype, with the places of maxima where they are wanted.
// Safe in kernel files.

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/cpu/pool/pool.h"

namespace neo {

// A task is a row of the output.
struct TypedPoolArgs {
  PoolShape shape;
  Lane lane = Lane::F64;      // F32, F64, I8 or U8; means are of F64
  bool column_major = false;  // places count the first spatial axis fastest
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t* places = nullptr;  // in the whole tensor; null: not wanted
};

}  // namespace neo
