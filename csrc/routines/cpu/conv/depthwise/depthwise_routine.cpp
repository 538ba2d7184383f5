#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/depthwise/depthwise.h"
#include "routines/cpu/conv/depthwise/depthwise_cost.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

struct DepthwiseCall {
  DepthwisePlan plan;
  ConvOperands args;
  TaskSplit split;
  RunTimeWeights packed;
};

// Its operations take longer than those of a product: the loads bound it.
TaskSplit split_of(const DepthwisePlan& plan) {
  return TaskSplit::of(plan.tasks, 4 * plan.shape.flops());
}

class DepthwiseStep final : public ConvStep {
 public:
  DepthwiseStep(const ConvProblem& problem, const ConvArguments& arguments, int64_t lines,
                const DepthwiseKernels& kernels, PackedStore& packed)
      : ConvStep(problem, arguments), lines_(lines), kernels_(kernels) {
    const DepthwisePlan plan = plan_depthwise(problem.unit_shape(), kernels_.lanes);
    if (arguments_.weight >= 0) return;
    weight_ = packed.floats(depthwise_weight_size(plan), {problem.weight},
                            [&](float* to) { pack_depthwise_weight(plan, problem.weight->constant->as<float>(), to); });
    bias_ = padded_channels(problem.bias, kernels_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    DepthwiseCall call;
    call.plan = plan_depthwise(shape_at(args), kernels_.lanes, lines_);
    call.split = split_of(call.plan);
    call.args = bind(args);
    if (!weight_.defined()) {
      call.packed.weight = depthwise_weight_size(call.plan);
      if (arguments_.bias >= 0) call.packed.bias = call.packed.weight / call.plan.shape.taps();
    }
    return Prepared::of(call, call.packed.bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DepthwiseCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    call.packed.pack(a, call.plan.shape.ic, scratch,
                     [&](const float* weight, float* to) { pack_depthwise_weight(call.plan, weight, to); });
    run_tasks(team, call.split,
              [&](int64_t begin, int64_t end, int) { run_depthwise(call.plan, kernels_, a, begin, end); });
  }

 private:
  int64_t lines_;
  const DepthwiseKernels& kernels_;
};

class DepthwiseRoutine final : public RoutineOf<DepthwiseRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/depthwise_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return {candidate(workload, target, ops, {})};
  }

  // lines: output rows per task.
  Space space(const Workload& workload, const Target& target) const override {
    constexpr int64_t kMaxParts = 32;
    const DepthwisePlan chosen = plan_of(*read_conv(workload, nullptr), {}, target);
    return Space({{"lines", part_sizes(std::max<int64_t>(1, chosen.shape.oh), kMaxParts, chosen.rows)}});
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const DepthwisePlan plan = plan_of(problem, candidate.schedule, target);
    const ConvShape& s = plan.shape;
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    LoopNest l;
    l.flops = 2 * real(depthwise_weight_size(plan)) * real(s.n * s.oh * s.ow);
    l.vectors = l.rows = l.full_rows = 1;
    l.reduction = real(s.taps());
    l.inner = real(s.ow);
    l.inputs = real(s.n * s.ic * s.ih * s.iw) * 4;
    l.outputs = problem.traffic_bytes(plan.lanes, plan.lanes) - l.inputs;
    l.weights = real(depthwise_weight_size(plan)) * 4;
    l.task_weights = l.block_bytes = l.reduction * real(plan.lanes) * 4;
    l.task_outputs = real(plan.rows * s.ow * plan.lanes) * 4;
    l.task_inputs = real((plan.rows * s.stride_h + s.kh - s.stride_h) * s.iw * plan.lanes) * 4;
    l.pixel_bytes = l.sweep_bytes = real(s.kh * s.iw * plan.lanes) * 4;
    l.tasks = real(plan.tasks);
    l.input_reads = l.task_inputs * l.tasks;
    l.weight_reads = l.task_weights * l.tasks;
    return l;
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const int64_t lanes = target.lanes();
    const DepthwisePlan plan = plan_of(problem, schedule, target);
    const ConvShape& shape = plan.shape;
    const TaskSplit split = split_of(plan);
    const int64_t weights = depthwise_weight_size(plan);
    const double flops = 2.0 * static_cast<double>(weights) * static_cast<double>(shape.n * shape.oh * shape.ow);
    Candidate c = conv_candidate(workload, problem, lanes, lanes);
    c.schedule = schedule;
    c.cost.time_us = tasks_us(flops, depthwise_efficiency(shape), split.serial ? 1 : split.tasks,
                              problem.traffic_bytes(lanes, lanes), target) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = weights * 4 + (problem.bias ? weights / shape.taps() * 4 : 0);
    if (has_run_time_weights(problem)) read_run_time_weights(c, workload, problem);
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<DepthwiseStep>(problem, ConvArguments::of(candidate, problem, target),
                                           value_of(candidate.schedule, "lines"),
                                           NEO_PICK_TIER(target.isa, depthwise_kernels)(), packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (!problem.geometry.is_depthwise()) return "not one input and one output channel per group";
    if (problem.geometry.kernel[1] > kDepthwiseMaxRows) return "the kernel has too many rows";
    return std::nullopt;
  }

 private:
  static DepthwisePlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_depthwise(problem.hint_shape(), target.lanes(), value_of(schedule, "lines"));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(depthwise, DepthwiseRoutine)

}  // namespace neo
