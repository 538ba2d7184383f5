#include <algorithm>
#include <cmath>

#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/strassen.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/tile_use.h"
#include "routines/patterns/compile_program.h"
#include "routines/space.h"

namespace neo {
namespace {

// What a schedule says:
//   tasks   as many parts of the images, where they have them; the runs of these are shared
//   levels  of the algorithm; where it is not there: one
//   groups  of output channels, each with tasks of its own: these make more sums of pixels, and read fewer weights
struct StrassenForm {
  StrassenPlan plan;  // of one group
  int64_t tasks = 1;
  int64_t groups = 1;

  static int64_t levels_of(const Schedule& schedule) { return std::max<int64_t>(1, value_of(schedule, "levels")); }
  static int64_t groups_of(const Schedule& schedule) { return std::max<int64_t>(1, value_of(schedule, "groups")); }

  static bool takes(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target) {
    const int64_t groups = groups_of(schedule);
    return oc % groups == 0 &&
           !reject_strassen(ic, oc / groups, target.lanes(), strassen_kernels_of(target.isa), levels_of(schedule));
  }

  static StrassenForm of(int64_t ic, int64_t oc, const Schedule& schedule, const Target& target) {
    StrassenForm form;
    form.tasks = schedule.at("tasks");
    form.groups = groups_of(schedule);
    form.plan =
        plan_strassen(ic, oc / form.groups, target.lanes(), strassen_kernels_of(target.isa), levels_of(schedule));
    return form;
  }

  int64_t vectors() const { return plan.parts() * plan.vectors; }  // of output channels of a group
  int64_t weight_size() const { return groups * strassen_weight_size(plan); }

  // Parts of an image's pixels, none of less than a run of a few register blocks.
  int64_t parts(const ConvShape& s) const {
    const int64_t pixels = s.oh * s.ow;
    if (pixels == 0 || s.n == 0) return 0;
    const int64_t most =
        std::min(ceil_div(pixels, plan.run), std::max<int64_t>(1, pixels / fewest_strassen_pixels(plan)));
    return std::clamp<int64_t>(ceil_div(tasks, s.n * groups), 1, most);
  }

  // Of each part.
  int64_t runs(const ConvShape& s) const {
    return strassen_runs(plan, ceil_div(s.oh * s.ow, std::max<int64_t>(1, parts(s))));
  }
};

bool is_strided(const ConvShape& s) {
  return s.stride_h != 1 || s.stride_w != 1;
}

// Floats from block to block of the pixels of a run that are collected; an odd number of vectors.
int64_t collected_stride(const ConvShape& s, const StrassenPlan& plan) {
  return is_strided(s) ? (std::min(strassen_run_pixels(plan), s.oh * s.ow) | 1) * plan.lanes : 0;
}

int64_t workspace_size(const ConvShape& s, const StrassenPlan& plan) {
  return plan.workspace_size + plan.input_blocks() * collected_stride(s, plan);
}

struct StrassenCall {
  ConvShape shape;
  int64_t parts = 0, runs = 0;  // of an image, of a part: the tasks
  ConvOperands args;
  TaskSplit split;
};

class StrassenStep final : public KernelStep {
 public:
  StrassenStep(const ConvProblem& problem, const Candidate& candidate, const Target& target, PackedStore& packed)
      : geometry_(problem.geometry),
        arguments_(ConvArguments::of(candidate, problem, target)),
        kernels_(strassen_kernels_of(target.isa)),
        form_(StrassenForm::of(problem.geometry.ic, problem.geometry.oc, candidate.schedule, target)),
        plan_(form_.plan),
        threads_(target.threads) {
    weight_ = packed.floats(form_.weight_size(), {problem.weight}, [&](float* to) {
      const auto* weight = problem.weight->constant->as<float>();
      for (int64_t i = 0; i < form_.groups; ++i) {
        pack_strassen_weight(plan_, weight, to);
        weight += form_.vectors() * plan_.lanes * geometry_.ic;
        to += strassen_weight_size(plan_);
      }
    });
    bias_ = padded_channels(problem.bias, plan_.lanes, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg &x = args[static_cast<size_t>(arguments_.x)], &y = args[static_cast<size_t>(arguments_.y)];
    StrassenCall call;
    call.shape = geometry_.shape(x.dims, y.dims);
    call.parts = form_.parts(call.shape);
    call.runs = form_.runs(call.shape);
    call.split = split_of(call.shape, form_, threads_);
    call.args = arguments_.bind(args);
    call.args.weight = weight_.as<float>();
    if (bias_.defined()) call.args.bias = bias_.as<float>();
    return Prepared::of(call, call.split.scratch_bytes());
  }

  bool fetches_later() const override { return true; }
  void fetch_later(std::byte* prepared, std::span<const float> constants) const override {
    reinterpret_cast<StrassenCall*>(prepared)->args.later = {constants.data(), std::ssize(constants)};
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const StrassenCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      for (int64_t task = begin; task < end; ++task) run_task(call, a, task, workspace);
    });
  }

