#include "base/check.h"
#include "exec/strided_step.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/attention/attention.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/attention_problem.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

AttentionTools tools_of(const Target& target) {
  return {tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, pack_kernels)(),
          NEO_PICK_TIER(target.isa, attention_kernels)()};
}

int64_t operations(const AttentionPlan& plan) {
  const AttentionShape& s = plan.shape;
  int64_t batches = 1;
  for (const int64_t b : s.batch) batches *= b;
  return 2 * batches * s.queries * s.keys * (s.size + s.value_size);
}

TaskSplit split_of(const AttentionPlan& plan) {
  return TaskSplit::of(plan.tasks, operations(plan), plan.workspace_size * 4);
}

// The axes of a value in the order of the matrices.
struct OrderedView {
  Dims dims, strides;
};

OrderedView ordered(const AttentionOperand& operand, const Dims& dims, const Dims& strides) {
  OrderedView view;
  for (const int axis : operand.order) {
    view.dims.push_back(dims[static_cast<size_t>(axis)]);
    view.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return view;
}

// Strides along the batches of the result, where an axis of one element repeats.
AttentionStrides strides_of(const OrderedView& view) {
  AttentionStrides strides;
  const int rank = static_cast<int>(view.dims.size());
  const auto stride = [&](int from_last) -> int64_t {
    const int i = rank - 1 - from_last;
    return i < 0 || view.dims[static_cast<size_t>(i)] == 1 ? 0 : view.strides[static_cast<size_t>(i)];
  };
  strides.column = stride(0);
  strides.row = stride(1);
  for (int i = 0; i < kAttentionBatchAxes; ++i) strides.batch[kAttentionBatchAxes - 1 - i] = stride(2 + i);
  return strides;
}

void set_repeats(const AttentionOperand& operand, AttentionStrides& strides) {
  if (operand.repeated_axis < 0) return;
  strides.repeated_axis = kAttentionBatchAxes + 2 - operand.rank() + operand.repeated_axis;
  strides.repeats = operand.repeats;
}

struct AttentionCall {
  AttentionPlan plan;
  AttentionArgs args;
  TaskSplit split;
};

AttentionShape shape_of(const OrderedView& q, const OrderedView& k, const OrderedView& y) {
  AttentionShape s;
  const size_t rank = y.dims.size();
  s.queries = y.dims[rank - 2];
  s.value_size = y.dims[rank - 1];
  s.keys = k.dims.back();
  s.size = q.dims.back();
  for (size_t i = 0; i + 2 < rank; ++i) s.batch[static_cast<size_t>(kAttentionBatchAxes) + 2 - rank + i] = y.dims[i];
  return s;
}

class AttentionStep final : public StridedStep {
 public:
  AttentionStep(const Candidate& candidate, AttentionProblem problem, const Target& target)
      : problem_(std::move(problem)), tools_(tools_of(target)) {
    q_ = argument_of(candidate, problem_.q.value);
    k_ = argument_of(candidate, problem_.k.value);
    v_ = argument_of(candidate, problem_.v.value);
    for (const ScoreTerm& term : problem_.terms) terms_.push_back(argument_of(candidate, term.value));
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
  }

  bool reads_strides(int input) const override { return input == q_ || input == k_ || input == v_; }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](const AttentionOperand& operand, int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return ordered(operand, arg.dims, arg.strides);
    };
    const OrderedView q = view(problem_.q, q_), k = view(problem_.k, k_), y = view(problem_.y, y_);
    AttentionCall call;
    call.plan = plan_attention(shape_of(q, k, y), tools_.tiles);
    call.split = split_of(call.plan);
    call.args.q = strides_of(q);
    // Rows of one element are read as columns are, and the other way round.
    if (call.args.q.column == 0 && q.dims.back() == 1) call.args.q.column = 1;
    if (call.args.q.column != 1 && call.args.q.row == 0) call.args.q.row = 1;
    call.args.k = strides_of(k);
    call.args.v = strides_of(view(problem_.v, v_));
    set_repeats(problem_.q, call.args.q);
    set_repeats(problem_.k, call.args.k);
    set_repeats(problem_.v, call.args.v);
    call.args.y = strides_of(y);
    call.args.scale = problem_.scale;
    call.args.nan_is_zero = problem_.nan_is_zero;
    for (size_t i = 0; i < terms_.size(); ++i) {
      const Arg& arg = args[static_cast<size_t>(terms_[i])];
      AttentionTerm& term = call.args.terms[i];
      term.strides = strides_of({arg.dims, arg.strides});
      term.fills_where = problem_.terms[i].fills_where;
      term.number = problem_.terms[i].number;
    }
    call.args.term_count = static_cast<int>(terms_.size());
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const AttentionCall*>(prepared);
    const auto numbers = [&](int i) { return reinterpret_cast<float*>(args[i]); };
    AttentionArgs a = call.args;
    a.q_data = numbers(q_);
    a.k_data = numbers(k_);
    a.v_data = numbers(v_);
    a.y_data = numbers(y_);
    for (size_t i = 0; i < terms_.size(); ++i) {
      if (problem_.terms[i].is_condition) {
        a.terms[i].condition = reinterpret_cast<const uint8_t*>(args[terms_[i]]);
      } else {
        a.terms[i].added = numbers(terms_[i]);
      }
    }
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_attention(call.plan, tools_, a, begin, end, workspace);
    });
  }

 private:
  AttentionProblem problem_;
  AttentionTools tools_;
  int q_ = -1, k_ = -1, v_ = -1, y_ = 0;
  std::vector<int> terms_;
};

