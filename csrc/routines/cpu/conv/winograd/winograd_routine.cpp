#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/winograd/winograd.h"
#include "routines/cpu/conv/winograd/winograd_cost.h"
#include "routines/cpu/conv/winograd/winograd_fold.h"
#include "routines/cpu/epilogue.h"
#include "routines/families.h"
#include "routines/patterns/winograd_form.h"

namespace neo {
namespace {

struct WinogradCall {
  WinogradPlan plan;
  ConvOperands args;
  TaskSplit split;
};

class WinogradStep final : public ConvStep {
 public:
  WinogradStep(const ConvProblem& problem, const ConvArguments& arguments, const WinogradSchedule& schedule,
               const WinogradTiles& kernels, int threads, PackedStore& packed)
      : ConvStep(problem, arguments), schedule_(schedule), kernels_(kernels), threads_(threads) {
    // Packing does not depend on batch and space.
    const WinogradPlan plan = plan_winograd(problem.unit_shape(), schedule_, kernels_.tiles.lanes);
    weight_ = packed.floats(winograd_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_winograd_weight(plan, kernels_.transforms, problem.weight->constant->as<float>(), to);
    });
    bias_ = padded_channels(problem.bias, plan.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    WinogradCall call;
    call.plan = plan_winograd(shape_at(args), schedule_, kernels_.tiles.lanes);
    call.plan.pools = geometry_.pools;
    call.split = winograd_split(call.plan, threads_);
    call.args = bind(args);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const WinogradCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    WinogradMember members[TaskSplit::kMaxWorkspaces];
    for (int64_t i = 0; i < call.split.workspaces; ++i) {
      members[i].workspace = reinterpret_cast<float*>(scratch + i * call.split.workspace_stride());
    }
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int workspace) {
      run_winograd(call.plan, kernels_.transforms, kernels_.tiles, a, begin, end, members[workspace]);
    });
  }

 private:
  WinogradSchedule schedule_;
  WinogradTiles kernels_;
  int threads_;
};

// Fast convolution by small tiles: Lavin & Gray 2015.
class WinogradRoutine final : public RoutineOf<WinogradRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/winograd"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape shape = problem.hint_shape();
    const WinogradTiles kernels = WinogradTiles::of(target);
    std::vector<Candidate> all;
    for (const WinogradChoice& choice : winograd_choices(shape, kernels, target)) {
      all.push_back(candidate_of(workload, problem, choice.plan, choice.schedule, kernels.tiles, target));
    }
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    return winograd_space(read_conv(workload, nullptr)->hint_shape(), WinogradTiles::of(target), target);
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const WinogradPlan plan = plan_winograd(problem.hint_shape(), winograd_schedule(schedule), target.lanes());
    return candidate_of(workload, problem, plan, schedule, WinogradTiles::of(target).tiles, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    const WinogradPlan plan =
        plan_winograd(problem.hint_shape(), winograd_schedule(candidate.schedule), target.lanes());
    return winograd_loops(plan, problem.traffic_bytes(plan.source_lanes(), plan.lanes),
                          WinogradTiles::of(target).tiles);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    return std::make_unique<WinogradStep>(problem, ConvArguments::of(candidate, problem, target),
                                          winograd_schedule(candidate.schedule), WinogradTiles::of(target),
                                          target.threads, packed);
  }

 protected:
  bool pools() const override { return true; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    const ConvShape shape = problem.unit_shape();
    if (const char* why = reject_winograd(fold_shape(shape))) return why;
    if (problem.geometry.pools && !takes_pool(shape)) return "a pool, and the kernel is not 3x3 of stride 1";
    return std::nullopt;
  }

 private:
  static Candidate candidate_of(const Workload& workload, const ConvProblem& problem, const WinogradPlan& plan,
                                const Schedule& schedule, const TileKernels& kernels, const Target& target) {
    Candidate c = conv_candidate(workload, problem, plan.source_lanes(), plan.lanes);
    c.schedule = schedule;
    c.cost.time_us = winograd_us(plan, problem.traffic_bytes(plan.source_lanes(), plan.lanes), kernels, target) +
                     activation_us(problem.epilogue, *problem.y, target);
    c.cost.error = winograd_error(plan.shape, plan.schedule.tile) * (plan.fold > 1 ? kFoldError : 1);
    c.cost.packed_bytes = (winograd_weight_size(plan) + (problem.bias ? plan.oc_vectors * plan.lanes : 0)) * 4;
    c.cost.workspace_bytes = winograd_split(plan, target.threads).scratch_bytes();
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(winograd, WinogradRoutine)

}  // namespace neo
