#include <algorithm>
#include <cmath>

#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct_rows.h"
#include "routines/cpu/gemm/tile_cost.h"
#include "routines/cpu/tier.h"

namespace neo {
namespace {

TaskSplit split_of(const DirectRowsPlan& plan) {
  return TaskSplit::of(plan.tasks, plan.shape.flops(), true);
}

double estimate_us(const ConvProblem& problem, const DirectRowsPlan& plan, const Target& target) {
  // In cycles of one vector FMA.
  constexpr double kUnalignedLoad = 1.9, kBroadcast = 0.5, kTap = 3, kTile = 30, kStore = 2;
  constexpr double kCopy = 10, kGather = 30;  // of a vector into the row buffer
  constexpr double kPanelBytes = 262144;      // a panel of pixels this large makes its sums half as slow again
  const ConvShape& s = plan.shape;
  const double vectors = static_cast<double>(ceil_div(std::min(plan.columns, s.ow), plan.lanes));
  const double panels = std::ceil(vectors / static_cast<double>(plan.schedule.vectors));
  const double width = vectors / panels;
  const double rows = static_cast<double>(s.group_oc()) / static_cast<double>(plan.channel_tiles);
  const auto taps = static_cast<double>(plan.taps), inner = static_cast<double>(plan.inner);
  const double panel_bytes = taps * inner * width * static_cast<double>(plan.lanes) * 4;
  const double sum = std::max({rows * width, kUnalignedLoad * width + kBroadcast * rows, 4.0}) * 1.06 *
                     (1 + 0.5 * std::min(1.0, panel_bytes / kPanelBytes));
  const double tile = taps * (inner * sum + kTap) + kTile + kStore * rows * width;
  const double line = panels * static_cast<double>(plan.channel_tiles) * tile;
  const double fill = static_cast<double>(s.group_ic() * plan.buffer.rows * plan.buffer.row) /
                      static_cast<double>(plan.lanes * plan.lines) *
                      (s.stride_w == 1 || s.stride_w == 2 || s.stride_w == 4 ? kCopy : kGather);
  const double cycles = (line + fill) * static_cast<double>(s.n * s.groups * s.oh * plan.column_chunks);
  const double ideal = static_cast<double>(s.flops()) / static_cast<double>(2 * plan.lanes);
  const TaskSplit split = split_of(plan);
  return tasks_us(static_cast<double>(s.flops()), ideal / cycles, split.serial ? 1 : split.tasks,
                  problem.traffic_bytes(1, 1), target);
}

struct DirectRowsCall {
  DirectRowsPlan plan;
  ConvOperands args;
  TaskSplit split;
};

class DirectRowsStep final : public KernelStep {
 public:
  DirectRowsStep(const ConvProblem& problem, const ConvArguments& arguments, const DirectRowsSchedule& schedule,
                 const TileKernels& kernels, const RowKernels& row_kernels, PackedStore& packed)
      : geometry_(problem.geometry),
        arguments_(arguments),
        schedule_(schedule),
        kernels_(kernels),
        row_kernels_(row_kernels) {
    // Packing does not depend on batch and space.
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    const DirectRowsPlan plan = plan_direct_rows(geometry_.shape(ones, ones), schedule_, kernels_);
    const Tensor& weight = *problem.weight->constant;
    weight_ = packed.floats(weight.size(), {problem.weight},
                            [&](float* to) { pack_direct_rows_weight(plan, weight.as<float>(), to); });
    if (problem.bias) bias_ = packed.constant(*problem.bias);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Arg& y = args[static_cast<size_t>(arguments_.y)];
    DirectRowsCall call;
    call.plan = plan_direct_rows(geometry_.shape(x.dims, y.dims), schedule_, kernels_);
    call.split = split_of(call.plan);
    call.args = arguments_.bind(args);
    call.args.weight = weight_.as<float>();
    if (bias_.defined()) call.args.bias = bias_.as<float>();
    return Prepared::of(call, call.split.workspaces * call.plan.workspace_size * 4);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DirectRowsCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args, scratch);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int workspace) {
      run_direct_rows(call.plan, kernels_, row_kernels_, a, begin, end, workspace);
    });
  }

 private:
  ConvGeometry geometry_;
  ConvArguments arguments_;
  DirectRowsSchedule schedule_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
  Tensor weight_, bias_;
};

// NCHW to NCHW with few output channels per group.
class DirectRowsRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/direct_rows"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const TileKernels& kernels = NEO_PICK_TIER(target.isa, tile_kernels)();
    const ConvShape shape = problem.geometry.shape(problem.x_hint(), problem.y_hint());
    std::optional<Candidate> best;
    for (int64_t vectors : {4, 3, 2, 1}) {
      const DirectRowsPlan plan = plan_direct_rows(shape, {vectors}, kernels);
      const double time_us = estimate_us(problem, plan, target);
      if (best && best->cost.time_us <= time_us) continue;
      Candidate c = conv_candidate(workload, problem, 1, 1);
      c.schedule = {{"pixels", vectors * target.lanes()}};
      c.cost.time_us = time_us + activation_us(problem.epilogue, *problem.y, target);
      c.cost.packed_bytes = problem.weight->constant->size() * 4;
      c.cost.workspace_bytes = split_of(plan).workspaces * plan.workspace_size * 4;
      best = std::move(c);
    }
    return {std::move(*best)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry&,
                             PackedStore& packed) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const DirectRowsSchedule schedule = {candidate.schedule.at("pixels") / target.lanes()};
    return std::make_unique<DirectRowsStep>(problem, ConvArguments::of(candidate, problem, target), schedule,
                                            NEO_PICK_TIER(target.isa, tile_kernels)(),
                                            NEO_PICK_TIER(target.isa, row_kernels)(), packed);
  }

 protected:
  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (problem.epilogue.residual == problem.x) return "the input is the residual too";
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    if (const char* why = reject_direct_rows(problem.geometry.shape(ones, ones))) return why;
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Routine> make_direct_rows_routine() {
  return std::make_unique<DirectRowsRoutine>();
}

}  // namespace neo
