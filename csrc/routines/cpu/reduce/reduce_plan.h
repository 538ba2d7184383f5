#pragma once

// What the steps of reductions share.

#include <optional>
#include <string_view>

#include "exec/step.h"
#include "routines/cpu/reduce/reduce.h"
#include "routines/patterns/reduced_axes.h"

namespace neo {

// What an operator does with the elements; none where it is no reduction.
std::optional<ReduceKind> reduce_kind(std::string_view op);

ReduceShape shape_along(const Dims& dims, AxisRun run);

template <class Kernel, class Args>
void run_reduction(Kernel kernel, const Args& args, Team& team) {
  constexpr int64_t kSerial = 8192;
  const ReduceShape& s = args.shape;
  if (s.outer * s.along * s.inner <= kSerial) return kernel(args, 0, s.tasks);
  team.parallel_for(s.tasks, [&](int64_t begin, int64_t end, int) { kernel(args, begin, end); });
}

}  // namespace neo
