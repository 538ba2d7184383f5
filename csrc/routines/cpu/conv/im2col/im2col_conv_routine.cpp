#include <algorithm>
#include <cmath>

#include "routines/cost/loop_nest.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/im2col/im2col_conv.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

TaskSplit split_of(const Im2colConvPlan& plan) {
  return TaskSplit::of(plan.tasks, plan.shape.flops(), plan.workspace_size * 4);
}

// Packed weights as a part of the scratch memory, whose next part begins at a line of the cache.
int64_t packed_bytes_of(const Im2colConvPlan& plan) {
  return round_up(im2col_conv_weight_size(plan) * 4, 64);
}

Im2colConvSchedule panel_schedule(const Schedule& schedule, int64_t lanes) {
  return {value_of(schedule, "columns") / lanes, value_of(schedule, "rows"), value_of(schedule, "k"),
          value_of(schedule, "panels")};
}

// The schedules:
//   columns, rows  pixels and output channels per register block
//   k              products of an output per pass over it
//   panels         of pixels per task
Space panel_space(const Im2colConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 24;
  const int64_t lanes = kernels.lanes, products = shape.group_ic() * shape.taps();
  const Im2colConvPlan chosen = plan_im2col_conv(shape, {}, kernels);
  std::vector<int64_t> columns = {0}, rows = {0}, k = {0};
  for (int64_t v = 1; v < chosen.vectors; ++v) columns.push_back(v * lanes);
  const int64_t most = *std::max_element(kernels.max_rows + 1, kernels.max_rows + kTileVectors + 1);
  for (int64_t r = most; r >= 1; --r) rows.push_back(r);
  for (int64_t part = 64; part / 2 < products && part <= 2048; part *= 2) {
    const int64_t size = std::min(part, products);
    if (size != chosen.k_chunk) k.push_back(size);
  }
  const int64_t panels = ceil_div(ceil_div(shape.out_size(), lanes), chosen.vectors);
  const auto allows = [&](std::span<const int64_t> v) {
    const Im2colConvSchedule s = {v[0] / lanes, v[1], v[2], v[3]};
    const int64_t limit = kernels.max_rows[s.columns > 0 ? s.columns : chosen.vectors];
    const int64_t tiles = ceil_div(shape.group_oc(), limit);
    if (s.rows >= limit || (s.rows > 0 && s.rows * 3 < limit)) return false;
    // Channels are cut into equal blocks: the number of those is what counts.
    if (s.rows > 0 && (ceil_div(shape.group_oc(), s.rows) == tiles ||
                       s.rows != ceil_div(shape.group_oc(), ceil_div(shape.group_oc(), s.rows)))) {
      return false;
    }
    Im2colConvSchedule automatic = s;
    automatic.panels = 0;
    return s.panels == 0 || (plan_im2col_conv(shape, s, kernels).panel_chunk == s.panels &&
                             plan_im2col_conv(shape, automatic, kernels).panel_chunk != s.panels);
  };
  return Space({{"columns", columns},
                {"rows", rows},
                {"k", k},
                {"panels", part_sizes(std::max<int64_t>(1, panels), kMaxParts, 0)}},
               allows);
}

LoopNest panel_loops(const ConvProblem& problem, const Im2colConvPlan& plan, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const Im2colConvShape& s = plan.shape;
  const int64_t limit = plan.rows > 0 ? plan.rows : kernels.max_rows[plan.vectors];
  const double pixels = real(std::max<int64_t>(1, s.transposed ? s.in_size() : s.out_size()));
  LoopNest l;
  l.flops = real(s.flops());
  const double at_once = real(s.group_oc()) * phases_per_gather(plan);
  l.rows = at_once / std::ceil(at_once / real(limit));
  l.vectors = std::min(real(plan.vectors), std::ceil(pixels / real(plan.lanes)));
  l.full_rows = real(limit);
  l.reduction = l.inner = real(plan.k_chunk);
  l.passes = std::ceil(real(s.group_ic() * s.taps()) / l.reduction);
  l.block_bytes = l.reduction * l.vectors * real(plan.lanes) * 4;
  l.pixel_bytes = l.reduction * l.rows * 4;
  l.weights = real(im2col_conv_weight_size(plan)) * 4;
  l.inputs = real(s.n * s.ic * s.in_size()) * 4;
  l.outputs = problem.traffic_bytes(1, 1) - l.inputs;
  l.tasks = real(plan.tasks);
  l.task_weights = l.weights / real(s.groups);
  l.task_outputs = real(s.group_oc() * plan.panel_chunk * plan.vectors * plan.lanes) * 4;
  l.task_inputs = l.task_outputs / real(s.group_oc()) * real(s.group_ic());
  l.input_reads = l.inputs * real(plan.is_pointwise ? 1 : s.taps());
  l.weight_reads = l.task_weights * l.tasks * real(plan.panel_chunk);
  l.sweep_bytes = l.task_weights / l.passes + l.block_bytes;
  l.moved = plan.is_pointwise ? 0 : l.flops / (2 * at_once);
  l.workspace = real(plan.workspace_size) * 4;
  return l;
}

