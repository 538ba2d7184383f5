#include "routines/cost/loop_nest.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/transposed/subpixel_winograd.h"
#include "routines/cpu/conv/winograd/winograd_cost.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/transposed_taps.h"
#include "routines/patterns/winograd_form.h"

namespace neo {
namespace {

// Bytes of the convolution's results, before the tasks' workspaces.
int64_t sums_bytes(const SubpixelWinogradPlan& plan) {
  return round_up(plan.sums_size * 4, 64);
}

// Bytes that the convolution reads and writes; the memory that it writes is fetched first.
double conv_bytes(const SubpixelWinogradPlan& plan) {
  const Im2colConvShape& s = plan.shape;
  return 4 * static_cast<double>(s.n * round_up(s.ic, plan.lanes) * s.in_size() + 2 * plan.sums_size);
}

TaskSplit spread_split(const SubpixelWinogradPlan& plan) {
  constexpr int64_t kFloat = 8;  // operations that take as long as storing one
  return TaskSplit::of(plan.tasks, kFloat * plan.shape.n * plan.vectors * plan.lanes * plan.shape.out_size());
}

double estimate_us(const SubpixelWinogradPlan& plan, const WinogradTiles& kernels, const Target& target) {
  constexpr double kStoreCycles = 5;  // of a vector of results, in cycles of one vector FMA
  const Im2colConvShape& s = plan.shape;
  const double stored = static_cast<double>(s.n * plan.vectors * s.out_size());
  const double bytes = 4 * static_cast<double>(plan.sums_size) + 8 * stored * static_cast<double>(plan.lanes);
  const auto caches = static_cast<double>(target.threads * private_caches(target).l2_bytes);
  const TaskSplit split = spread_split(plan);
  return winograd_us(plan.winograd, conv_bytes(plan), kernels.tiles, target) +
         tasks_us(kStoreCycles * stored * 2 * static_cast<double>(plan.lanes), 1.0, split.serial ? 1 : split.tasks,
                  bytes > caches ? bytes : 0, target);
}

struct SubpixelWinogradCall {
  SubpixelWinogradPlan plan;
  ConvOperands args;
  TaskSplit winograd, spread;
};

class SubpixelWinogradStep final : public ConvStep {
 public:
  SubpixelWinogradStep(const ConvProblem& problem, const ConvArguments& arguments, const WinogradSchedule& schedule,
                       const WinogradTiles& kernels, const TransposedDepthwiseKernels& lines, int threads,
                       PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels), lines_(lines), threads_(threads) {
    // Packing does not depend on batch, space and padding.
    const SubpixelWinogradPlan plan = plan_of(problem.unit_panel_shape());
    weight_ = packed.floats(winograd_weight_size(plan.winograd), {problem.weight}, [&](float* to) {
      pack_subpixel_winograd_weight(plan, kernels_.transforms, problem.weight->constant->as<float>(), to);
    });
    bias_ = padded_channels(problem.bias, plan.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    SubpixelWinogradCall call;
    call.plan = plan_of(panel_shape_at(args));
    call.winograd = winograd_split(call.plan.winograd, threads_);
    call.spread = spread_split(call.plan);
    call.args = bind(args);
    return Prepared::of(call, sums_bytes(call.plan) + call.winograd.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SubpixelWinogradCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    const ConvShape& conv = call.plan.winograd.source;
    ConvOperands sums;
    sums.src = a.src;
    sums.src_batch = a.src_batch;
    sums.src_channel = a.src_channel;
    sums.weight = weight_.as<float>();
    sums.dst = reinterpret_cast<float*>(scratch);
    sums.dst_channel = conv.oh * conv.ow * call.plan.lanes;
    sums.dst_batch = conv.oc * conv.oh * conv.ow;
    sums.lo = -std::numeric_limits<float>::infinity();
    sums.hi = std::numeric_limits<float>::infinity();
    WinogradMember members[TaskSplit::kMaxWorkspaces];
    for (int64_t i = 0; i < call.winograd.workspaces; ++i) {
      members[i].workspace =
          reinterpret_cast<float*>(scratch + sums_bytes(call.plan) + i * call.winograd.workspace_stride());
    }
    run_tasks(team, call.winograd, [&](int64_t begin, int64_t end, int workspace) {
      run_winograd(call.plan.winograd, kernels_.transforms, kernels_.tiles, sums, begin, end, members[workspace]);
    });
    run_tasks(team, call.spread,
              [&](int64_t begin, int64_t end, int) { spread_residues(call.plan, lines_, sums.dst, a, begin, end); });
  }

 private:
  SubpixelWinogradPlan plan_of(const Im2colConvShape& shape) const {
    return plan_subpixel_winograd(shape, schedule_, kernels_.tiles.lanes);
  }

  WinogradSchedule schedule_;
  WinogradTiles kernels_;
  const TransposedDepthwiseKernels& lines_;
  int threads_;
};

class SubpixelWinogradRoutine final : public RoutineOf<SubpixelWinogradRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/subpixel_winograd"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape conv = subpixel_conv(problem.hint_panel_shape(), target.lanes());
    std::vector<Candidate> all;
    for (const WinogradChoice& choice : winograd_choices(conv, WinogradTiles::of(target), target)) {
      all.push_back(candidate_of(workload, problem, choice.schedule, target));
    }
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    const ConvShape conv = subpixel_conv(read_conv(workload, nullptr)->hint_panel_shape(), target.lanes());
    return winograd_space(conv, WinogradTiles::of(target), target);
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, *read_conv(workload, nullptr), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const SubpixelWinogradPlan plan = plan_of(*read_conv(*candidate.workload, nullptr), candidate.schedule, target);
    LoopNest l = winograd_loops(plan.winograd, conv_bytes(plan), WinogradTiles::of(target).tiles);
    l.moved += static_cast<double>(plan.sums_size);
    return l;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<SubpixelWinogradStep>(
        problem, ConvArguments::of(candidate, problem, target), winograd_schedule(candidate.schedule),
        WinogradTiles::of(target), NEO_PICK_TIER(target.isa, transposed_depthwise_kernels)(), target.threads, packed);
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"ConvTranspose"}; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (const char* why = reject_subpixel_winograd(problem.unit_panel_shape(), target.lanes())) return why;
    return std::nullopt;
  }

 private:
  static SubpixelWinogradPlan plan_of(const ConvProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_subpixel_winograd(problem.hint_panel_shape(), winograd_schedule(schedule), target.lanes());
  }

  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const Schedule& schedule,
                                const Target& target) {
    const SubpixelWinogradPlan plan = plan_of(problem, schedule, target);
    const int64_t bias = problem.bias ? plan.vectors * plan.lanes : 0;
    Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
    c.schedule = schedule;
    c.cost.time_us =
        estimate_us(plan, WinogradTiles::of(target), target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.error = winograd_error(plan.winograd.shape, plan.winograd.schedule.tile);
    c.cost.packed_bytes = (winograd_weight_size(plan.winograd) + bias) * 4;
    c.cost.workspace_bytes = sums_bytes(plan) + winograd_split(plan.winograd, target.threads).scratch_bytes();
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(subpixel_winograd, SubpixelWinogradRoutine)

}  // namespace neo
