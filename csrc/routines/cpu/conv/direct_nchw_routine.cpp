#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct_nchw.h"
#include "routines/cpu/gemm/tile_cost.h"
#include "routines/cpu/tier.h"

namespace neo {
namespace {

constexpr int64_t kMostInputChannels = 16;

const TileKernels& tiles_of(const Target& target) {
  return NEO_PICK_TIER(target.isa, tile_kernels)();
}

FirstLayerSchedule schedule_with(int64_t oc_vectors, int64_t reg_n, const Target& target) {
  FirstLayerSchedule s;
  s.oc_bn = target.lanes();
  s.oc_vectors = oc_vectors;
  s.reg_n = reg_n;
  return s;
}

struct FirstLayerCall {
  FirstLayerPlan plan;
  ConvOperands args;
  TaskSplit split;
};

class FirstLayerStep final : public KernelStep {
 public:
  FirstLayerStep(const ConvProblem& problem, const ConvArguments& arguments, const FirstLayerSchedule& schedule,
                 const TileKernels& kernels, const RowKernels& row_kernels, PackedStore& packed)
      : geometry_(problem.geometry),
        arguments_(arguments),
        schedule_(schedule),
        kernels_(kernels),
        row_kernels_(row_kernels) {
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    const FirstLayerPlan plan = plan_first_layer(geometry_.shape(ones, ones), schedule_, kernels_);
    weight_ = packed.floats(first_layer_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_first_layer_weight(plan, problem.weight->constant->as<float>(), to);
    });
    bias_ = padded_bias(problem, kernels_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Arg& y = args[static_cast<size_t>(arguments_.y)];
    FirstLayerCall call;
    call.plan = plan_first_layer(geometry_.shape(x.dims, y.dims), schedule_, kernels_);
    call.split = TaskSplit::of(call.plan.tasks, call.plan.shape.flops(), true);
    call.args = arguments_.bind(args);
    call.args.weight = weight_.as<float>();
    if (bias_.defined()) call.args.bias = bias_.as<float>();
    return Prepared::of(call, call.split.workspaces * call.plan.workspace_size * 4);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const FirstLayerCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args, scratch);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int workspace) {
      run_first_layer(call.plan, kernels_, row_kernels_, a, begin, end, workspace);
    });
  }

 private:
  ConvGeometry geometry_;
  ConvArguments arguments_;
  FirstLayerSchedule schedule_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
  Tensor weight_, bias_;
};

// NCHW to NCHW[x]c: the first layer of a network.
class FirstLayerRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/direct_nchw"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    constexpr double kEfficiency = 0.9;
    const ConvProblem problem = *read_conv(workload, nullptr);
    const TileKernels& kernels = tiles_of(target);
    const ConvShape shape = problem.geometry.shape(problem.x_hint(), problem.y_hint());
    std::optional<Candidate> best;
    for (int64_t oc_vectors : {4, 3, 2, 1}) {
      const FirstLayerSchedule schedule = schedule_with(oc_vectors, kernels.max_rows[oc_vectors], target);
      const FirstLayerPlan plan = plan_first_layer(shape, schedule, kernels);
      if (oc_vectors > plan.vectors) continue;
      const int64_t weights = first_layer_weight_size(plan);
      const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
      const double rows = static_cast<double>(shape.ow) / static_cast<double>(ceil_div(shape.ow, schedule.reg_n));
      const double panel_bytes = static_cast<double>(weights) / static_cast<double>(plan.panels) * 4;
      const double flops = 2.0 * static_cast<double>(weights) * static_cast<double>(shape.n * shape.oh * shape.ow);
      const TaskSplit split = TaskSplit::of(plan.tasks, shape.flops(), true);
      const double time_us = tasks_us(flops, kEfficiency * tile_efficiency(rows, vectors, panel_bytes, target),
                                      split.serial ? 1 : split.tasks, problem.traffic_bytes(1, target.lanes()), target,
                                      static_cast<double>(weights) * 4);
      if (best && best->cost.time_us <= time_us) continue;
      Candidate c = conv_candidate(workload, problem, 1, target.lanes());
      c.schedule = {{"oc_bn", oc_vectors * target.lanes()}, {"reg_n", schedule.reg_n}};
      c.cost.time_us = time_us + activation_us(problem.epilogue, *problem.y, target);
      c.cost.packed_bytes = (weights + (problem.bias ? plan.vectors * plan.lanes : 0)) * 4;
      c.cost.workspace_bytes = split.workspaces * plan.workspace_size * 4;
      best = std::move(c);
    }
    return {std::move(*best)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry&,
                             PackedStore& packed) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const FirstLayerSchedule schedule =
        schedule_with(candidate.schedule.at("oc_bn") / target.lanes(), candidate.schedule.at("reg_n"), target);
    return std::make_unique<FirstLayerStep>(problem, ConvArguments::of(candidate, problem, target), schedule,
                                            tiles_of(target), NEO_PICK_TIER(target.isa, row_kernels)(), packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (problem.geometry.ic > kMostInputChannels) return "more than 16 input channels";
    if (problem.epilogue.residual == problem.x) return "the input is the residual too";
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    const ConvShape shape = problem.geometry.shape(ones, ones);
    if (const char* why = reject_first_layer(shape, schedule_with(1, 0, target), target.lanes())) return why;
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Routine> make_direct_nchw_routine() {
  return std::make_unique<FirstLayerRoutine>();
}

}  // namespace neo
