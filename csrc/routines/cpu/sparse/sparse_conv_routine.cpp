#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/sparse/sparse_weights.h"
#include "routines/cpu/tier.h"

namespace neo {
namespace {

constexpr int64_t kMaxSparseTaps = 128;

// The results of a channel in one line: those of a row, then as many that are nobody's as its inputs lie beyond it to
// the right. Every place of the kernel then reads neighbouring inputs of a line, which each row of the kernel has its
// own of.
struct SparsePlan {
  ConvShape shape;
  int64_t step = 0;                    // results of the line from one row to the next
  int64_t count = 0, runs = 0;         // of the line; runs that tasks are made of
  int64_t parts = 0;                   // of the groups of output channels: tasks of a run
  int64_t width = 0;                   // most results of a run, in whole vectors
  int64_t lines = 0, line = 0;         // gathered lines of an input channel; floats of one
  int64_t table_bytes = 0, store = 0;  // where each source begins; floats of the results where rows are apart
  TaskSplit split;

  static SparsePlan of(const ConvShape& s, const SparseForm& form, int64_t lanes) {
    constexpr int64_t kMaxParts = 4;  // each gathers anew
    SparsePlan plan;
    plan.shape = s;
    const int64_t beyond = (s.kw - 1) * s.dilation_w / s.stride_w;
    plan.step = s.ow + beyond;
    plan.count = s.oh == 0 || s.ow == 0 ? 0 : (s.oh - 1) * plan.step + s.ow;
    const int64_t vectors = ceil_div(plan.count, lanes);
    plan.runs = ceil_div(vectors, kSparseVectors);
    plan.width = round_up(ceil_div(vectors, std::max<int64_t>(1, plan.runs)), 2) * lanes;
    plan.lines = s.kh * phases(s);
    plan.line = round_up(plan.width + beyond, lanes);
    plan.store = s.oh <= 1 || plan.step == s.ow ? 0 : plan.width;
    plan.table_bytes = round_up(s.ic * s.taps() * 4, 64);
    const int64_t work = 2 * form.weights() * plan.count * s.n;
    const int64_t wanted = ceil_div(worthwhile_tasks(work), std::max<int64_t>(1, plan.runs * s.n));
    plan.parts = std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(form.groups(), 1, kMaxParts));
    plan.split = TaskSplit::of(s.n * plan.runs * plan.parts, work,
                               (s.ic * plan.lines * plan.line + plan.store * form.group()) * 4);
    return plan;
  }

  // Whether results lie as their inputs do, one for one.
  static bool is_dense(const ConvShape& s) {
    return s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 && s.ih == s.oh &&
           s.iw == s.ow;
  }
  // Lines of inputs that are a stride apart, beginning at different columns.
  static int64_t phases(const ConvShape& s) { return std::min(s.stride_w, s.kw); }
  // That the inputs of a column of the kernel are in.
  int64_t phase(int64_t j) const { return shape.kw <= shape.stride_w ? j : j * shape.dilation_w % shape.stride_w; }
  // The first input column of a phase, counted from the padding's first one.
  int64_t phase_column(int64_t phase) const {
    return shape.kw <= shape.stride_w ? phase * shape.dilation_w % shape.stride_w : phase;
  }

  void fill_table(int32_t* sources) const {
    for (int64_t c = 0; c < shape.ic; ++c) {
      for (int64_t i = 0; i < shape.kh; ++i) {
        for (int64_t j = 0; j < shape.kw; ++j) {
          const int64_t at = ((c * shape.kh + i) * phases(shape) + phase(j)) * line;
          *sources++ = static_cast<int32_t>(at + j * shape.dilation_w / shape.stride_w);
        }
      }
    }
  }

