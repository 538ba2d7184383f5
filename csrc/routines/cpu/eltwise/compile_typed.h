#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "routines/cpu/eltwise/typed_program.h"
#include "routines/routine.h"

namespace neo {

// The operators that some dtype has a typed program of.
std::vector<std::string_view> typed_ops();

// The program of one node, its inputs in the order of the workload's. None where its dtypes have none.
struct CompiledTyped {
  TypedProgram program;
  std::vector<int> inputs;  // workload input of each program input
  int widest = 1;           // bytes of the widest lane
  double cycles = 0;        // for as many elements as a vector of float32 has
};
std::optional<CompiledTyped> compile_typed(const Workload& workload);

}  // namespace neo
