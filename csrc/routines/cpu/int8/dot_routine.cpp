#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/dot_conv.h"
#include "routines/cpu/int8/int8_routine.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/int8_product.h"
#include "routines/space.h"

namespace neo {
namespace {

using Form = DotFill::Form;

const DotKernels& dot_kernels_of(int64_t codes, const Target& target) {
  return NEO_PICK_TIER(target.isa, dot_kernels)(codes == kByteCodes);
}

int64_t packed_words(const DotPlan& plan) {
  return PackedColumns::kArrays * plan.channels() + plan.weight_words();
}

double estimate_us(const Int8Problem& problem, const DotPlan& plan, const DotKernels& kernels, const Target& target) {
  // Cycles of a vector of results, and of a vector of codes that is brought into words.
  constexpr double kFillCycles = 2, kKeptCycles = 0.5, kPlaneCycles = 0.5, kTileCycles = 30, kResidualCycles = 7;
  // Row sums shift a vector of results, which is then stored by itself, and the bytes of each pixel are summed for
  // them.
  constexpr double kShiftedCycles = 8, kSumCycles = 2, kBytesOfVector = 64;
  const DotShape& s = plan.shape;
  const double vectors = static_cast<double>(plan.group_vectors) / static_cast<double>(plan.panels);
  const auto most =
      static_cast<double>(kernels.max_rows[std::min<int64_t>(kDotVectors, static_cast<int64_t>(std::ceil(vectors)))]);
  const auto line = static_cast<double>(std::max<int64_t>(1, plan.columns));
  const double rows = line / std::ceil(line / most);
  const double per_word = dot_word_cycles(rows, vectors, kernels.codes, target);
  const auto pixels = static_cast<double>(s.n * s.planes.out * s.groups * s.oh * s.ow);
  const double tiles = pixels / rows * static_cast<double>(plan.panels);
  const auto words = static_cast<double>(plan.taps() * plan.words);
  const double result = result_cycles(target) +
                        (problem.product.residual || problem.product.addend ? kResidualCycles : 0) +
                        (plan.schedule.row_sums ? kShiftedCycles : 0);
  double beside = tiles * (kTileCycles + result * rows * vectors);
  if (!plan.in_place) {
    const double filled = static_cast<double>(plan.tasks * s.planes.kernel * plan.buffer_plane()) /
                          std::max(1.0, target.threads > 1 ? 1.0 : static_cast<double>(plan.panel_chunks));
    const auto codes = static_cast<double>(plan.pixel_bytes() * kernels.codes / 4);
    const double block_cycles = plan.keeps_blocks ? kKeptCycles : kFillCycles;
    beside += filled * (plan.form == Form::Planes ? codes * kPlaneCycles
                                                  : std::ceil(codes / static_cast<double>(plan.lanes)) * block_cycles);
    if (plan.schedule.row_sums)
      beside += filled * (kSumCycles + static_cast<double>(plan.pixel_bytes()) / kBytesOfVector);
  }
  UnfittedLoad load;
  load.arithmetic_us =
      cycles_us(tiles * per_word * words + (beside + problem.table_cycles(target)) * core_cycles(target), target);
  load.bytes = problem.traffic_bytes();
  load.constant_bytes = 4 * static_cast<double>(packed_words(plan));
  const TaskSplit split = TaskSplit::of(plan.tasks, s.all_flops());
  load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
  return unfitted_us(load, target);
}

// The columns of tasks [begin, end), which differ in their panels alone.
IndexRange task_columns(const DotPlan& plan, int64_t begin, int64_t end) {
  const int64_t last = std::min(end * plan.panel_chunk, plan.panels);
  return {dot_panel(plan, begin * plan.panel_chunk).begin * plan.lanes, dot_panel(plan, last - 1).end * plan.lanes};
}

struct DotCall {
  DotPlan plan;
  DotOperands args;
  TaskSplit split;
  int64_t columns_at = 0;  // in the scratch memory: what a grid that is known only then makes of init and scale
};

class DotStep final : public KernelStep {
 public:
  DotStep(Int8Problem problem, const Candidate& candidate, Form form, int64_t codes, DotSchedule schedule,
          const Target& target, const OpRegistry& ops, PackedStore& packed)
      : problem_(std::move(problem)),
        form_(form),
        schedule_(schedule),
        threads_(target.threads),
        kernels_(dot_kernels_of(codes, target)) {
    const Int8Product& p = problem_.product;
    x_ = argument_of(candidate, p.x);
    residual_ = argument_of(candidate, p.residual);
    grid_ = problem_.run_time_grid(candidate);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    const DotPlan plan = plan_dot(problem_.constant_shape(), schedule_, kernels_, form_, may_read());
    constants_ = packed.floats(packed_words(plan), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
      auto* words = reinterpret_cast<int32_t*>(to);
      problem_.pack_columns({words, plan.channels(), codes == kByteCodes});
      const Int8Weights weights(p);
      const DotShape own = problem_.constant_shape();
      const int64_t taps = own.all_taps(), joined = own.groups / plan.shape.groups;
      const auto read = [&](int64_t channel, int64_t count, int64_t ic, int64_t tap, int32_t* to) {
        if (joined == 1) {
          weights.read(channel, ic * taps + tap, count, to);
        } else {
          for (int64_t i = 0; i < count; ++i) {
            const bool is_own = ic / own.group_ic() == (channel + i) / own.group_oc() % joined;
            to[i] = is_own ? weights.at(channel + i, ic % own.group_ic() * taps + tap) : 0;
          }
        }
        for (int64_t i = 0; schedule_.row_sums && i < count; ++i) to[i] -= weights.shift(channel + i);
      };
      pack_dot_weight(plan, read, words + PackedColumns::kArrays * plan.channels());
    });
    if (!p.function.nodes.empty()) table_.emplace(p.function, target, ops, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(x_)];
    const Arg& y = args[static_cast<size_t>(y_)];
    DotCall call;
    const DotShape shape = problem_.shape(x.dims, y.dims);
    call.plan = plan_dot(shape, schedule_, kernels_, form_, may_read());
    call.split = TaskSplit::of(call.plan.tasks, shape.all_flops(), call.plan.buffer_bytes(), threads_);
    DotOperands& a = call.args;
    const Int8Product& p = problem_.product;
    if (form_ == Form::Pixels) {
      NEO_ASSERT(x.is_dense() && y.is_dense(), "the rows of a product are not dense");
      a.src_channel = shape.ic;
      a.dst_pixel = shape.oc;
      a.dst_vector = a.residual_vector = kernels_.lanes;
    } else {
      const ConvStrides from = ConvStrides::of(x), to = ConvStrides::of(y);
      a.src_batch = from.batch;
      a.src_channel = from.channel;
      a.dst_batch = to.batch;
      a.dst_vector = to.channel;
      a.dst_pixel = kernels_.lanes;
      if (residual_ >= 0) {
        const ConvStrides added = ConvStrides::of(args[static_cast<size_t>(residual_)]);
        a.residual_batch = added.batch;
        a.residual_vector = added.channel;
      }
    }
    a.zero = p.x_grid.zero;
    a.is_signed = p.x_grid.is_signed();
    const auto* packed = reinterpret_cast<const int32_t*>(constants_.as<float>());
    const int64_t padded = call.plan.channels();
    a.result = problem_.result(packed, padded);
    a.weight = packed + PackedColumns::kArrays * padded;
    call.columns_at = call.split.scratch_bytes();
    return Prepared::of(call, call.columns_at + (grid_.is_any() ? 2 * padded * 4 : 0));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const DotCall*>(prepared);
    DotOperands a = call.args;
    const auto codes = [&](int i) { return reinterpret_cast<const uint8_t*>(args[i]); };
    a.src = codes(x_);
    a.dst = args[y_];
    if (table_) a.table = &*table_;
    if (residual_ >= 0) a.residual = codes(residual_);
    const int64_t padded = call.plan.channels();
    const auto bind = [&](IndexRange columns, DotOperands& to) {
      auto* numbers = reinterpret_cast<int32_t*>(scratch + call.columns_at);
      const bool bytes = kernels_.codes == kByteCodes;
      if (grid_.is_any()) to.zero = problem_.bind_grid(grid_, args, padded, columns, bytes, numbers, to.result).zero;
    };
    // Where no columns are those of two tasks, each finds out what the grid makes of its own.
    const bool by_task = call.plan.tasks == call.plan.panel_chunks;
    if (!by_task) bind({0, padded}, a);
    run_tasks_with<uint8_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, uint8_t* buffer) {
      DotOperands own = a;
      if (by_task) bind(task_columns(call.plan, begin, end), own);
      run_dot(call.plan, kernels_, own, begin, end, buffer);
    });
  }

 private:
  // Whether the codes are bytes of words as they are.
  bool may_read() const { return !problem_.product.x_grid.is_signed(); }

  Int8Problem problem_;
  Form form_;
  DotSchedule schedule_;
  int threads_;
  const DotKernels& kernels_;
  Int8Problem::RunTimeGrid grid_;
  int x_ = -1, residual_ = -1, y_ = 0;
  Tensor constants_;
  std::optional<CodeTable> table_;
};

