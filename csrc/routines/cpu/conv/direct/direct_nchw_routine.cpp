#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct/direct_nchw.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

DirectNchwSchedule direct_nchw_schedule(const Schedule& schedule, int64_t lanes) {
  DirectNchwSchedule s;
  s.oc_bn = lanes;
  s.oc_vectors = schedule.at("oc_bn") / lanes;
  s.reg_n = schedule.at("reg_n");
  s.lines = value_of(schedule, "lines");
  return s;
}

// The schedules:
//   oc_bn, reg_n  output channels and pixels per register block
//   lines         output rows per task, as far as their inputs stay in the second-level cache
Space direct_nchw_space(const ConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 48;
  const int64_t lanes = kernels.lanes, vectors = ceil_div(shape.oc, lanes);
  std::vector<int64_t> widths, rows;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, kTileVectors); ++v) widths.push_back(v * lanes);
  for (int64_t r = kTileRows; r >= 1; --r) rows.push_back(r);
  const auto plan = [&](std::span<const int64_t> v, int64_t lines) {
    return plan_direct_nchw(shape, {lanes, v[1], v[0] / lanes, lines}, kernels);
  };
  const auto allows = [&](std::span<const int64_t> v) {
    const int64_t most = kernels.max_rows[v[0] / lanes];
    if (v[1] > most || v[1] * 3 < most) return false;
    // A row is cut into equal blocks.
    const int64_t tiles = ceil_div(shape.ow, v[1]);
    if (v[1] != most && (tiles == ceil_div(shape.ow, most) || v[1] != ceil_div(shape.ow, tiles))) return false;
    return v[2] == 0 || (plan(v, v[2]).rows == v[2] && plan(v, 0).rows != v[2]);
  };
  return Space(
      {{"oc_bn", widths}, {"reg_n", rows}, {"lines", part_sizes(std::max<int64_t>(1, shape.oh), kMaxParts, 0)}},
      allows);
}

LoopNest direct_nchw_loops(const ConvProblem& problem, const DirectNchwPlan& plan) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const ConvShape& s = plan.shape;
  LoopNest l;
  l.weights = l.task_weights = real(direct_nchw_weight_size(plan)) * 4;
  l.flops = l.weights / 2 * real(s.n * s.oh * s.ow);
  l.rows = real(s.ow) / real(ceil_div(s.ow, plan.schedule.reg_n));
  l.full_rows = real(plan.schedule.reg_n);
  l.vectors = real(plan.vectors) / real(plan.panels);
  l.reduction = real(s.ic * s.taps());
  l.inner = 1;
  l.block_bytes = l.reduction * l.vectors * real(plan.lanes) * 4;
  l.pixel_bytes = real(s.ic * s.kh) * l.rows * real(s.stride_w) * 4;
  l.task_inputs = l.workspace = real(plan.workspace_size) * 4;
  l.task_outputs = real(plan.rows * s.ow * plan.vectors * plan.lanes) * 4;
  l.inputs = real(s.n * s.ic * s.ih * s.iw) * 4;
  l.outputs = problem.traffic_bytes(1, plan.lanes) - l.inputs;
  l.tasks = real(plan.tasks);
  l.moved = l.task_inputs / 4 * l.tasks;
  l.input_reads = l.task_inputs * l.tasks * real(plan.panels);
  l.weight_reads = l.weights * real(s.n * s.oh);
  l.sweep_bytes = l.block_bytes + l.pixel_bytes;
  return l;
}

struct DirectNchwCall {
  DirectNchwPlan plan;
  ConvOperands args;
  TaskSplit split;
};