  // Calls visit(row, column, count, at) for the results [first, first + count) of the line, row by row; `at` counts
  // from `first` on.
  template <class Visit>
  void for_rows(int64_t first, int64_t many, Visit&& visit) const {
    for (int64_t at = 0; at < many;) {
      const int64_t row = (first + at) / step, column = (first + at) % step, next = std::min(step - column, many - at);
      visit(row, column, next, at);
      at += next;
    }
  }
};

// Inputs a stride apart of one row: columns [column, column + count) from the first of their phase on; zeros outside.
void gather_row(const float* row, int64_t width, int64_t first, int64_t stride, int64_t column, int64_t count,
                float* to) {
  const int64_t left = first + column * stride;
  const int64_t begin = std::clamp<int64_t>(left >= 0 ? 0 : ceil_div(-left, stride), 0, count);
  const int64_t end = std::clamp<int64_t>(width > left ? ceil_div(width - left, stride) : 0, begin, count);
  std::fill(to, to + begin, 0.0f);
  if (stride == 1) {
    std::memcpy(to + begin, row + left + begin, static_cast<size_t>(end - begin) * sizeof(float));
  } else {
    for (int64_t i = begin; i < end; ++i) to[i] = row[left + i * stride];
  }
  std::fill(to + end, to + count, 0.0f);
}

SparseMatrix sparse_matrix(const ConvProblem& problem) {
  const int64_t sources = problem.geometry.ic * problem.geometry.taps();
  return {&*problem.weight->constant, problem.geometry.oc, sources, sources, 1};
}

struct SparseCall {
  SparsePlan plan;
  ConvOperands args;
  int64_t table_at = 0;  // in the scratch memory
};

class SparseConvStep final : public ConvStep {
 public:
  SparseConvStep(const ConvProblem& problem, const Candidate& candidate, const Target& target, PackedStore& packed)
      : ConvStep(problem, ConvArguments::of(candidate, problem, target)),
        form_(SparseForm::of(sparse_matrix(problem), candidate.schedule)),
        lanes_(target.lanes()),
        kernels_(NEO_PICK_TIER(target.isa, sparse_kernels)()) {
    weights_ = form_.pack(problem.weight, sparse_matrix(problem), packed);
    if (problem.bias) bias_ = packed.constant(*problem.bias);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    SparseCall call;
    call.plan = SparsePlan::of(shape_at(args), form_, lanes_);
    call.args = bind(args);
    call.table_at = call.plan.split.scratch_bytes();
    return Prepared::of(call, call.table_at + call.plan.table_bytes);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SparseCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    auto* sources = reinterpret_cast<int32_t*>(scratch + call.table_at);
    call.plan.fill_table(sources);
    run_tasks_with<float>(team, call.plan.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      int64_t gathered = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t place = task / call.plan.parts;
        run_task(call.plan, a, sources, task, place != gathered, workspace);
        gathered = place;
      }
    });
  }

 private:
  void gather(const SparsePlan& plan, const ConvOperands& a, int64_t image, int64_t first, int64_t count,
              float* to) const {
    const ConvShape& s = plan.shape;
    const int64_t phases = SparsePlan::phases(s);
    for (int64_t c = 0; c < s.ic; ++c) {
      const float* from = a.src + image * a.src_batch + c * a.src_channel;
      if (SparsePlan::is_dense(s)) {
        std::memcpy(to, from + first, static_cast<size_t>(count) * sizeof(float));
        to += plan.line;
        continue;
      }
      const int64_t needed = count + (s.kw - 1) * s.dilation_w / s.stride_w;
      for (int64_t i = 0; i < s.kh; ++i) {
        for (int64_t phase = 0; phase < phases; ++phase, to += plan.line) {
          plan.for_rows(first, needed, [&](int64_t row, int64_t column, int64_t columns, int64_t at) {
            const int64_t ih = row * s.stride_h - s.pad_top + i * s.dilation_h;
            const bool is_inside = ih >= 0 && ih < s.ih;
            gather_row(is_inside ? from + ih * s.iw : from, is_inside ? s.iw : 0, plan.phase_column(phase) - s.pad_left,
                       s.stride_w, column, columns, to + at);
          });
        }
      }
    }
  }

  void run_task(const SparsePlan& plan, const ConvOperands& a, const int32_t* sources, int64_t task, bool gathers,
                float* workspace) const {
    const ConvShape& s = plan.shape;
    const IndexRange groups = even_part(form_.groups(), plan.parts, task % plan.parts);
    const int64_t image = task / plan.parts / plan.runs;
    const IndexRange vectors = even_part(ceil_div(plan.count, lanes_), plan.runs, task / plan.parts % plan.runs);
    const int64_t first = vectors.begin * lanes_;
    SparseRun run;
    run.src = workspace;
    run.sources = sources;
    run.count = std::min(plan.count, vectors.end * lanes_) - first;
    if (gathers) gather(plan, a, image, first, run.count, workspace);
    float* const line = workspace + s.ic * plan.lines * plan.line;
    run.lo = a.lo;
    run.hi = a.hi;
    const auto by_rows = [&](auto* plane, float* results, const auto& move) {
      plan.for_rows(first, run.count, [&](int64_t row, int64_t column, int64_t columns, int64_t at) {
        const int64_t kept = std::min(columns, s.ow - column);
        if (kept > 0) move(plane + row * s.ow + column, results + at, static_cast<size_t>(kept) * sizeof(float));
      });
    };
    const bool is_apart = plan.store > 0;
    run.dst_step = is_apart ? plan.store : a.dst_channel;
    run.residual_step = is_apart ? plan.store : a.residual_channel;
    for (int64_t group = groups.begin; group < groups.end; ++group) {
      form_.set(weights_, group, run);
      const int64_t k = group * form_.group();
      if (bias_.defined()) run.bias = bias_.as<float>() + k;
      float* const dst = a.dst + image * a.dst_batch + k * a.dst_channel;
      const float* residual = a.residual ? a.residual + image * a.residual_batch + k * a.residual_channel : nullptr;
      run.dst = is_apart ? line : dst + first;
      if (residual) run.residual = is_apart ? line : residual + first;
      for (int64_t i = 0; i < run.outputs && residual && is_apart; ++i) {
        by_rows(residual + i * a.residual_channel, line + i * plan.store,
                [](const float* at, float* to, size_t size) { std::memcpy(to, at, size); });
      }
      kernels_.run(run);
      if (a.activation) a.activation(run.dst, run.outputs, run.dst_step, run.count);
      for (int64_t i = 0; i < run.outputs && is_apart; ++i) {
        by_rows(dst + i * a.dst_channel, line + i * plan.store,
                [](float* at, const float* from, size_t size) { std::memcpy(at, from, size); });
      }
    }
  }

  SparseForm form_;
  int64_t lanes_;
  const SparseKernels& kernels_;
  Tensor weights_;
};