  static TaskSplit split_of(const ConvShape& shape, const StrassenForm& form, int threads) {
    return TaskSplit::of(form.groups * shape.n * form.parts(shape) * form.runs(shape), shape.flops(),
                         workspace_size(shape, form.plan) * 4, threads);
  }

 private:
  void run_task(const StrassenCall& call, const ConvOperands& args, int64_t task, float* workspace) const {
    const int64_t run = task % call.runs, of_all = task / call.runs;
    const int64_t image = of_all / call.parts % call.shape.n, group = of_all / call.parts / call.shape.n;
    const int64_t vector = group * form_.vectors();
    const IndexRange part = even_part(call.shape.oh * call.shape.ow, call.parts, of_all % call.parts);
    ConvOperands a = with_later(args, form_.groups * call.shape.n * call.parts, of_all);
    a.src += image * args.src_batch;
    a.weight += group * strassen_weight_size(plan_);
    if (a.bias) a.bias += vector * plan_.lanes;
    a.dst += image * args.dst_batch + vector * args.dst_channel + part.begin * plan_.lanes;
    if (a.residual) {
      a.residual += image * args.residual_batch + vector * args.residual_channel + part.begin * plan_.lanes;
    }
    if (is_strided(call.shape)) {
      run_strided(call, a, part, run, workspace);
    } else {
      a.src += part.begin * plan_.lanes;
      run_strassen_run(plan_, kernels_, a, part.size(), call.runs, run, workspace);
    }
  }

  // Pixels that do not lie one behind the other are collected, as many as a run has.
  void run_strided(const StrassenCall& call, const ConvOperands& args, IndexRange pixels, int64_t i,
                   float* workspace) const {
    const ConvShape& s = call.shape;
    float* const collected = workspace + plan_.workspace_size;
    ConvOperands a = args;
    a.src = collected;
    a.src_channel = collected_stride(s, plan_);
    const IndexRange run = strassen_run(plan_, pixels.size(), call.runs, i);
    collect(s, args, {pixels.begin + run.begin, pixels.begin + run.end}, a.src_channel, collected);
    a.dst += run.begin * plan_.lanes;
    if (a.residual) a.residual += run.begin * plan_.lanes;
    run_strassen(plan_, kernels_, with_later(a, call.runs, i), run.size(), workspace);
  }

  void collect(const ConvShape& s, const ConvOperands& args, IndexRange pixels, int64_t block, float* to) const {
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
      kernels_.collect(line);
    }
  }

  ConvGeometry geometry_;
  ConvArguments arguments_;
  const StrassenKernels& kernels_;
  StrassenForm form_;
  const StrassenPlan& plan_;
  int threads_;
  Tensor weight_, bias_;
};

