#pragma once

#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/patterns/conv_problem.h"
#include "routines/space.h"

namespace neo {

// The schedules of direct_nchwc:
//   ic_bn, oc_bn   input channels per block of the layout; output channels per register block
//   reg_n          pixels per register block
//   line           1: tiles end with their output row, 2: they run over it
//   chunk, panels  output rows (or register blocks, where they run over rows) and panels of output channels per task
//   ic             input channels per pass over a task's outputs
//   order          1: panels inside the rows of a task
//   ahead          1: the next panel's weights are not prefetched
Space direct_space(const ConvShape& shape, const TileKernels& kernels);
DirectSchedule direct_schedule(const Schedule& schedule, int64_t lanes);
LoopNest direct_loops(const ConvProblem& problem, const DirectPlan& plan, const TileKernels& kernels);

}  // namespace neo