// A convolution with many zeros among its weights, on plain images.
class SparseConvRoutine final : public RoutineOf<SparseConvRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/sparse_nchw"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    std::vector<Candidate> all;
    for (const Schedule& schedule : SparseForm::schedules(sparse_matrix(problem)))
      all.push_back(candidate_of(workload, target, schedule));
    return all;
  }

  Space space(const Workload& workload, const Target&) const override {
    return SparseForm::space(sparse_matrix(*read_conv(workload, nullptr)));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, target, schedule);
  }

  static Candidate candidate_of(const Workload& workload, const Target& target, const Schedule& schedule) {
    // Cycles of a vector and of a row's piece that are gathered, and of a result that is stored by rows.
    constexpr double kVector = 3.5, kPiece = 25, kStored = 0.5;
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape s = problem.hint_shape();
    const SparseForm form = SparseForm::of(sparse_matrix(problem), schedule);
    const SparsePlan plan = SparsePlan::of(s, form, target.lanes());
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    const double runs = real(std::max<int64_t>(1, plan.runs));
    const double width = real(ceil_div(plan.count, target.lanes())) / runs;
    const double lines = real(s.ic * plan.lines);
    const double pieces =
        SparsePlan::is_dense(s) ? 1 : 1 + width * real(target.lanes()) / real(std::max<int64_t>(1, plan.step));
    const double cycles =
        real(s.n) * runs *
        (sparse_cycles(form, {width, width * real(target.lanes()) * 4 * lines, s.kw == 1}) +
         (plan.store > 0 ? real(s.oc) * (pieces * kPiece + width * kStored * real(target.lanes())) : 0) +
         lines * real(plan.parts) *
             (width * kVector * (s.stride_w > 1 ? real(target.lanes()) / 2 : 1) + pieces * kPiece));
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(cycles, target);
    load.bytes = problem.traffic_bytes(1, 1);
    load.constant_bytes = real(form.size()) * 4;
    load.tasks = plan.split.serial ? 1 : real(plan.split.tasks);
    Candidate c = conv_candidate(workload, problem, 1, 1);
    c.schedule = schedule;
    c.cost.time_us = unfitted_us(load, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.error = kSparseError;
    c.cost.workspace_bytes = plan.split.scratch_bytes() + plan.table_bytes;
    c.cost.packed_bytes = (form.size() + (problem.bias ? s.oc : 0)) * 4;
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<SparseConvStep>(*read_conv(*candidate.workload, nullptr), candidate, target, packed);
  }

 protected:
  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (problem.geometry.groups != 1) return "more than one group";
    if (problem.geometry.taps() > kMaxSparseTaps) return "the kernel has more than 128 taps";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (const char* why = reject_sparse(sparse_matrix(problem))) return why;
    return std::nullopt;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(sparse_nchw, SparseConvRoutine)

}  // namespace neo
