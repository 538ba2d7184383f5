#pragma once

#include <memory>

#include "ir/layout.h"
#include "routines/gpu/program.h"
#include "routines/patterns/eltwise_program.h"

namespace neo::gpu {

// An elementwise program over the physical axes of its output. Each input has an axis whole, or repeats one element
// along it; the axes that it has make a dense array in their order.
struct EltwiseProblem {
  EltwiseProgram program;              // its operands are those of the launch, in order
  bool whole = false;                  // over int64 instead of float32
  Layout layout;                       // of the output
  std::vector<std::vector<bool>> has;  // [input][physical axis of the output]
  bool pads = false;                   // the layout's one block may have padding lanes; they become zero
};

struct EltwiseSchedule {
  int lanes = 4;      // of one load; without `rows` they divide the innermost merged axis, with padding the block
  int threads = 64;   // of a group
  bool rows = false;  // groups lie along rows of the innermost axis; else threads are counted over all axes
};

// Operands: the inputs, then the output.
std::unique_ptr<Program> make_eltwise(const EltwiseProblem& problem, const EltwiseSchedule& schedule);

// A schedule for an output of these dims, and loads of `lanes` at most. It fits every size of the axes where
// `is_constant` says nothing of them.
EltwiseSchedule default_schedule(const EltwiseProblem& problem, const Dims& dims, bool is_constant, int lanes);

}  // namespace neo::gpu