struct Im2colConvCall {
  Im2colConvPlan plan;
  ConvOperands args;
  TaskSplit split;
  int64_t packed_bytes = 0;  // of weights that each run packs, before the tasks' workspaces
};

class Im2colConvStep final : public KernelStep {
 public:
  Im2colConvStep(const ConvProblem& problem, const ConvArguments& arguments, const Im2colConvSchedule& schedule,
                 const TileKernels& kernels, const PackKernels& pack_kernels, const RowKernels& row_kernels,
                 PackedStore& packed)
      : geometry_(problem.geometry),
        arguments_(arguments),
        schedule_(schedule),
        kernels_(kernels),
        pack_kernels_(pack_kernels),
        row_kernels_(row_kernels) {
    if (arguments_.weight >= 0) return;
    const Im2colConvPlan plan = plan_im2col_conv(problem.unit_panel_shape(), schedule_, kernels_);
    weight_ = packed.floats(im2col_conv_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_im2col_conv_weight(plan, problem.weight->constant->as<float>(), to, {0, plan.shape.oc});
    });
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Arg& y = args[static_cast<size_t>(arguments_.y)];
    Im2colConvCall call;
    call.plan = plan_im2col_conv(arguments_.geometry(geometry_, args).panel_shape(x.dims, y.dims), schedule_, kernels_);
    call.split = split_of(call.plan);
    call.args = arguments_.bind(args);
    if (weight_.defined()) call.args.weight = weight_.as<float>();
    if (geometry_.transposed && !weight_.defined()) call.packed_bytes = packed_bytes_of(call.plan);
    return Prepared::of(call, call.packed_bytes + call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const Im2colConvCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    if (call.packed_bytes > 0) {
      auto* packed = reinterpret_cast<float*>(scratch);
      team.parallel_for(call.plan.shape.oc, [&](int64_t begin, int64_t end, int) {
        pack_im2col_conv_weight(call.plan, a.weight, packed, {begin, end});
      });
      a.weight = packed;
    }
    run_tasks_with<float>(team, call.split, scratch + call.packed_bytes,
                          [&](int64_t begin, int64_t end, float* workspace) {
                            run_im2col_conv(call.plan, kernels_, pack_kernels_, row_kernels_, a, begin, end, workspace);
                          });
  }

 private:
  ConvGeometry geometry_;
  ConvArguments arguments_;
  Im2colConvSchedule schedule_;
  const TileKernels& kernels_;
  const PackKernels& pack_kernels_;
  const RowKernels& row_kernels_;
  Tensor weight_;  // of a transposed convolution, where it is a constant
};