// Products of 8-bit codes, summed exactly in int32 (patterns/int8_product.h).
class DotRoutine : public Int8Routine {
 public:
  explicit DotRoutine(Form form) : form_(form) {}

  std::string_view name() const override {
    return form_ == Form::Pixels   ? "cpu:int8/gemm"
           : form_ == Form::Blocks ? "cpu:int8/direct_nchwc"
                                   : "cpu:int8/direct_nchw";
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Int8Problem problem = *Int8Problem::read(workload, nullptr);
    std::vector<Candidate> all;
    for (const Schedule& schedule : schedules(problem, target)) {
      all.push_back(candidate_of(workload, problem, schedule, target));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost.time_us < b.cost.time_us; });
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    const Int8Problem problem = *Int8Problem::read(workload, nullptr);
    Space::Parameter codes{"codes", {}}, oc_bn{"oc_bn", {}}, row_sums{"row_sums", {}};
    for (const Schedule& schedule : schedules(problem, target)) {
      for (Space::Parameter* parameter : {&codes, &oc_bn, &row_sums}) {
        std::vector<int64_t>& values = parameter->values;
        const int64_t value = value_of(schedule, parameter->name);
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
    }
    return Space({codes, oc_bn, row_sums});
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, *Int8Problem::read(workload, nullptr), schedule, target);
  }

  static std::unique_ptr<Step> make_step(Form form, const Candidate& candidate, const Target& target,
                                         const OpRegistry& ops, PackedStore& packed) {
    return std::make_unique<DotStep>(*Int8Problem::read(*candidate.workload, nullptr), candidate, form,
                                     value_of(candidate.schedule, "codes"), dot_schedule(candidate.schedule, target),
                                     target, ops, packed);
  }

 protected:
  std::span<const std::string_view> products() const override {
    static constexpr std::string_view kGemm[] = {"MatMul", "Gemm", "MatMulInteger"};
    return form_ == Form::Pixels ? kGemm : Int8Routine::products();
  }

  std::optional<std::string> rejects_problem(const Int8Problem& problem, const Target& target) const override {
    const Int8Product& p = problem.product;
    if (p.is_conv() == (form_ == Form::Pixels)) return "a product of the other kind";
    if (form_ != Form::Pixels && problem.geometry.is_depthwise()) return "one input channel per group";
    const char* reason = reject_dot(problem.constant_shape(), form_, target.lanes());
    if (reason) return reason;
    constexpr int64_t kMaxSum = 1 << 30;
    if (!p.w->constant->is_absent() && !sums_fit(p, kMaxSum)) return "a sum may leave int32";
    if (p.residual && p.residual == p.x && form_ == Form::Planes) return "the residual is held otherwise";
    return std::nullopt;
  }

 private:
  static DotSchedule dot_schedule(const Schedule& schedule, const Target& target) {
    return {value_of(schedule, "oc_bn") / target.lanes(), value_of(schedule, "row_sums") != 0};
  }

  std::vector<Schedule> schedules(const Int8Problem& problem, const Target& target) const {
    const int64_t lanes = target.lanes();
    std::vector<Schedule> all;
    const int64_t channels = join_groups(problem.constant_shape(), form_, lanes).group_oc();
    for (int64_t vectors : {4, 2, 3, 1}) {
      if (vectors > ceil_div(channels, lanes)) continue;
      const Schedule words{{"codes", has_dot_bytes(target) ? kByteCodes : kWordCodes}, {"oc_bn", vectors * lanes}};
      if (!has_dot_bytes(target)) {
        all.push_back(words);
        continue;
      }
      for (const bool bytes : may_be_bytes(problem.product)) {
        all.push_back(words);
        if (!bytes) all.back()["row_sums"] = 1;
      }
    }
    return all;
  }

  Candidate candidate_of(const Workload& workload, const Int8Problem& problem, const Schedule& schedule,
                         const Target& target) const {
    const Int8Product& p = problem.product;
    Candidate c = problem.candidate(workload, form_ == Form::Blocks, form_ != Form::Pixels, target);
    c.schedule = schedule;
    const DotKernels& kernels = dot_kernels_of(value_of(schedule, "codes"), target);
    const DotPlan plan =
        plan_dot(problem.hint(), dot_schedule(schedule, target), kernels, form_, !p.x_grid.is_signed());
    c.cost.time_us = estimate_us(problem, plan, kernels, target);
    c.cost.packed_bytes = 4 * packed_words(plan) + problem.table_bytes();
    return c;
  }

  Form form_;
};

// With a form as routines are defined.
template <DotFill::Form form>
class DotRoutineOf final : public RoutineOf<DotRoutineOf<form>, DotRoutine> {
 public:
  DotRoutineOf() : RoutineOf<DotRoutineOf, DotRoutine>(form) {}

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return DotRoutine::make_step(form, candidate, target, ops, packed);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_direct_nchwc, DotRoutineOf<DotFill::Form::Blocks>)
NEO_DEFINE_ROUTINE(int8_direct_nchw, DotRoutineOf<DotFill::Form::Planes>)
NEO_DEFINE_ROUTINE(int8_gemm, DotRoutineOf<DotFill::Form::Pixels>)

}  // namespace neo
