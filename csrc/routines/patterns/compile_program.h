#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routines/patterns/eltwise_program.h"
#include "routines/routine.h"

namespace neo {

// Whether a node can be one or a few steps of a program: its operator, attributes and dtypes.
bool is_eltwise(const Node& node);
// The same over integers of the types up to EltwiseType::I64 and truth values, exact in 64 bits.
bool is_integer_eltwise(const Node& node);
// The operators that may be either.
std::vector<std::string_view> eltwise_ops();

// The program of a group; workload inputs that became immediates are not among its own. None where it does not fit the
// limits of a program, with the reason in `why`.
struct CompiledEltwise {
  EltwiseProgram program;
  std::vector<int> inputs;  // workload input of each program input
};
std::optional<CompiledEltwise> compile_eltwise(const Workload& workload, std::string* why);

// Finds out which operators a module's programs have: those that this thread compiles while one lives, a bit each.
class EltwiseUse {
 public:
  EltwiseUse();
  ~EltwiseUse();
  EltwiseUse(const EltwiseUse&) = delete;
  EltwiseUse& operator=(const EltwiseUse&) = delete;

  uint64_t ops() const { return ops_; }
  void add(const EltwiseProgram& program);

 private:
  EltwiseUse* before_;
  uint64_t ops_ = 0;
};

// Rough cost of one vector of elements, in units of a vector's fused multiply-add: twice that many operations an
// element.
double eltwise_cycles(const EltwiseProgram& program);
double step_cycles(EltwiseOp op);

}  // namespace neo
