#include <algorithm>
#include <cmath>

#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct/direct_rows.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

TaskSplit split_of(const DirectRowsPlan& plan) {
  return TaskSplit::of(plan.tasks, plan.shape.flops(), plan.workspace_size * 4);
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
                  problem.traffic_bytes(1, 1), target, static_cast<double>(problem.weight->constant->size()) * 4);
}

DirectRowsSchedule rows_schedule(const Schedule& schedule, int64_t lanes) {
  return {schedule.at("pixels") / lanes, value_of(schedule, "rows"), value_of(schedule, "lines"),
          value_of(schedule, "parts")};
}

// The schedules:
//   pixels, rows  pixels and output channels per register block
//   lines         output rows per task
//   parts         that an output row is cut into
Space rows_space(const ConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 24;
  const int64_t lanes = kernels.lanes;
  std::vector<int64_t> pixels, rows = {0};
  for (int64_t v = kTileVectors; v >= 1; --v) pixels.push_back(v * lanes);
  for (int64_t r = 1; r <= std::min<int64_t>(kTileRows, shape.group_oc()); ++r) rows.push_back(r);
  const auto allows = [&](std::span<const int64_t> v) {
    const DirectRowsSchedule s = {v[0] / lanes, v[1], v[2], v[3]};
    const int64_t limit = kernels.max_rows[s.vectors], channels = shape.group_oc();
    if (s.rows > limit || (s.rows > 0 && s.rows * 3 < std::min(limit, channels))) return false;
    const DirectRowsPlan plan = plan_direct_rows(shape, s, kernels);
    const auto is_same = [&](int64_t DirectRowsSchedule::*parameter) {
      if (s.*parameter == 0) return false;
      DirectRowsSchedule without = s;
      without.*parameter = 0;
      const DirectRowsPlan other = plan_direct_rows(shape, without, kernels);
      return other.channel_tiles == plan.channel_tiles && other.lines == plan.lines && other.columns == plan.columns;
    };
    for (auto parameter : {&DirectRowsSchedule::rows, &DirectRowsSchedule::lines, &DirectRowsSchedule::parts}) {
      if (is_same(parameter)) return false;
    }
    // A parameter that does not get what it asks for belongs to another schedule.
    return (s.rows == 0 || s.rows == ceil_div(channels, plan.channel_tiles)) &&
           (s.lines == 0 || s.lines == plan.lines) && (s.parts == 0 || s.parts == plan.column_chunks);
  };
  return Space({{"pixels", pixels},
                {"rows", rows},
                {"lines", part_sizes(std::max<int64_t>(1, shape.oh), kMaxParts, 0)},
                {"parts", {0, 1, 2, 3, 4}}},
               allows);
}

LoopNest rows_loops(const ConvProblem& problem, const DirectRowsPlan& plan, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const ConvShape& s = plan.shape;
  const double pixels = std::ceil(real(std::min(plan.columns, s.ow)) / real(plan.lanes));
  LoopNest l;
  l.flops = real(s.flops());
  l.rows = real(s.group_oc()) / real(plan.channel_tiles);
  l.full_rows = real(kernels.max_rows[plan.schedule.vectors]);
  l.vectors = pixels / std::ceil(pixels / real(plan.schedule.vectors));
  l.reduction = real(plan.taps * plan.inner);
  l.inner = real(plan.inner);
  l.block_bytes = l.reduction * l.rows * 4;
  l.pixel_bytes = l.vectors * real(plan.lanes * s.group_ic() * s.kh * s.stride_w) * 4;
  l.task_inputs = real(plan.workspace_size) * 4;
  l.task_weights = l.reduction * real(s.group_oc()) * 4;
  l.task_outputs = real(plan.lines * plan.columns * s.group_oc()) * 4;
  l.inputs = real(s.n * s.ic * s.ih * s.iw) * 4;
  l.weights = l.task_weights * real(s.groups);
  l.outputs = problem.traffic_bytes(1, 1) - l.inputs;
  l.tasks = real(plan.tasks);
  l.input_reads = l.task_inputs * l.tasks;
  l.weight_reads = l.task_weights * l.tasks * real(plan.lines);
  l.sweep_bytes = l.task_weights + l.pixel_bytes;
  l.moved = real(plan.workspace_size) * l.tasks;
  l.workspace = l.task_inputs;
  return l;
}

struct DirectRowsCall {
  DirectRowsPlan plan;
  ConvOperands args;
  TaskSplit split;
};

class DirectRowsStep final : public ConvStep {
 public:
  DirectRowsStep(const ConvProblem& problem, const ConvArguments& arguments, const DirectRowsSchedule& schedule,
                 const TileKernels& kernels, const RowKernels& row_kernels, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels), row_kernels_(row_kernels) {
    // Packing does not depend on batch and space.
    const DirectRowsPlan plan = plan_direct_rows(problem.unit_shape(), schedule_, kernels_);
    const Tensor& weight = *problem.weight->constant;
    weight_ = packed.floats(weight.size(), {problem.weight},
                            [&](float* to) { pack_direct_rows_weight(plan, weight.as<float>(), to); });
    if (problem.bias) bias_ = packed.constant(*problem.bias);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    DirectRowsCall call;
    call.plan = plan_direct_rows(shape_at(args), schedule_, kernels_);
    call.split = split_of(call.plan);
    call.args = bind(args);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DirectRowsCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_direct_rows(call.plan, kernels_, row_kernels_, a, begin, end, workspace);
    });
  }

 private:
  DirectRowsSchedule schedule_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
};

// NCHW to NCHW with few output channels per group.
class DirectRowsRoutine final : public RoutineOf<DirectRowsRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/direct_rows"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const TileKernels& kernels = tile_kernels_of(target.isa);
    const ConvShape shape = problem.hint_shape();
    std::optional<Candidate> best;
    for (int64_t vectors : {4, 3, 2, 1}) {
      const Schedule schedule = {{"pixels", vectors * target.lanes()}};
      const DirectRowsPlan plan = plan_direct_rows(shape, rows_schedule(schedule, target.lanes()), kernels);
      Candidate c = candidate_of(workload, problem, plan, schedule, target);
      if (!best || c.cost.time_us < best->cost.time_us) best = std::move(c);
    }
    return {std::move(*best)};
  }

  Space space(const Workload& workload, const Target& target) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    return rows_space(problem.hint_shape(), tile_kernels_of(target.isa));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    return candidate_of(workload, problem, plan_of(problem, schedule, target), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return rows_loops(problem, plan_of(problem, candidate.schedule, target), tile_kernels_of(target.isa));
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const DirectRowsSchedule schedule = rows_schedule(candidate.schedule, target.lanes());
    return std::make_unique<DirectRowsStep>(problem, ConvArguments::of(candidate, problem, target), schedule,
                                            tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, row_kernels)(),
                                            packed);
  }

 protected:
  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (problem.epilogue.residual == problem.x) return "the input is the residual too";
    if (const char* why = reject_direct_rows(problem.unit_shape())) return why;
    return std::nullopt;
  }

 private:
  static DirectRowsPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_direct_rows(problem.hint_shape(), rows_schedule(schedule, target.lanes()), tile_kernels_of(target.isa));
  }

  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const DirectRowsPlan& plan,
                                const Schedule& schedule, const Target& target) {
    Candidate c = conv_candidate(workload, problem, 1, 1);
    c.schedule = schedule;
    c.cost.time_us = estimate_us(problem, plan, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = problem.weight->constant->size() * 4;
    c.cost.workspace_bytes = split_of(plan).scratch_bytes();
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(direct_rows, DirectRowsRoutine)

}  // namespace neo
