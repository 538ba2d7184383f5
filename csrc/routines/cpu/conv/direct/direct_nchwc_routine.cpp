#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/cpu/conv/direct/direct_nchwc_space.h"
#include "routines/cpu/conv/kept_weights.h"
#include "routines/cpu/conv/pack_bias.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

namespace neo {
namespace {

const TileKernels& tiles_of(const Target& target) {
  return tile_kernels_of(target.isa);
}

KeptWeights kept_weights(const ConvShape& s, int64_t columns) {
  return {s.group_ic(), columns * s.taps() * 4, 4 * s.group_ic() * s.ih * s.iw};
}

// Bytes of the panels that tiles after the first read again from beyond the private cache; all members' together.
double panels_again(const DirectPlan& plan, double panel_bytes, double rows, const Target& target) {
  const ConvShape& s = plan.shape;
  if (kept_weights(s, 0).keeps(panel_bytes / static_cast<double>(plan.passes), target)) return 0;
  const double tiles = static_cast<double>(s.n * s.oh * s.ow) / std::max(rows, 1.0);
  return panel_bytes * static_cast<double>(plan.panels * s.groups) * std::max(tiles - 1, 0.0);
}

// Whether tiles that end with their row are as wide as those over the whole plane, or nearly; they gather less.
bool fits_rows(const DirectPlan& plan, int64_t most) {
  const int64_t ow = plan.shape.ow;
  return plan.flat && !plan.contiguous && ow * 4 >= ceil_div(ow, most) * most * 3;
}

double estimate_us(const ConvProblem& problem, const DirectPlan& plan, const Target& target) {
  const ConvShape& s = plan.shape;
  const double vectors = static_cast<double>(plan.group_vectors) / static_cast<double>(plan.panels);
  const int64_t line = plan.flat ? s.oh * s.ow : s.ow;
  const double rows = static_cast<double>(line) / static_cast<double>(ceil_div(line, plan.schedule.reg_n));
  const double per_output = static_cast<double>(s.group_ic() * s.taps());
  const double panel_bytes = per_output * vectors * static_cast<double>(plan.lanes) * 4;
  const int64_t block = std::min(plan.schedule.ic_bn, s.group_ic());
  // Border taps of larger windows are gathered, and where tiles go on in the next row nearly all.
  const double gathers = s.taps() == 1 ? 1 : (plan.flat ? 0.93 : 0.96);
  const double efficiency = gathers * blocked_efficiency(rows, vectors, panel_bytes, block, target);
  const auto weights = static_cast<double>(direct_weight_size(plan));
  const double flops = 2 * weights * static_cast<double>(s.n * s.oh * s.ow);
  const TaskSplit split = TaskSplit::of(plan.tasks, direct_work(s));
  const double team = split.serial ? 1 : std::min<double>(target.threads, static_cast<double>(split.tasks));
  return stream_us(panels_again(plan, panel_bytes, rows, target) / team) +
         tasks_us(flops, efficiency, split.serial ? 1 : split.tasks, problem.traffic_bytes(plan.lanes, plan.lanes),
                  target, weights * 4);
}

struct DirectCall {
  DirectPlan plan;
  ConvOperands args;
  TaskSplit split;
  RunTimeWeights packed;
};

class DirectStep final : public ConvStep {
 public:
  DirectStep(const ConvProblem& problem, const ConvArguments& arguments, const DirectSchedule& schedule,
             const TileKernels& kernels, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels) {
    if (arguments_.weight >= 0) return;
    // Packing does not depend on batch and space.
    const DirectPlan plan = plan_direct(problem.unit_shape(), schedule_, kernels_);
    weight_ = packed.floats(direct_weight_size(plan), {problem.weight},
                            [&](float* to) { pack_direct_weight(plan, problem.weight->constant->as<float>(), to); });
    if (problem.bias) {
      bias_ = packed.floats(packed_bias_size(plan), {problem.bias},
                            [&](float* to) { pack_bias(plan, problem.bias->constant->as<float>(), to); });
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const ConvShape shape = shape_at(args);
    const char* why = reject_direct(shape, schedule_, kernels_.lanes);
    NEO_CHECK(!why, Unsupported, "Conv", "sizes must be in the range of cpu:float32/direct_nchwc. Got ",
              to_string(x.dims), ": ", why);
    DirectCall call;
    call.plan = plan_direct(shape, schedule_, kernels_);
    call.split = TaskSplit::of(call.plan.tasks, direct_work(shape));
    call.args = bind(args);
    if (!weight_.defined()) {
      call.packed.weight = direct_weight_size(call.plan);
      if (arguments_.bias >= 0) call.packed.bias = packed_bias_size(call.plan);
    }
    return Prepared::of(call, call.packed.bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DirectCall*>(prepared);
    ConvOperands a = arguments_.at(call.args, args);
    call.packed.pack(a, call.plan.shape.oc, scratch,
                     [&](const float* weight, float* to) { pack_direct_weight(call.plan, weight, to); });
    run_tasks(team, call.split,
              [&](int64_t begin, int64_t end, int) { run_direct(call.plan, kernels_, a, begin, end); });
  }

 private:
  DirectSchedule schedule_;
  const TileKernels& kernels_;
};

// NCHW[x]c to NCHW[x]c with packed weights: NeoCPU section 3.1.1.
class DirectRoutine final : public RoutineOf<DirectRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/direct_nchwc"; }

  // The largest register blocks, all else as the shape decides. The layout's block is the vector width, so that all
  // routines of a target agree.
  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape shape = problem.hint_shape();
    const TileKernels& kernels = tiles_of(target);
    const int64_t lanes = target.lanes();
    std::vector<Candidate> all;
    const auto offer = [&](const Schedule& schedule) {
      const DirectPlan plan = plan_direct(shape, direct_schedule(schedule, lanes), kernels);
      all.push_back(candidate_of(workload, problem, plan, schedule, target));
      return plan;
    };
    const auto offer_passes = [&](Schedule schedule, int64_t channels) {
      const DirectPlan plan = offer(schedule);
      if (channels == 0) return plan;
      schedule.emplace("ic", channels);
      return offer(schedule);
    };
    for (int64_t oc_vectors : {4, 2, 3, 1}) {
      if (oc_vectors > ceil_div(shape.group_oc(), lanes)) continue;
      const int64_t most = kernels.max_rows[oc_vectors],
                    channels = kept_weights(shape, oc_vectors * lanes).near_channels(target);
      Schedule schedule = {{"ic_bn", lanes}, {"oc_bn", oc_vectors * lanes}, {"reg_n", most}};
      const DirectPlan plan = offer_passes(schedule, channels);
      if (!fits_rows(plan, most)) continue;
      schedule.emplace("line", 1);
      offer_passes(schedule, channels);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost.time_us < b.cost.time_us; });
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    return direct_space(read_conv(workload, nullptr)->hint_shape(), tiles_of(target));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const DirectPlan plan =
        plan_direct(problem.hint_shape(), direct_schedule(schedule, target.lanes()), tiles_of(target));
    return candidate_of(workload, problem, plan, schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const TileKernels& kernels = tiles_of(target);
    return direct_loops(problem,
                        plan_direct(problem.hint_shape(), direct_schedule(candidate.schedule, target.lanes()), kernels),
                        kernels);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<DirectStep>(problem, ConvArguments::of(candidate, problem, target),
                                        direct_schedule(candidate.schedule, target.lanes()), tiles_of(target), packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (problem.geometry.is_depthwise()) return "one input channel per group";
    Dims smallest;
    for (const Dim& d : problem.x->shape().dims()) smallest.push_back(std::max<int64_t>(1, d.range().lo));
    ConvShape shape = problem.unit_shape();
    shape.iw = smallest.back();
    if (problem.geometry.axes == 2) shape.ih = smallest[2];
    const DirectSchedule schedule = direct_schedule({{"oc_bn", target.lanes()}, {"reg_n", 0}}, target.lanes());
    if (const char* why = reject_direct(shape, schedule, target.lanes())) return why;
    return std::nullopt;
  }

 private:
  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const DirectPlan& plan,
                                const Schedule& schedule, const Target& target) {
    Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
    c.schedule = schedule;
    c.cost.time_us = estimate_us(problem, plan, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.packed_bytes = (direct_weight_size(plan) + (problem.bias ? packed_bias_size(plan) : 0)) * 4;
    if (has_run_time_weights(problem)) read_run_time_weights(c, workload, problem);
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(direct_nchwc, DirectRoutine)

}  // namespace neo
