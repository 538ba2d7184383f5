#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/transposed/subpixel_rows.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/transposed_taps.h"
#include "routines/space.h"

namespace neo {
namespace {

int64_t flops_of(const SubpixelRowsPlan& plan) {
  const Im2colConvShape& s = plan.shape;
  return 2 * s.n * s.oc * s.group_ic() * output_products(s);
}

TaskSplit split_of(const SubpixelRowsPlan& plan) {
  return TaskSplit::of(plan.tasks, flops_of(plan), plan.workspace_size * 4);
}

SubpixelRowsSchedule subpixel_rows_schedule(const Schedule& schedule, int64_t lanes) {
  return {schedule.at("pixels") / lanes, value_of(schedule, "rows"), value_of(schedule, "bands"),
          value_of(schedule, "joined")};
}

// Vectors of one row of sums.
double vectors_of(const SubpixelRowsPlan& plan) {
  const int64_t length = plan.length(plan.bands, std::max<int64_t>(1, plan.columns));
  return static_cast<double>(ceil_div(length, plan.lanes));
}

// Phases of an axis that some tap reaches.
int64_t reached_phases(const Im2colConvShape& s, int axis) {
  int64_t count = 0;
  for (int64_t p = 0; p < phase_count(s, axis); ++p) count += OutputPhase::of(s, axis, p).taps.count > 0;
  return count;
}

double estimate_us(const ConvProblem& problem, const SubpixelRowsPlan& plan, const Target& target) {
  // In cycles of one vector FMA; the last two of a vector that is copied or that no tap reaches, and of an output row.
  constexpr double kUnalignedLoad = 1.9, kBroadcast = 0.5, kTap = 3, kTile = 40, kStore = 2, kCopy = 4, kLine = 20;
  const Im2colConvShape& s = plan.shape;
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const double vectors = vectors_of(plan);
  const double panels = std::ceil(vectors / real(plan.schedule.vectors)), width = vectors / panels;
  const bool joined = plan.schedule.joined != 0;
  const double ic = real(s.group_ic());
  const double rows = real(s.group_oc()) / real(plan.channel_tiles) * (joined ? real(s.stride[2]) : 1);
  const double depths = real(reached_phases(s, 0)), heights = real(reached_phases(s, 1));
  const double widths = joined ? 1 : real(reached_phases(s, 2));
  // Taps of a register block, those of planes and rows outside the input included.
  const double taps = real(s.kernel[0] * s.kernel[1] * (joined ? plan.row_taps : s.kernel[2])) /
                      std::max(1.0, depths * heights * widths);
  const double sum = std::max({rows * width, kUnalignedLoad * width + kBroadcast * rows, 4.0}) * 1.06;
  const double tile = taps * (ic * sum + kTap) + kTile + kStore * rows * width;
  const double lines = real(plan.tasks) * depths * heights * (plan.is_flat ? 1 : real(plan.bands));
  const double sums = lines * widths * panels * real(plan.channel_tiles) * tile;
  const double copied = real(plan.tasks * s.group_ic()) * real(plan.channel());
  const double outputs = real(s.n * s.oc) * real(s.out_size()),
               stored_lines = outputs / real(std::max<int64_t>(1, s.out[2]));
  const double reached = depths * heights / std::max(1.0, real(phase_count(s, 0) * phase_count(s, 1)));
  const double interleaved = interleave_cycles(phase_count(s, 2)) + (joined ? 0.3 : 0);
  const double stored =
      reached * (interleaved * outputs + kLine * stored_lines) + (1 - reached) * kCopy * outputs / real(plan.lanes);
  const double cycles = sums + copied / real(plan.lanes) * kCopy + stored;
  const double flops = real(flops_of(plan)), ideal = flops / real(2 * plan.lanes);
  const TaskSplit split = split_of(plan);
  return tasks_us(flops, ideal / std::max(1.0, cycles), split.serial ? 1 : split.tasks, problem.traffic_bytes(1, 1),
                  target, real(s.oc * s.group_ic() * s.taps()) * 4);
}

// The schedules:
//   pixels, rows  pixels and output channels per register block
//   bands         of output rows per task
//   joined        1: a register block has all residues of its channels along a row
Space subpixel_rows_space(const Im2colConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 24;
  const int64_t lanes = kernels.lanes, channels = shape.group_oc();
  std::vector<int64_t> pixels, rows = {0};
  for (int64_t v = kTileVectors; v >= 1; --v) pixels.push_back(v * lanes);
  for (int64_t r = 1; r <= std::min<int64_t>(kTileRows, channels); ++r) rows.push_back(r);
  const auto allows = [&](std::span<const int64_t> v) {
    const SubpixelRowsSchedule s = {v[0] / lanes, v[1], v[2], v[3]};
    if (s.joined != 0 && reject_joined_rows(shape, s.vectors, kernels)) return false;
    const int64_t limit = kernels.max_rows[s.vectors] / (s.joined != 0 ? shape.stride[2] : 1);
    if (s.rows > limit || (s.rows > 0 && s.rows * 3 < std::min(limit, channels))) return false;
    const SubpixelRowsPlan plan = plan_subpixel_rows(shape, s, kernels);
    for (auto parameter : {&SubpixelRowsSchedule::rows, &SubpixelRowsSchedule::bands}) {
      if (s.*parameter == 0) continue;
      SubpixelRowsSchedule without = s;
      without.*parameter = 0;
      const SubpixelRowsPlan other = plan_subpixel_rows(shape, without, kernels);
      if (other.channel_tiles == plan.channel_tiles && other.bands == plan.bands) return false;
    }
    // A parameter that does not get what it asks for belongs to another schedule.
    return (s.rows == 0 || s.rows == ceil_div(channels, plan.channel_tiles)) && (s.bands == 0 || s.bands == plan.bands);
  };
  const int64_t lines = std::max<int64_t>(1, ceil_div(shape.out[1], shape.stride[1]));
  return Space({{"pixels", pixels}, {"rows", rows}, {"bands", part_sizes(lines, kMaxParts, 0)}, {"joined", {0, 1}}},
               allows);
}

LoopNest subpixel_rows_loops(const ConvProblem& problem, const SubpixelRowsPlan& plan, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const Im2colConvShape& s = plan.shape;
  const double vectors = vectors_of(plan);
  LoopNest l;
  l.flops = real(flops_of(plan));
  l.rows = real(s.group_oc()) / real(plan.channel_tiles) * (plan.schedule.joined != 0 ? real(s.stride[2]) : 1);
  l.vectors = vectors / std::ceil(vectors / real(plan.schedule.vectors));
  l.full_rows = real(plan.schedule.rows > 0 ? plan.schedule.rows : kernels.max_rows[plan.schedule.vectors]);
  l.reduction = real(s.group_ic()) * real(output_products(s)) / std::max(1.0, real(s.out_size()));
  l.inner = real(s.group_ic());
  l.block_bytes = l.reduction * l.vectors * real(plan.lanes) * 4;
  l.pixel_bytes = l.reduction * l.rows * 4;
  l.inputs = real(s.n * s.ic * s.in_size()) * 4;
  l.outputs = problem.traffic_bytes(1, 1) - l.inputs;
  l.weights = real(s.oc * s.group_ic() * s.taps()) * 4;
  l.tasks = real(plan.tasks);
  l.task_weights = l.weights / real(s.groups);
  l.task_inputs = real(s.group_ic() * plan.channel()) * 4;
  l.task_outputs = l.outputs / std::max(1.0, l.tasks);
  l.input_reads = l.task_inputs * l.tasks;
  l.weight_reads = l.task_weights * l.tasks * real(plan.bands);
  l.order = real(plan.schedule.joined);
  l.sweep_bytes = l.task_weights + l.pixel_bytes;
  l.moved = real(plan.workspace_size) * l.tasks;
  l.workspace = real(plan.workspace_size) * 4;
  return l;
}

struct SubpixelRowsCall {
  SubpixelRowsPlan plan;
  ConvOperands args;
  TaskSplit split;
  RunTimeWeights packed;

