#include <algorithm>

#include "base/check.h"
#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/transposed/transposed_depthwise.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/transposed_taps.h"
#include "routines/space.h"

namespace neo {
namespace {

// Its operations take longer than those of a product: the loads bound it.
TaskSplit split_of(const TransposedDepthwisePlan& plan) {
  return TaskSplit::of(plan.tasks, 4 * transposed_depthwise_flops(plan));
}

struct TransposedDepthwiseCall {
  TransposedDepthwisePlan plan;
  ConvOperands args;
  TaskSplit split;
  RunTimeWeights packed;
};

class TransposedDepthwiseStep final : public ConvStep {
 public:
  TransposedDepthwiseStep(const ConvProblem& problem, const ConvArguments& arguments, int64_t bands,
                          const TransposedDepthwiseKernels& kernels, PackedStore& packed)
      : ConvStep(problem, arguments), bands_(bands), kernels_(kernels) {
    if (arguments_.weight >= 0) return;
    const TransposedDepthwisePlan plan = plan_transposed_depthwise(problem.unit_panel_shape(), kernels_.lanes, bands_);
    weight_ = packed.floats(transposed_depthwise_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_transposed_depthwise_weight(plan, problem.weight->constant->as<float>(), to);
    });
    bias_ = padded_channels(problem.bias, kernels_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    TransposedDepthwiseCall call;
    call.plan = plan_transposed_depthwise(panel_shape_at(args), kernels_.lanes, bands_);
    call.split = split_of(call.plan);
    call.args = bind(args);
    if (!weight_.defined()) {
      call.packed.weight = transposed_depthwise_weight_size(call.plan);
      if (arguments_.bias >= 0) call.packed.bias = call.plan.vectors * call.plan.lanes;
    }
    return Prepared::of(call, call.packed.bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TransposedDepthwiseCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    call.packed.pack(a, call.plan.shape.oc, scratch,
                     [&](const float* weight, float* to) { pack_transposed_depthwise_weight(call.plan, weight, to); });
    run_tasks(team, call.split,
              [&](int64_t begin, int64_t end, int) { run_transposed_depthwise(call.plan, kernels_, a, begin, end); });
  }

 private:
  int64_t bands_;
  const TransposedDepthwiseKernels& kernels_;
};

class TransposedDepthwiseRoutine final : public RoutineOf<TransposedDepthwiseRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/transposed_depthwise_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return {candidate(workload, target, ops, {})};
  }

  // bands: of output rows per task.
  Space space(const Workload& workload, const Target& target) const override {
    constexpr int64_t kMaxParts = 32;
    const TransposedDepthwisePlan chosen = plan_of(*read_conv(workload, nullptr), {}, target);
    const int64_t bands = std::max<int64_t>(1, chosen.depths * chosen.lines);
    return Space({{"bands", part_sizes(bands, kMaxParts, chosen.band_chunk)}});
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const TransposedDepthwisePlan plan = plan_of(problem, candidate.schedule, target);
    const Im2colConvShape& s = plan.shape;
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    const double bands = std::max(1.0, real(plan.depths * plan.lines)), part = real(plan.band_chunk) / bands;
    LoopNest l;
    l.flops = real(transposed_depthwise_flops(plan));
    l.vectors = l.rows = l.full_rows = 1;
    l.reduction = real(output_products(s)) / std::max(1.0, real(s.out_size()));
    l.inner = real(s.out[2]) / real(s.stride[2]);
    l.inputs = real(s.n * s.ic * s.in_size()) * 4;
    l.outputs = problem.traffic_bytes(plan.lanes, plan.lanes) - l.inputs;
    l.weights = real(transposed_depthwise_weight_size(plan)) * 4;
    l.task_weights = l.block_bytes = real(s.taps() * plan.lanes) * 4;
    l.task_outputs = real(s.out_size() * plan.lanes) * 4 * part;
    l.task_inputs = real(s.in_size() * plan.lanes) * 4 * part;
    l.pixel_bytes = l.sweep_bytes = l.reduction * real(plan.lanes) * 4;
    l.tasks = real(plan.tasks);
    l.input_reads = l.task_inputs * l.tasks;
    l.weight_reads = l.task_weights * l.tasks;
    return l;
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    // Share of the FMA peak: every product loads its input, and each output is stored alone.
    constexpr double kEfficiency = 0.35;
    const ConvProblem problem = *read_conv(workload, nullptr);
    const int64_t lanes = target.lanes();
    const TransposedDepthwisePlan plan = plan_of(problem, schedule, target);
    const TaskSplit split = split_of(plan);
    Candidate c = conv_candidate(workload, problem, lanes, lanes);
    c.schedule = schedule;
    c.cost.time_us = tasks_us(static_cast<double>(transposed_depthwise_flops(plan)), kEfficiency,
                              split.serial ? 1 : split.tasks, problem.traffic_bytes(lanes, lanes), target) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = (transposed_depthwise_weight_size(plan) + (problem.bias ? plan.vectors * plan.lanes : 0)) * 4;
    if (has_run_time_weights(problem)) read_run_time_weights(c, workload, problem);
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<TransposedDepthwiseStep>(problem, ConvArguments::of(candidate, problem, target),
                                                     value_of(candidate.schedule, "bands"),
                                                     NEO_PICK_TIER(target.isa, transposed_depthwise_kernels)(), packed);
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"ConvTranspose"}; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (const char* why = reject_transposed_depthwise(problem.unit_panel_shape())) return why;
    return std::nullopt;
  }

 private:
  static TransposedDepthwisePlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_transposed_depthwise(problem.hint_panel_shape(), target.lanes(), value_of(schedule, "bands"));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(transposed_depthwise, TransposedDepthwiseRoutine)

}  // namespace neo
