#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/large_kernel/large_kernel.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

namespace neo {
namespace {

struct LargeKernelCall {
  LargeKernelPlan plan;
  ConvOperands args;
  TaskSplit split;
  int64_t sums_bytes = 0;  // of all tasks, before their workspaces

  LargeKernelCall(const Im2colConvShape& shape, int64_t lanes)
      : plan(plan_large_kernel(shape, lanes)),
        split(TaskSplit::of(plan.tasks, shape.flops(), plan.workspace_size * 4)),
        sums_bytes(round_up(plan.sums_size() * 4, 64)) {}

  int64_t scratch_bytes() const { return sums_bytes + split.scratch_bytes(); }
};

class LargeKernelStep final : public KernelStep {
 public:
  LargeKernelStep(const ConvProblem& problem, const ConvArguments& arguments, const TileKernels& kernels,
                  const PackKernels& pack_kernels)
      : geometry_(problem.geometry), arguments_(arguments), kernels_(kernels), pack_kernels_(pack_kernels) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Dims& x = args[static_cast<size_t>(arguments_.x)].dims;
    const Dims& y = args[static_cast<size_t>(arguments_.y)].dims;
    LargeKernelCall call(arguments_.geometry(geometry_, args).panel_shape(x, y), kernels_.lanes);
    call.args = arguments_.bind(args);
    return Prepared::of(call, call.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const LargeKernelCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    auto* sums = reinterpret_cast<float*>(scratch);
    run_tasks_with<float>(team, call.split, scratch + call.sums_bytes,
                          [&](int64_t begin, int64_t end, float* workspace) {
                            sum_large_kernel(call.plan, kernels_, pack_kernels_, a, begin, end, sums, workspace);
                          });
    const int64_t channels = call.plan.shape.oc;
    if (call.split.serial) return finish_large_kernel(call.plan, a, sums, {0, channels});
    team.parallel_for(channels, [&](int64_t begin, int64_t end, int) {
      finish_large_kernel(call.plan, a, sums, {begin, end});
    });
  }

 private:
  ConvGeometry geometry_;
  ConvArguments arguments_;
  const TileKernels& kernels_;
  const PackKernels& pack_kernels_;
};

class LargeKernelRoutine final : public RoutineOf<LargeKernelRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/large_kernel"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr, true);
    const Im2colConvShape shape = problem.geometry.panel_shape(problem.x_hint(), problem.y_hint());
    const LargeKernelCall call(shape, target.lanes());
    Candidate c = conv_candidate(workload, problem, 1, 1);
    for (const Value* v : {problem.weight, problem.bias}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    const double weights = static_cast<double>(shape.oc * shape.group_ic() * shape.taps()) * 4;
    const double bytes = problem.traffic_bytes(1, 1) + weights;
    c.cost.time_us = unfitted_us(
        {cycles_us(cycles(call.plan), target), bytes, 0, static_cast<double>(call.split.serial ? 1 : call.plan.tasks)},
        target);
    c.cost.workspace_bytes = call.scratch_bytes();
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr, true);
    return std::make_unique<LargeKernelStep>(problem, ConvArguments::of(candidate, problem, target),
                                             tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, pack_kernels)());
  }

 protected:
  bool takes_open() const override { return true; }

  const char* rejects_activation(const ConvProblem&, const Target&) const override {
    return "it has no activation but a clamp";
  }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    constexpr int64_t kMaxPixels = 256;
    if (problem.epilogue.residual) return "a residual is added";
    int64_t pixels = 1;
    for (int axis = 2; axis < problem.rank(); ++axis) {
      const Dim &size = problem.y->shape()[axis], &taps = problem.weight->shape()[axis];
      if (!taps.is_constant() || taps.value() < 1) return "the size of the kernel is not known";
      if (!size.is_constant()) return "the size of the output is not known";
      pixels *= size.value();
      if (pixels > kMaxPixels) return "the output has many pixels";
    }
    if (pixels > problem.geometry.taps()) return "the output is larger than the kernel";
    return std::nullopt;
  }

 private:
  // Cycles on one core: beginning a tap, multiplying, copying the columns, transposing the lines.
  static double cycles(const LargeKernelPlan& plan) {
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    // The last two are for each float.
    constexpr double kStart = 40, kFma = 1.5, kCopy = 2, kTranspose = 0.65, kGather = 2.6;
    const Im2colConvShape& s = plan.shape;
    const double products = real(s.group_ic() * s.taps() * s.groups * plan.image_blocks);
    const double vectors = real(plan.row_width) / real(plan.lanes);
    const double copied = plan.reads_lines() ? 0 : kCopy * vectors;
    const double part = real(plan.y_block * plan.x_block);
    const double lines = real(plan.lines(plan.y_block) * plan.line_width(plan.x_block) * plan.image_block * s.out[0]);
    const double moved = lines / part * (plan.image_block % plan.lanes == 0 ? kTranspose : kGather);
    // A panel of columns begins anew for each part of the kernel.
    constexpr double kPanelStart = 200;
    const int64_t at_once =
        s.stride[2] == 1 ? kTileVectors : std::min<int64_t>(kTileVectors, ceil_div(plan.image_block, plan.lanes));
    const double panels =
        real(plan.parts() * s.groups * plan.channel_blocks * plan.image_blocks) * vectors / real(at_once);
    return panels * kPanelStart +
           products * (kStart + real(s.group_oc()) * vectors * kFma + real(plan.channel_blocks) * (copied + moved));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(large_kernel, LargeKernelRoutine)

}  // namespace neo