  // The place of the tasks' workspaces in the scratch memory.
  int64_t workspaces_at() const { return round_up(packed.bytes(), 64); }
};

class SubpixelRowsStep final : public ConvStep {
 public:
  SubpixelRowsStep(const ConvProblem& problem, const ConvArguments& arguments, const SubpixelRowsSchedule& schedule,
                   const TileKernels& kernels, const RowKernels& row_kernels, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels), row_kernels_(row_kernels) {
    if (arguments_.weight >= 0) return;
    // Packing does not depend on batch, space and padding.
    const SubpixelRowsPlan plan = plan_subpixel_rows(problem.unit_panel_shape(), schedule_, kernels_);
    const Tensor& weight = *problem.weight->constant;
    weight_ = packed.floats(subpixel_rows_weight_size(plan), {problem.weight},
                            [&](float* to) { pack_subpixel_rows_weight(plan, weight.as<float>(), to); });
    if (problem.bias) bias_ = packed.constant(*problem.bias);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    SubpixelRowsCall call;
    call.plan = plan_subpixel_rows(panel_shape_at(args), schedule_, kernels_);
    call.split = split_of(call.plan);
    call.args = bind(args);
    if (!weight_.defined()) call.packed.weight = subpixel_rows_weight_size(call.plan);
    return Prepared::of(call, call.workspaces_at() + call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SubpixelRowsCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    call.packed.pack(a, call.plan.shape.oc, scratch,
                     [&](const float* weight, float* to) { pack_subpixel_rows_weight(call.plan, weight, to); });
    run_tasks_with<float>(team, call.split, scratch + call.workspaces_at(),
                          [&](int64_t begin, int64_t end, float* workspace) {
                            run_subpixel_rows(call.plan, kernels_, row_kernels_, a, begin, end, workspace);
                          });
  }

 private:
  SubpixelRowsSchedule schedule_;
  const TileKernels& kernels_;
  const RowKernels& row_kernels_;
};

class SubpixelRowsRoutine final : public RoutineOf<SubpixelRowsRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/subpixel_rows"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const Im2colConvShape shape = problem.hint_panel_shape();
    std::optional<Candidate> best;
    const auto offer = [&](const Schedule& schedule) {
      Candidate c = candidate_of(workload, problem, schedule, target);
      if (!best || c.cost.time_us < best->cost.time_us) best = std::move(c);
    };
    for (int64_t vectors : {4, 3, 2, 1}) {
      offer({{"pixels", vectors * target.lanes()}});
      if (reject_joined_rows(shape, vectors, tile_kernels_of(target.isa))) continue;
      offer({{"pixels", vectors * target.lanes()}, {"joined", 1}});
    }
    return {std::move(*best)};
  }

