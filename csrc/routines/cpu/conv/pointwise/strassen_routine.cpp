#include <algorithm>

#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/strassen_form.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"
#include "routines/space.h"

namespace neo {
namespace {

bool is_strided(const ConvShape& s) {
  return s.stride_h != 1 || s.stride_w != 1;
}

StrassenWork work_of(const ConvShape& s) {
  return {s.n, s.oh * s.ow};
}

// Floats of a task. Strided pixels are copied, as many as a run has.
int64_t workspace_size(const ConvShape& s, const StrassenForm& form) {
  const int64_t copied = is_strided(s) ? form.plan.input_blocks() * form.copied_stride(work_of(s)) : 0;
  return form.plan.workspace_size + copied;
}

// Whether a call may have few pixels. Then the weights are packed for the direct convolution too.
bool has_open_pixels(const ConvProblem& problem) {
  const Shape& y = problem.y->shape();
  for (int i = 2; i < y.rank(); ++i) {
    if (!y[i].is_constant()) return true;
  }
  return false;
}

// The convolution of few pixels.
DirectPlan plan_few_pixels(const ConvShape& shape, const TileKernels& kernels) {
  const int64_t vectors = std::min<int64_t>(kTileVectors, shape.oc / kernels.lanes);
  const DirectSchedule schedule{
      .ic_bn = kernels.lanes, .oc_bn = kernels.lanes, .reg_n = kernels.max_rows[vectors], .oc_vectors = vectors};
  return plan_direct(shape, schedule, kernels);
}

struct StrassenCall {
  ConvShape shape;
  ConvOperands args;
  TaskSplit split;
  bool has_few_pixels = false;
  DirectPlan few_pixels;
};

class StrassenStep final : public ConvStep {
 public:
  StrassenStep(const ConvProblem& problem, const Candidate& candidate, const Target& target, PackedStore& packed)
      : ConvStep(problem, ConvArguments::of(candidate, problem, target)),
        kernels_(strassen_kernels_of(target.isa)),
        tiles_(tile_kernels_of(target.isa)),
        form_(StrassenForm::of(problem.geometry.ic, problem.geometry.oc, candidate.schedule, target)),
        plan_(form_.plan),
        threads_(target.threads) {
    weight_ = packed.floats(form_.weight_size(), {problem.weight},
                            [&](float* to) { form_.pack(problem.weight->constant->as<float>(), to); });
    bias_ = padded_channels(problem.bias, plan_.lanes, packed);
    if (!has_open_pixels(problem)) return;
    const DirectPlan plan = plan_few_pixels(problem.unit_shape(), tiles_);
    few_pixels_weight_ = packed.floats(direct_weight_size(plan), {problem.weight}, [&](float* to) {
      pack_direct_weight(plan, problem.weight->constant->as<float>(), to);
    });
  }

  Prepared prepare(std::span<const Arg> args) const override {
    StrassenCall call;
    call.shape = shape_at(args);
    call.args = bind(args);
    call.has_few_pixels = few_pixels_weight_.defined() && work_of(call.shape).pixels < kMinStrassenPixels;
    if (call.has_few_pixels) {
      call.few_pixels = plan_few_pixels(call.shape, tiles_);
      call.args.weight = few_pixels_weight_.as<float>();
      call.split = TaskSplit::of(call.few_pixels.tasks, direct_work(call.shape));
    } else {
      call.split = split_of(call.shape, form_, threads_);
    }
    return Prepared::of(call, call.split.scratch_bytes());
  }

  bool prefetches_later() const override { return true; }
  void prefetch_later(std::byte* prepared, std::span<const float> constants) const override {
    reinterpret_cast<StrassenCall*>(prepared)->args.later = {constants.data(), std::ssize(constants)};
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const StrassenCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      if (call.has_few_pixels) return run_direct(call.few_pixels, tiles_, a, begin, end);
      for (int64_t i = begin; i < end; ++i)
        run_task(call.shape, a, StrassenTask::of(form_, work_of(call.shape), i), workspace);
    });
  }

  static TaskSplit split_of(const ConvShape& shape, const StrassenForm& form, int threads) {
    return form.split(work_of(shape), shape.flops(), workspace_size(shape, form), threads);
  }