double estimate_us(const ConvProblem& problem, const ConvShape& s, const StrassenForm& form, const TaskSplit& split,
                   const Target& target) {
  const StrassenPlan& plan = form.plan;
  // Images that no cache keeps are read and written in pieces of a run, which computing does not hide; and what a layer
  // of its own takes at its start, before its data are near.
  constexpr double kCacheBytes = 12e6, kStartUs = 8, kInNetwork = 1.06;
  // Of the time that estimates count for weights from memory: tiles fetch those of the tiles behind them.
  constexpr double kWaited = 0.75;
  // Cycles of a vector of pixels that is collected.
  constexpr double kCollectCycles = 8;
  const auto pixels = static_cast<double>(s.n * s.oh * s.ow), lanes = static_cast<double>(plan.lanes);
  const double collected = is_strided(s) ? kCollectCycles * static_cast<double>(plan.input_blocks()) * pixels : 0;
  const double part = pixels / static_cast<double>(std::max<int64_t>(s.n * form.parts(s), 1));
  const double work =
      static_cast<double>(form.groups) * (strassen_work(plan, pixels, part, target) + collected * 2 * lanes);
  const double bytes = problem.traffic_bytes(plan.lanes, plan.lanes);
  const double pieces_us = std::max(bytes - kCacheBytes, 0.0) / (target.memory_gbps * 1e3);
  const double weights = static_cast<double>(form.weight_size()) * 4;
  // Of a member, which reads the weights of a group once for every run; estimates count one reading by the whole team.
  const auto groups = static_cast<double>(form.groups), team = split.serial ? 1.0 : static_cast<double>(target.threads);
  const double parts = std::max(1.0, static_cast<double>(s.n * form.parts(s)) * groups / team);
  const double runs = parts * static_cast<double>(strassen_runs(plan, static_cast<int64_t>(part)));
  const double readings = runs - groups / team + 1 / team;
  // Of groups, members read what others have written, as parts of pixels mostly do not.
  constexpr double kOthers = 0.5, kBetweenCores = 20;  // GB/s
  const double others_us = form.groups > 1 && !split.serial ? kOthers * bytes / (kBetweenCores * 1e3) : 0;
  return kStartUs + pieces_us + others_us + far_us(weights / groups, readings, target) +
         kInNetwork * tasks_us(work, 1, split.serial ? 1 : split.tasks, bytes, target, kWaited * weights);
}

// A 1x1 convolution by seven products of quarters of its matrices: Strassen 1969.
class StrassenRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/strassen"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape shape = problem.geometry.shape(problem.x_hint(), problem.y_hint());
    std::vector<Schedule> schedules;
    const auto offer = [&](Schedule schedule, int64_t levels) {
      if (levels > 1) schedule["levels"] = levels;
      if (StrassenForm::takes(shape.ic, shape.oc, schedule, target)) schedules.push_back(std::move(schedule));
    };
    for (int64_t levels = 1; levels <= kStrassenLevels; ++levels) {
      const int64_t team = target.threads;
      for (const int64_t tasks : {team, 4 * team}) offer({{"tasks", tasks}}, levels);
      if (team > 1) offer({{"tasks", team}, {"groups", 2}}, levels);
      if (team > 2) offer({{"tasks", team}, {"groups", team}}, levels);
    }
    std::vector<Candidate> all;
    for (const Schedule& schedule : schedules) {
      const StrassenForm form = StrassenForm::of(shape.ic, shape.oc, schedule, target);
      const TaskSplit split = StrassenStep::split_of(shape, form, target.threads);
      Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
      c.schedule = schedule;
      c.cost.time_us =
          estimate_us(problem, shape, form, split, target) + activation_us(problem.epilogue, *problem.y, target);
      c.cost.error = strassen_error(form.plan.levels);
      c.cost.packed_bytes = (form.weight_size() + (problem.bias ? shape.oc : 0)) * 4;
      c.cost.workspace_bytes = split.scratch_bytes();
      all.push_back(std::move(c));
    }
    return all;
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
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
