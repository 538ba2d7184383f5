#include <algorithm>

#include "base/check.h"
#include "routines/cost/loop_nest.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/kept_weights.h"
#include "routines/cpu/conv/pack_bias.h"
#include "routines/cpu/conv/transposed/subpixel_nchwc.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/transposed_taps.h"
#include "routines/space.h"

namespace neo {
namespace {

SubpixelSchedule subpixel_schedule(const Schedule& schedule, int64_t lanes) {
  return {schedule.at("oc_bn") / lanes, value_of(schedule, "reg_n"), value_of(schedule, "bands"),
          value_of(schedule, "panels"), value_of(schedule, "ic")};
}

TaskSplit split_of(const SubpixelPlan& plan) {
  return TaskSplit::of(plan.tasks, subpixel_work(plan.shape));
}

// Taps that reach an output, on average.
double output_taps(const Im2colConvShape& s) {
  return static_cast<double>(output_products(s)) / std::max(1.0, static_cast<double>(s.out_size()));
}

// Mean composition of the register blocks.
struct SubpixelTiles {
  double rows = 0, vectors = 0;
  double count = 0;      // of a panel
  double reduction = 0;  // products of an output per pass

  static SubpixelTiles of(const SubpixelPlan& plan, const TileKernels& kernels) {
    const Im2colConvShape& s = plan.shape;
    const int64_t most = kernels.max_rows[ceil_div(plan.group_vectors, std::max<int64_t>(1, plan.panels))];
    const int64_t reg_n = plan.schedule.reg_n > 0 ? std::min(plan.schedule.reg_n, most) : most;
    const int64_t line = std::max<int64_t>(1, ceil_div(s.out[2], output_step(s, 2)));
    SubpixelTiles t;
    t.rows = static_cast<double>(line) / static_cast<double>(ceil_div(line, reg_n));
    t.vectors = static_cast<double>(plan.group_vectors) / static_cast<double>(std::max<int64_t>(1, plan.panels));
    t.count = static_cast<double>(s.n * s.out_size()) / t.rows;
    t.reduction = static_cast<double>(s.group_ic()) / static_cast<double>(plan.passes) * output_taps(s);
    return t;
  }
};

KeptWeights kept_weights(const Im2colConvShape& s, int64_t columns) {
  const auto taps = static_cast<int64_t>(output_taps(s) + 0.99);
  return {s.group_ic(), columns * taps * 4, 4 * s.group_ic() * s.in_size()};
}

// The schedules:
//   oc_bn   output channels per register block
//   reg_n   pixels per register block
//   bands   of output rows per task
//   panels  of output channels per task
//   ic      input channels per pass over a task's outputs
Space subpixel_space(const Im2colConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 16;
  const int64_t lanes = kernels.lanes;
  const SubpixelPlan narrow = plan_subpixel(shape, {.oc_vectors = 1}, kernels);
  std::vector<int64_t> widths, rows, passes = {0};
  for (int64_t v = 1; v <= std::min<int64_t>(narrow.group_vectors, kTileVectors); ++v) widths.push_back(v * lanes);
  for (int64_t r = *std::max_element(kernels.max_rows + 1, kernels.max_rows + kTileVectors + 1); r >= 1; --r)
    rows.push_back(r);
  for (int64_t channels = lanes; channels < shape.group_ic(); channels *= 2) passes.push_back(channels);
  const int64_t line = std::max<int64_t>(1, ceil_div(shape.out[2], output_step(shape, 2)));
  const auto allows = [&](std::span<const int64_t> v) {
    const SubpixelSchedule s = {v[0] / lanes, v[1], v[2], v[3], v[4]};
    const int64_t most = kernels.max_rows[s.oc_vectors];
    if (s.reg_n > most || s.reg_n * 3 < most) return false;
    // Rows are cut into equal tiles: the number of those is what counts.
    if (s.reg_n != most &&
        (ceil_div(line, s.reg_n) == ceil_div(line, most) || s.reg_n != ceil_div(line, ceil_div(line, s.reg_n)))) {
      return false;
    }
    const auto cut = [&](SubpixelSchedule schedule) {
      const SubpixelPlan plan = plan_subpixel(shape, schedule, kernels);
      return std::array{plan.band_chunk, plan.panel_chunk, plan.pass};
    };
    const auto own = cut(s);
    const int64_t SubpixelSchedule::*parameters[] = {&SubpixelSchedule::bands, &SubpixelSchedule::panels,
                                                     &SubpixelSchedule::ic};
    for (size_t i = 0; i < std::size(parameters); ++i) {
      if (s.*parameters[i] == 0) continue;
      SubpixelSchedule without = s;
      without.*const_cast<int64_t SubpixelSchedule::*>(parameters[i]) = 0;
      if (own[i] * (i == 2 ? lanes : 1) != s.*parameters[i] || cut(without) == own) return false;
    }
    return true;
  };
  return Space({{"oc_bn", widths},
                {"reg_n", rows},
                {"bands", part_sizes(std::max<int64_t>(1, narrow.bands()), kMaxParts, 0)},
                {"panels", part_sizes(std::max<int64_t>(1, narrow.group_vectors), 8, 0)},
                {"ic", passes}},
               allows);
}

LoopNest subpixel_loops(const ConvProblem& problem, const SubpixelPlan& plan, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const Im2colConvShape& s = plan.shape;
  const SubpixelTiles tiles = SubpixelTiles::of(plan, kernels);
  const double width = tiles.vectors * real(plan.lanes), bands = std::max(1.0, real(plan.bands()));
  LoopNest l;
  l.flops = 2 * real(s.n * plan.group_vectors * plan.lanes * s.groups * s.group_ic() * output_products(s));
  l.rows = tiles.rows;
  l.vectors = tiles.vectors;
  l.full_rows = real(plan.schedule.reg_n > 0 ? plan.schedule.reg_n : kernels.max_rows[plan.schedule.oc_vectors]);
  l.reduction = tiles.reduction;
  l.inner = real(std::min(plan.lanes, s.group_ic()));
  l.passes = real(plan.passes);
  l.block_bytes = l.reduction * width * 4;
  l.pixel_bytes = l.reduction * l.rows * 4;
  l.inputs = real(s.n * s.ic * s.in_size()) * 4;
  l.outputs = problem.traffic_bytes(plan.lanes, plan.lanes) - l.inputs;
  l.weights = real(subpixel_weight_size(plan)) * 4;
  l.task_weights = real(plan.panel_chunk) * width * real(s.group_ic() * s.taps()) * 4;
  l.task_inputs = l.inputs / real(s.groups) * std::min(1.0, real(plan.band_chunk) / bands);
  l.task_outputs = real(s.n * s.out_size()) / bands * real(plan.band_chunk * plan.panel_chunk) * width * 4;
  l.tasks = real(plan.tasks);
  l.input_reads =
      l.task_inputs * l.tasks * real(plan.panel_chunk * output_step(s, 0) * output_step(s, 1) * output_step(s, 2));
  l.weight_reads = l.task_weights * l.tasks * (plan.finishes_lines ? real(plan.band_chunk) : 1);
  l.sweep_bytes = l.block_bytes + l.pixel_bytes;
  l.order = plan.finishes_lines ? 1 : 0;
  l.prefetched = plan.finishes_lines ? 0 : 1;
  return l;
}

double estimate_us(const ConvProblem& problem, const SubpixelPlan& plan, const TileKernels& kernels,
                   const Target& target) {
  // In cycles of one vector FMA: what a register block costs beside its sums, and each of its rows at every tap.
  constexpr double kTile = 30, kRowOfTap = 2.5, kGathers = 0.96;
  const Im2colConvShape& s = plan.shape;
  const SubpixelTiles tiles = SubpixelTiles::of(plan, kernels);
  const double panel_bytes = tiles.reduction * tiles.vectors * static_cast<double>(plan.lanes) * 4;
  const int64_t block = std::min(plan.lanes, s.group_ic());
  const double summed = tiles.reduction * tiles.rows * tiles.vectors;
  const double beside = kTile + kRowOfTap * tiles.rows * output_taps(s);
  const double efficiency =
      kGathers * blocked_efficiency(tiles.rows, tiles.vectors, panel_bytes, block, target) * summed / (summed + beside);
  const double flops = 2 * static_cast<double>(plan.group_vectors * plan.lanes * s.groups * s.n * s.group_ic()) *
                       static_cast<double>(output_products(s));
  const TaskSplit split = split_of(plan);
  const double team = split.serial ? 1 : std::min<double>(target.threads, static_cast<double>(split.tasks));
  double again = 0;
  if (!kept_weights(s, 0).keeps(panel_bytes, target)) {
    again = panel_bytes * static_cast<double>(plan.panels * s.groups * plan.passes) * std::max(tiles.count - 1, 0.0);
  }
  return stream_us(again / team) + tasks_us(flops, efficiency, split.serial ? 1 : split.tasks,
                                            problem.traffic_bytes(plan.lanes, plan.lanes), target,
                                            static_cast<double>(subpixel_weight_size(plan)) * 4);
}

struct SubpixelCall {
  SubpixelPlan plan;
  ConvOperands args;
  TaskSplit split;
  RunTimeWeights packed;
};

class SubpixelStep final : public ConvStep {
 public:
  SubpixelStep(const ConvProblem& problem, const ConvArguments& arguments, const SubpixelSchedule& schedule,
               const TileKernels& kernels, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels) {
    if (arguments_.weight >= 0) return;
    // Packing does not depend on batch, space and padding.
    const SubpixelPlan plan = plan_subpixel(problem.unit_panel_shape(), schedule_, kernels_);
    weight_ = packed.floats(subpixel_weight_size(plan), {problem.weight},
                            [&](float* to) { pack_subpixel_weight(plan, problem.weight->constant->as<float>(), to); });
    if (problem.bias) {
      bias_ = packed.floats(packed_bias_size(plan), {problem.bias},
                            [&](float* to) { pack_bias(plan, problem.bias->constant->as<float>(), to); });
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Im2colConvShape shape = panel_shape_at(args);
    const char* why = reject_subpixel(shape, kernels_.lanes);
    NEO_CHECK(!why, Unsupported, "Conv", "sizes must be in the range of cpu:float32/subpixel_nchwc. Got ",
              to_string(x.dims), ": ", why);
    SubpixelCall call;
    call.plan = plan_subpixel(shape, schedule_, kernels_);
    call.split = split_of(call.plan);
    call.args = bind(args);
    if (!weight_.defined()) {
      call.packed.weight = subpixel_weight_size(call.plan);
      if (arguments_.bias >= 0) call.packed.bias = packed_bias_size(call.plan);
    }
    return Prepared::of(call, call.packed.bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SubpixelCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    call.packed.pack(a, call.plan.shape.oc, scratch,
                     [&](const float* weight, float* to) { pack_subpixel_weight(call.plan, weight, to); });
    run_tasks(team, call.split,
              [&](int64_t begin, int64_t end, int) { run_subpixel(call.plan, kernels_, a, begin, end); });
  }

 private:
  SubpixelSchedule schedule_;
  const TileKernels& kernels_;
};

class SubpixelRoutine final : public RoutineOf<SubpixelRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/subpixel_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const Im2colConvShape shape = problem.hint_panel_shape();
    const TileKernels& kernels = tile_kernels_of(target.isa);
    const int64_t lanes = target.lanes();
    std::vector<Candidate> all;
    for (int64_t oc_vectors : {4, 2, 3, 1}) {
      if (oc_vectors > ceil_div(shape.group_oc(), lanes)) continue;
      Schedule schedule = {{"oc_bn", oc_vectors * lanes}, {"reg_n", kernels.max_rows[oc_vectors]}};
      all.push_back(candidate_of(workload, problem, schedule, target));
      const int64_t channels = kept_weights(shape, oc_vectors * lanes).near_channels(target);
      if (channels == 0) continue;
      schedule.emplace("ic", channels);
      all.push_back(candidate_of(workload, problem, schedule, target));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost.time_us < b.cost.time_us; });
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    return subpixel_space(read_conv(workload, nullptr)->hint_panel_shape(), tile_kernels_of(target.isa));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, *read_conv(workload, nullptr), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return subpixel_loops(problem, plan_of(problem, candidate.schedule, target), tile_kernels_of(target.isa));
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<SubpixelStep>(problem, ConvArguments::of(candidate, problem, target),
                                          subpixel_schedule(candidate.schedule, target.lanes()),
                                          tile_kernels_of(target.isa), packed);
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"ConvTranspose", "Conv"}; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    const ConvGeometry& g = problem.geometry;
    if (!g.transposed && g.axes < 3) return "a convolution of fewer than three spatial axes";
    // The smallest sizes that symbols may take, since prepare() refuses larger ones.
    Dims smallest;
    for (const Dim& d : problem.x->shape().dims()) smallest.push_back(std::max<int64_t>(1, d.range().lo));
    if (const char* why = reject_subpixel(g.panel_shape(smallest, smallest), target.lanes())) return why;
    return std::nullopt;
  }

 private:
  static SubpixelPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_subpixel(problem.hint_panel_shape(), subpixel_schedule(schedule, target.lanes()),
                         tile_kernels_of(target.isa));
  }

  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const Schedule& schedule,
                                const Target& target) {
    const SubpixelPlan plan = plan_of(problem, schedule, target);
    Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
    c.schedule = schedule;
    c.cost.time_us = estimate_us(problem, plan, tile_kernels_of(target.isa), target) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = (subpixel_weight_size(plan) + (problem.bias ? packed_bias_size(plan) : 0)) * 4;
    if (has_run_time_weights(problem)) read_run_time_weights(c, workload, problem);
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(subpixel_nchwc, SubpixelRoutine)

}  // namespace neo
