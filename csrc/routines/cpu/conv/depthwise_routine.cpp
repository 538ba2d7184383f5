#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/depthwise.h"
#include "routines/cpu/conv/depthwise_cost.h"
#include "routines/cpu/tier.h"

namespace neo {
namespace {

struct DepthwiseCall {
  DepthwisePlan plan;
  ConvOperands args;
  TaskSplit split;
};

// Its operations take longer than those of a product: the loads bound it.
TaskSplit split_of(const DepthwisePlan& plan) {
  return TaskSplit::of(plan.tasks, 4 * plan.shape.flops());
}

class DepthwiseStep final : public KernelStep {
 public:
  DepthwiseStep(const ConvProblem& problem, const ConvArguments& arguments, const DepthwiseKernels& kernels,
                PackedStore& packed)
      : geometry_(problem.geometry), arguments_(arguments), kernels_(kernels) {
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    const DepthwisePlan plan = plan_depthwise(geometry_.shape(ones, ones), kernels_.lanes);
    weight_ = packed.floats(depthwise_weight_size(plan), {problem.weight},
                            [&](float* to) { pack_depthwise_weight(plan, problem.weight->constant->as<float>(), to); });
    bias_ = padded_bias(problem, kernels_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Arg& y = args[static_cast<size_t>(arguments_.y)];
    DepthwiseCall call;
    call.plan = plan_depthwise(geometry_.shape(x.dims, y.dims), kernels_.lanes);
    call.split = split_of(call.plan);
    call.args = arguments_.bind(args);
    call.args.weight = weight_.as<float>();
    if (bias_.defined()) call.args.bias = bias_.as<float>();
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const DepthwiseCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args, nullptr);
    run_tasks(team, call.split,
              [&](int64_t begin, int64_t end, int) { run_depthwise(call.plan, kernels_, a, begin, end); });
  }

 private:
  ConvGeometry geometry_;
  ConvArguments arguments_;
  const DepthwiseKernels& kernels_;
  Tensor weight_, bias_;
};

class DepthwiseRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/depthwise_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const int64_t lanes = target.lanes();
    const ConvShape shape = problem.geometry.shape(problem.x_hint(), problem.y_hint());
    const DepthwisePlan plan = plan_depthwise(shape, lanes);
    const TaskSplit split = split_of(plan);
    const int64_t weights = depthwise_weight_size(plan);
    const double flops = 2.0 * static_cast<double>(weights) * static_cast<double>(shape.n * shape.oh * shape.ow);
    Candidate c = conv_candidate(workload, problem, lanes, lanes);
    c.cost.time_us = tasks_us(flops, depthwise_efficiency(shape), split.serial ? 1 : split.tasks,
                              problem.traffic_bytes(lanes, lanes), target) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = weights * 4 + (problem.bias ? weights / shape.taps() * 4 : 0);
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry&,
                             PackedStore& packed) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<DepthwiseStep>(problem, ConvArguments::of(candidate, problem, target),
                                           NEO_PICK_TIER(target.isa, depthwise_kernels)(), packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (!problem.geometry.is_depthwise()) return "not one input and one output channel per group";
    if (problem.geometry.kernel[1] > kDepthwiseMaxRows) return "the kernel has too many rows";
    if (const char* why = reject_run_time_weights(problem)) return why;
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Routine> make_depthwise_routine() {
  return std::make_unique<DepthwiseRoutine>();
}

}  // namespace neo
