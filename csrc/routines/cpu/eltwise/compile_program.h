#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routines/cpu/eltwise/program.h"
#include "routines/routine.h"

namespace neo {

// Whether a node can be one or a few steps of a program: its operator, attributes and dtypes.
bool is_eltwise(const Node& node);
// The same over integers and truth values, exact in 64 bits.
bool is_integer_eltwise(const Node& node);
std::vector<std::string_view> integer_eltwise_ops();

// The program of a group; inputs are numbered as in the workload, those that became immediates are not read
// (`reads` says which are). None where it does not fit the limits of a program, with the reason in `why`.
struct CompiledEltwise {
  EltwiseProgram program;
  std::vector<int> inputs;  // workload input of each program input
};
std::optional<CompiledEltwise> compile_eltwise(const Workload& workload, std::string* why);

// Rough cost of one element, in vector instructions.
double eltwise_work(const EltwiseProgram& program);

}  // namespace neo
