#pragma once

#include "routines/routine.h"

// The one list of what fills the table of routines, in its order: X(name) stands for add_<name>_routines, which a file
// of routines/cpu/<family>/ defines.
#define NEO_ROUTINE_FILES(X) \
  X(conv)                    \
  X(gemm)                    \
  X(eltwise)                 \
  X(pool)                    \
  X(reduce)                  \
  X(view)                    \
  X(copy)                    \
  X(pad)                     \
  X(gather)                  \
  X(resize)                  \
  X(sample)                  \
  X(recurrent)               \
  X(lrn)                     \
  X(scatter_nd)              \
  X(gather_elements)         \
  X(top_k)                   \
  X(reference)

namespace neo {

#define NEO_DECLARE(name) void add_##name##_routines(RoutineTable& table);
NEO_ROUTINE_FILES(NEO_DECLARE)
#undef NEO_DECLARE

}  // namespace neo
