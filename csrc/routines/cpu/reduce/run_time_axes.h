#pragma once

// Reductions and scans whose axes an input tells when they run.

#include <functional>

#include "routines/cpu/made_step.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/reference/node_step.h"

namespace neo {

// Whether the axes of a reduction or scan are an input that only a call tells.
bool has_run_time_axes(const Node& node);

class RunTimeAxesStep final : public NodeStep {
 public:
  using Make = std::function<std::unique_ptr<KernelStep>(AxisRun run)>;

  // `make` gives the step along some neighbouring axes. Others are brought together first.
  RunTimeAxesStep(const Candidate& candidate, const Target& target, const OpRegistry& ops, Make make);

 private:
  void compute(ReferenceContext& ctx, Team& team) const override;
  void reduce(const Tensor& x, AxisRun run, const Tensor& y, Team& team) const;

  NodeFunction reference_;  // for lists that it refuses, and for none
  Target target_;
  Make make_;
  MadeStep turn_, made_;
};

// The axes that costs are taken at: where only a call tells them, the last one.
AxisRun likely_run(const Node& node);

// A reduction of one input; its axes are read where only a call tells them.
Candidate reduction_candidate(const Workload& workload);

// A step whose arguments are known but for its shape, along axes that are known or not.
template <class Args>
std::unique_ptr<Step> make_reduction(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                     const Args& args, std::optional<AxisRun> run,
                                     typename ReductionStep<Args>::Kernel kernel) {
  if (run) return std::make_unique<ReductionStep<Args>>(args, *run, kernel);
  return std::make_unique<RunTimeAxesStep>(candidate, target, ops, [=](AxisRun of_call) {
    return std::make_unique<ReductionStep<Args>>(args, of_call, kernel);
  });
}

}  // namespace neo