 private:
  void run_task(const ConvShape& shape, const ConvOperands& args, const StrassenTask& task, float* workspace) const {
    const int64_t vector = task.group * form_.vectors();
    ConvOperands a = with_later(args, task.all, task.index);
    a.src += task.image * args.src_batch;
    a.weight += task.group * strassen_weight_size(plan_);
    if (a.bias) a.bias += vector * plan_.lanes;
    const int64_t pixel = task.pixels.begin * plan_.lanes;
    a.dst += task.image * args.dst_batch + vector * args.dst_channel + pixel;
    if (a.residual) a.residual += task.image * args.residual_batch + vector * args.residual_channel + pixel;
    if (is_strided(shape)) return run_strided(shape, a, task, workspace);
    a.src += pixel;
    run_strassen_run(plan_, kernels_, a, task.pixels.size(), task.runs, task.run, workspace);
  }

  // Pixels that do not lie one behind the other are copied, as many as a run has.
  void run_strided(const ConvShape& s, const ConvOperands& args, const StrassenTask& task, float* workspace) const {
    float* const copied = workspace + plan_.workspace_size;
    const IndexRange pixels = task.pixels, run = strassen_run(plan_, pixels.size(), task.runs, task.run);
    ConvOperands a = args;
    a.src = copied;
    a.src_channel = form_.copied_stride(work_of(s));
    copy(s, args, {pixels.begin + run.begin, pixels.begin + run.end}, a.src_channel, copied);
    a.dst += run.begin * plan_.lanes;
    if (a.residual) a.residual += run.begin * plan_.lanes;
    run_strassen(plan_, kernels_, with_later(a, task.runs, task.run), run.size(), workspace);
  }

  void copy(const ConvShape& s, const ConvOperands& args, IndexRange pixels, int64_t block, float* to) const {
    StrassenPixels line;
    line.src_block = args.src_channel;
    line.step = s.stride_w * plan_.lanes;
    line.dst_block = block;
    line.blocks = plan_.input_blocks();
    for (int64_t i = pixels.begin; i < pixels.end; i += line.count) {
      const int64_t row = i / s.ow, column = i % s.ow;
      line.count = std::min(s.ow - column, pixels.end - i);
      line.src = args.src + (row * s.stride_h * s.iw + column * s.stride_w) * plan_.lanes;
      line.dst = to + (i - pixels.begin) * plan_.lanes;
      kernels_.copy(line);
    }
  }

  const StrassenKernels& kernels_;
  const TileKernels& tiles_;
  StrassenForm form_;
  const StrassenPlan& plan_;
  int threads_;
  Tensor few_pixels_weight_;  // undefined where no call has few pixels
};

// A 1x1 convolution by seven products of quarters of its matrices: Strassen 1969.
class StrassenRoutine final : public RoutineOf<StrassenRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/strassen"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape shape = problem.hint_shape();
    std::vector<Candidate> all;
    for (const Schedule& schedule : StrassenForm::schedules(shape.ic, shape.oc, target)) {
      const StrassenForm form = StrassenForm::of(shape.ic, shape.oc, schedule, target);
      const TaskSplit split = StrassenStep::split_of(shape, form, target.threads);
      Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
      c.schedule = schedule;
      StrassenTraffic traffic;
      traffic.bytes = problem.traffic_bytes(target.lanes(), target.lanes());
      if (is_strided(shape))
        traffic.copied = static_cast<double>(form.plan.input_blocks() * shape.n * shape.oh * shape.ow);
      c.cost.time_us = strassen_us(form, work_of(shape), traffic, split, target) +
                       activation_us(problem.epilogue, *problem.y, target);
      c.cost.error = strassen_error(form.plan.levels);
      c.cost.packed_bytes = (form.weight_size() + (problem.bias ? shape.oc : 0)) * 4;
      if (has_open_pixels(problem)) c.cost.packed_bytes += shape.ic * shape.oc * 4;
      c.cost.workspace_bytes = split.scratch_bytes();
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<StrassenStep>(*read_conv(*candidate.workload, nullptr), candidate, target, packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const override {
    const ConvGeometry& g = problem.geometry;
    if (g.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (!g.is_sampling_pointwise()) return "not a 1x1 convolution of one group without padding";
    if (const char* why = reject_strassen(g.ic, g.oc, target.lanes(), strassen_kernels_of(target.isa))) return why;
    return std::nullopt;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(strassen, StrassenRoutine)

}  // namespace neo