class DirectNchwStep final : public ConvStep {
 public:
  DirectNchwStep(const ConvProblem& problem, const ConvArguments& arguments, const DirectNchwSchedule& schedule,
                 const TileKernels& kernels, const RowKernels& row_kernels, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels), row_kernels_(row_kernels) {
    const DirectNchwPlan plan = plan_direct_nchw(problem.unit_shape(), schedule_, kernels_);
    weight_ = packed.floats(direct_nchw_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_direct_nchw_weight(plan, problem.weight->constant->as<float>(), to);
    });
    bias_ = padded_channels(problem.bias, kernels_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    DirectNchwCall call;
    call.plan = plan_direct_nchw(shape_at(args), schedule_, kernels_);
    call.split = TaskSplit::of(call.plan.tasks, call.plan.shape.flops(), call.plan.workspace_size * 4);
    call.args = bind(args);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DirectNchwCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_direct_nchw(call.plan, kernels_, row_kernels_, a, begin, end, workspace);
    });
  }

 private:
  DirectNchwSchedule schedule_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
};

// NCHW to NCHW[x]c: the first layer of a network.
class DirectNchwRoutine final : public RoutineOf<DirectNchwRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/direct_nchw"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    std::optional<Candidate> best;
    for (int64_t oc_vectors : {4, 3, 2, 1}) {
      const Schedule schedule = {{"oc_bn", oc_vectors * target.lanes()},
                                 {"reg_n", tile_kernels_of(target.isa).max_rows[oc_vectors]}};
      const DirectNchwPlan plan = plan_of(problem, schedule, target);
      if (oc_vectors > plan.vectors) continue;
      Candidate c = candidate_of(workload, problem, plan, schedule, target);
      if (!best || c.cost.time_us < best->cost.time_us) best = std::move(c);
    }
    return {std::move(*best)};
  }

  Space space(const Workload& workload, const Target& target) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    return direct_nchw_space(problem.hint_shape(), tile_kernels_of(target.isa));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    return candidate_of(workload, problem, plan_of(problem, schedule, target), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return direct_nchw_loops(problem, plan_of(problem, candidate.schedule, target));
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const DirectNchwSchedule schedule = direct_nchw_schedule(candidate.schedule, target.lanes());
    return std::make_unique<DirectNchwStep>(problem, ConvArguments::of(candidate, problem, target), schedule,
                                            tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, row_kernels)(),
                                            packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (problem.geometry.ic > kStemChannels) return "more than 16 input channels";
    if (problem.epilogue.residual == problem.x) return "the input is the residual too";
    const ConvShape shape = problem.unit_shape();
    DirectNchwSchedule schedule;
    schedule.oc_bn = target.lanes();
    if (const char* why = reject_direct_nchw(shape, schedule, target.lanes())) return why;
    return std::nullopt;
  }

 private:
  static DirectNchwPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_direct_nchw(problem.hint_shape(), direct_nchw_schedule(schedule, target.lanes()),
                            tile_kernels_of(target.isa));
  }

  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const DirectNchwPlan& plan,
                                const Schedule& schedule, const Target& target) {
    const ConvShape& shape = plan.shape;
    const int64_t weights = direct_nchw_weight_size(plan);
    const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
    const double rows = static_cast<double>(shape.ow) / static_cast<double>(ceil_div(shape.ow, plan.schedule.reg_n));
    const double panel_bytes = static_cast<double>(weights) / static_cast<double>(plan.panels) * 4;
    const double flops = 2.0 * static_cast<double>(weights) * static_cast<double>(shape.n * shape.oh * shape.ow);
    const TaskSplit split = TaskSplit::of(plan.tasks, shape.flops(), plan.workspace_size * 4);
    Candidate c = conv_candidate(workload, problem, 1, target.lanes());
    c.schedule = schedule;
    c.cost.time_us = tasks_us(flops, kStemEfficiency * tile_efficiency(rows, vectors, panel_bytes, target),
                              split.serial ? 1 : split.tasks, problem.traffic_bytes(1, target.lanes()), target,
                              static_cast<double>(weights) * 4) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = (weights + (problem.bias ? plan.vectors * plan.lanes : 0)) * 4;
    c.cost.workspace_bytes = split.scratch_bytes();
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(direct_nchw, DirectNchwRoutine)

}  // namespace neo