// Plain layouts, any rank and number of groups; and transposed convolution.
class Im2colConvRoutine final : public RoutineOf<Im2colConvRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/im2col"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return {candidate(workload, target, ops, {})};
  }

  Space space(const Workload& workload, const Target& target) const override {
    const ConvProblem problem = *read_conv(workload, nullptr, true);
    return panel_space(problem.geometry.panel_shape(problem.x_hint(), problem.y_hint()), tile_kernels_of(target.isa));
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr, true);
    return panel_loops(problem, plan_of(problem, candidate.schedule, target), tile_kernels_of(target.isa));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr, true);
    const Im2colConvPlan plan = plan_of(problem, schedule, target);
    const TaskSplit split = split_of(plan);
    Candidate c = conv_candidate(workload, problem, 1, 1);
    c.schedule = schedule;
    const auto give = [&](const Value* v) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    };
    give(problem.bias);
    const bool is_packed = problem.geometry.transposed && problem.weight->constant;
    if (is_packed) {
      c.cost.packed_bytes = im2col_conv_weight_size(plan) * 4;
    } else {
      give(problem.weight);
    }
    c.cost.time_us = estimate_us(problem, plan, split, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.workspace_bytes = split.scratch_bytes();
    if (problem.geometry.transposed && !is_packed) c.cost.workspace_bytes += packed_bytes_of(plan);
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr, true);
    return std::make_unique<Im2colConvStep>(problem, ConvArguments::of(candidate, problem, target),
                                            panel_schedule(candidate.schedule, target.lanes()),
                                            tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, pack_kernels)(),
                                            NEO_PICK_TIER(target.isa, row_kernels)(), packed);
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"Conv", "ConvTranspose"}; }

  bool takes_open() const override { return true; }

  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem&, const Target&) const override { return std::nullopt; }

 private:
  static Im2colConvPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_im2col_conv(problem.hint_panel_shape(), panel_schedule(schedule, target.lanes()),
                            tile_kernels_of(target.isa));
  }

  static double estimate_us(const ConvProblem& problem, const Im2colConvPlan& plan, const TaskSplit& split,
                            const Target& target) {
    // In cycles of arithmetic: gathering a row of a panel, which consists of runs of pixels of one output row each.
    constexpr double kRowCycles = 28;
    constexpr double kRunCycles = 14;
    // The same from copied channels, of a run or of a vector of places.
    constexpr double kBoxRowCycles = 20, kBoxRunCycles = 5, kPlaceCycles = 30;
    const Im2colConvShape& s = plan.shape;
    const double at_once = static_cast<double>(s.group_oc()) * phases_per_gather(plan);
    const double vectors = std::min(static_cast<double>(plan.vectors),
                                    static_cast<double>(ceil_div(std::max<int64_t>(1, s.out_size()), plan.lanes)));
    const double rows = at_once / std::ceil(at_once / static_cast<double>(plan.rows > 0 ? plan.rows : 7));
    const double ideal = at_once * vectors / 2;
    const double products = static_cast<double>(s.group_ic() * s.taps()) / static_cast<double>(plan.phases());
    const double width = vectors * static_cast<double>(plan.lanes);
    const double runs =
        1 + width / static_cast<double>(std::max<int64_t>(1, s.out[2] / (s.transposed ? s.stride[2] : 1)));
    double spent = ideal / tile_efficiency(rows, vectors, 0, target);
    if (plan.box.elements() > 0) {
      spent += kBoxRowCycles + std::min(kBoxRunCycles * runs, kPlaceCycles * vectors);
    } else if (plan.takes_places) {
      spent += kBoxRowCycles + kPlaceCycles * vectors;
    } else if (!plan.is_pointwise) {
      spent += kRowCycles + kRunCycles * runs;
    }
    if (s.transposed) {
      spent += interleave_cycles(plan.axis_phases[2]) * at_once * width / std::max(1.0, products);
    }
    // Pixels fill the lanes: a row of one pixel wastes all but one of them.
    const auto pixels = static_cast<double>(s.transposed ? s.in_size() : s.out_size());
    const auto lanes = static_cast<double>(plan.lanes);
    const double filled = std::max(1.0, pixels) / (std::ceil(std::max(1.0, pixels) / lanes) * lanes);
    constexpr double kCopyCycles = 1.5;  // of a float of a channel's copy
    const auto copied = static_cast<double>(plan.tasks * s.group_ic() * plan.box.elements());
    const double members = split.serial ? 1 : std::min<double>(target.threads, static_cast<double>(split.tasks));
    return tasks_us(static_cast<double>(s.flops()), 0.95 * filled * ideal / spent, split.serial ? 1 : split.tasks,
                    problem.traffic_bytes(1, 1), target, static_cast<double>(im2col_conv_weight_size(plan)) * 4) +
           cycles_us(kCopyCycles * copied, target) / std::max(1.0, members);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(im2col_conv, Im2colConvRoutine)

}  // namespace neo