// softmax(scale q k + terms) v without the scores in memory.
class AttentionRoutine final : public RoutineOf<AttentionRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/attention"; }
  std::vector<std::string_view> roots() const override { return attention_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_attention(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    if (!read_attention(workload, &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const AttentionProblem problem = *read_attention(workload, nullptr);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const auto reads = [&](const Value* v) {
      c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    };
    for (const AttentionOperand* operand : {&problem.q, &problem.k, &problem.v}) reads(operand->value);
    for (const ScoreTerm& term : problem.terms) reads(term.value);
    c.outputs.push_back(plain_schema(problem.y.value->type));
    const AttentionPlan plan = hint_plan(problem, target);
    const TaskSplit split = split_of(plan);
    c.cost.time_us = estimate_us(problem, plan, split, target);
    c.cost.workspace_bytes = split.scratch_bytes();
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<AttentionStep>(candidate, *read_attention(*candidate.workload, nullptr), target);
  }

 private:
  static AttentionPlan hint_plan(const AttentionProblem& problem, const Target& target) {
    const auto view = [](const AttentionOperand& operand) {
      const Dims dims = operand.value->shape().hint_dims();
      return ordered(operand, dims, dense_strides(dims));
    };
    return plan_attention(shape_of(view(problem.q), view(problem.k), view(problem.y)), tile_kernels_of(target.isa));
  }

  static double estimate_us(const AttentionProblem& problem, const AttentionPlan& plan, const TaskSplit& split,
                            const Target& target) {
    constexpr double kEfficiency = 0.85;
    constexpr double kScoreCycles = 12, kTermCycles = 2, kPackCycles = 3;  // of a vector
    constexpr double kRowCycles = 40;                                      // of a row of a block
    const AttentionShape& s = plan.shape;
    if (plan.tasks == 0) return 0;
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    const double lanes = real(plan.lanes), batches = real(plan.tasks) / real(plan.row_chunks);
    const double rows = batches * real(s.queries);
    const double key_vectors = real(ceil_div(s.keys, plan.lanes)),
                 value_vectors = real(ceil_div(s.value_size, plan.lanes));
    const double flops = 2 * rows * lanes * (key_vectors * real(s.size) + value_vectors * real(s.keys));
    double cycles =
        rows * (key_vectors * (kScoreCycles + kTermCycles * real(static_cast<int64_t>(problem.terms.size()))) +
                real(plan.key_blocks) * (kRowCycles + 2 * value_vectors));
    if (s.queries > kFewAttentionRows)
      cycles += kPackCycles * real(plan.tasks) * (key_vectors * real(s.size) + value_vectors * real(s.keys));
    UnfittedLoad load;
    load.arithmetic_us = flops / (target.gflops_per_thread * kEfficiency * 1e3) + cycles_us(cycles, target);
    load.bytes = 4 * batches * (real(s.queries + s.keys) * real(s.size + s.value_size));
    load.tasks = split.serial ? 1 : real(split.tasks);
    return unfitted_us(load, target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(attention, AttentionRoutine)

}  // namespace neo
