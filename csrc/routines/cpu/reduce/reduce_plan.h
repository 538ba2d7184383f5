#pragma once

// Declarations that the steps of reductions share.

#include <optional>
#include <string_view>

#include "exec/step.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/reduce/reduce.h"
#include "routines/patterns/reduced_axes.h"

namespace neo {

// An operator's use of the elements; none where it is no reduction.
std::optional<ReduceKind> reduce_kind(const Node& node);

ReduceShape shape_along(const Dims& dims, AxisRun run);

// Elements that one thread reduces faster than two.
constexpr int64_t kSerialReduced = 8192;

// The load of a kernel that takes `cycles` for each vector of float32; rows are reduced across in the end.
StepLoad reduction_load(StepFamily family, const ReduceShape& shape, double cycles, const Target& target);

template <class Kernel, class Args>
void run_reduction(Kernel kernel, const Args& args, Team& team) {
  const ReduceShape& s = args.shape;
  if (s.outer * s.along * s.inner <= kSerialReduced) return kernel(args, 0, s.tasks);
  team.parallel_for(s.tasks, [&](int64_t begin, int64_t end, int) { kernel(args, begin, end); });
}

// A step of one input and one output, whose arguments are known but for its shape and their addresses.
template <class Args>
class ReductionStep final : public KernelStep {
 public:
  using Kernel = void (*)(const Args& args, int64_t begin, int64_t end);

  ReductionStep(const Args& args, AxisRun run, Kernel kernel) : args_(args), run_(run), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override { return Prepared::of(shape_along(args[0].dims, run_)); }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    Args call = args_;
    call.shape = *reinterpret_cast<const ReduceShape*>(prepared);
    call.src = reinterpret_cast<decltype(call.src)>(args[0]);
    call.dst = reinterpret_cast<decltype(call.dst)>(args[1]);
    run_reduction(kernel_, call, team);
  }

 private:
  Args args_;
  AxisRun run_;
  Kernel kernel_;
};

}  // namespace neo
