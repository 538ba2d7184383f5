#pragma once

#include "routines/cpu/gemm/gemm.h"
#include "routines/cpu/tasks.h"

namespace neo {

// How the tasks of a product are shared. Reading B counts among its operations too: a few rows are bound by memory.
inline TaskSplit gemm_split(const GemmPlan& plan) {
  const GemmShape& s = plan.shape;
  return TaskSplit::of(plan.tasks, 2 * s.n * s.k * (s.m + 8) * s.batches(), plan.workspace_size * 4);
}

}  // namespace neo