  Space space(const Workload& workload, const Target& target) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    return subpixel_rows_space(problem.hint_panel_shape(), tile_kernels_of(target.isa));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, *read_conv(workload, nullptr), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return subpixel_rows_loops(problem, plan_of(problem, candidate.schedule, target), tile_kernels_of(target.isa));
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<SubpixelRowsStep>(problem, ConvArguments::of(candidate, problem, target),
                                              subpixel_rows_schedule(candidate.schedule, target.lanes()),
                                              tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, row_kernels)(),
                                              packed);
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"ConvTranspose"}; }

  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (const char* why = reject_subpixel_rows(problem.unit_panel_shape())) return why;
    return std::nullopt;
  }

 private:
  static SubpixelRowsPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_subpixel_rows(problem.hint_panel_shape(), subpixel_rows_schedule(schedule, target.lanes()),
                              tile_kernels_of(target.isa));
  }

  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const Schedule& schedule,
                                const Target& target) {
    const SubpixelRowsPlan plan = plan_of(problem, schedule, target);
    Candidate c = conv_candidate(workload, problem, 1, 1);
    c.schedule = schedule;
    c.cost.time_us = estimate_us(problem, plan, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = subpixel_rows_weight_size(plan) * 4;
    c.cost.workspace_bytes = split_of(plan).scratch_bytes();
    if (has_run_time_weights(problem)) read_run_time_weights(c, workload, problem);
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(subpixel_rows, SubpixelRowsRoutine)

}  // namespace neo
