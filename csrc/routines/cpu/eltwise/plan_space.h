#pragma once

#include <span>

#include "exec/step.h"
#include "routines/patterns/eltwise_program.h"

namespace neo {

// Rows shorter than this are worth copying an operand run by run.
constexpr int64_t kShortRow = kEltwiseTile;

// The iteration space of the operands, the output last. `lanes`: of the vectors that channel blocks fill; 0 where the
// kernel knows no blocks.
EltwiseSpace plan_space(std::span<const Arg* const> operands, int lanes);

// Cycles of copying the operands that repeat along short rows into place, for all of the space. `takes_runs`: the
// kernel takes an element for each row as it is.
double nested_cycles(const EltwiseSpace& space, size_t operands, bool takes_runs = false);

}  // namespace neo
