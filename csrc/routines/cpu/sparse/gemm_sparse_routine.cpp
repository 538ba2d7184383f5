#include <algorithm>
#include <limits>
#include <memory>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/gemm_block.h"
#include "routines/cpu/sparse/sparse_weights.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/gemm_problem.h"

namespace neo {
namespace {

// The runs of rows that tasks are made of, and the parts of the columns.
struct SparseGemmPlan {
  GemmShape shape;
  int64_t lanes = 0;
  int64_t unit = 0, units = 0;  // of rows: one or as many as there are lanes; of a matrix
  int64_t runs = 0, width = 0;  // of the rows of a matrix; most rows of a run, in whole units
  int64_t parts = 0;            // of the blocks of columns: tasks of a run
  int64_t blocks = 0;           // of as many columns as there are lanes
  int64_t table_bytes = 0;      // where each source begins
  TaskSplit split;

  static SparseGemmPlan of(const GemmShape& s, const SparseForm& form, int64_t lanes) {
    constexpr int64_t kMaxParts = 8;  // each gathers anew
    constexpr int64_t kFewRows = 2;   // fewer are faster one by one
    SparseGemmPlan plan;
    plan.shape = s;
    plan.lanes = lanes;
    plan.unit = s.m < kFewRows ? 1 : lanes;
    plan.units = ceil_div(s.m, plan.unit);
    plan.runs = plan.unit == 1 ? s.m : ceil_div(plan.units, kSparseVectors);
    const int64_t most = ceil_div(plan.units, std::max<int64_t>(1, plan.runs));
    plan.width = plan.unit * (most <= 1 ? 1 : round_up(most, 2));
    plan.blocks = ceil_div(s.n, lanes);
    plan.table_bytes = round_up(s.k * 4, 64);
    const int64_t runs = plan.runs * s.batches(), work = 2 * form.weights() * plan.width * runs;
    const int64_t wanted = ceil_div(worthwhile_tasks(work), std::max<int64_t>(1, runs));
    plan.parts = std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(plan.blocks, 1, kMaxParts));
    plan.split = TaskSplit::of(s.n == 0 ? 0 : runs * plan.parts, work, ((s.k + lanes) * plan.width + lanes) * 4);
    return plan;
  }
};

struct SparseGemmCall {
  SparseGemmPlan plan;
  GemmArgs args;
  int64_t table_at = 0;  // in the scratch memory
};

// The constant, whose columns are the outputs.
SparseMatrix sparse_matrix(const GemmProblem& problem) {
  const BMatrix b = b_matrix(problem.geometry, MatrixView::dense(problem.b->shape().hint_dims()));
  return {&*problem.b->constant, b.n, b.k, b.column, b.row};
}

class SparseGemmStep final : public KernelStep {
 public:
  SparseGemmStep(const Candidate& candidate, const GemmProblem& problem, const Target& target, PackedStore& packed)
      : geometry_(problem.geometry),
        b_view_(MatrixView::dense(problem.b->shape().hint_dims())),
        form_(SparseForm::of(sparse_matrix(problem), candidate.schedule)),
        lanes_(target.lanes()),
        kernels_(NEO_PICK_TIER(target.isa, sparse_kernels)()) {
    a_ = argument_of(candidate, problem.a);
    residual_ = argument_of(candidate, problem.residual);
    for (const auto& schema : candidate.inputs) c_ += schema.has_value();
    args_.lo = problem.epilogue.lo;
    args_.hi = problem.epilogue.hi;
    args_.beta = problem.geometry.beta;
    args_.activation = activation_of(problem.epilogue, target);
    weights_ = form_.pack(problem.b, sparse_matrix(problem), packed);
    if (problem.bias) bias_ = packed_column_bias(problem, lanes_, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return MatrixView{arg.dims, arg.strides};
    };
    SparseGemmCall call;
    call.args = args_;
    const MatrixView residual = residual_ >= 0 ? view(residual_) : MatrixView{};
    const GemmShape shape =
        geometry_.bind(view(a_), b_view_, view(c_), residual_ >= 0 ? &residual : nullptr, call.args);
    call.plan = SparseGemmPlan::of(shape, form_, lanes_);
    call.table_at = call.plan.split.scratch_bytes();
    return Prepared::of(call, call.table_at + call.plan.table_bytes);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SparseGemmCall*>(prepared);
    GemmArgs g = call.args;
    g.a = reinterpret_cast<const float*>(args[a_]);
    if (residual_ >= 0) g.residual = reinterpret_cast<const float*>(args[residual_]);
    g.c = reinterpret_cast<float*>(args[c_]);
    auto* sources = reinterpret_cast<int32_t*>(scratch + call.table_at);
    for (int64_t i = 0; i < call.plan.shape.k; ++i) sources[i] = static_cast<int32_t>(i * call.plan.width);
    run_tasks_with<float>(team, call.plan.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      int64_t gathered = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t place = task / call.plan.parts;
        run_task(call.plan, g, sources, task, place != gathered, workspace);
        gathered = place;
      }
    });
  }

 private:
  void run_task(const SparseGemmPlan& plan, const GemmArgs& g, const int32_t* sources, int64_t task, bool gathers,
                float* workspace) const {
    const GemmShape& s = plan.shape;
    const IndexRange blocks = even_part(plan.blocks, plan.parts, task % plan.parts);
    const int64_t place = task / plan.parts;
    const BatchOffsets at = BatchOffsets::of(s, g, place / plan.runs);
    const IndexRange units = even_part(plan.units, plan.runs, place % plan.runs);
    const int64_t first = units.begin * plan.unit;
    SparseRun run;
    run.src = workspace;
    run.sources = sources;
    run.count = std::min(s.m, units.end * plan.unit) - first;
    if (gathers) gather(plan, g.a + at.a + first * g.a_row, g.a_row, g.a_column, run.count, workspace);
    run.lo = -std::numeric_limits<float>::infinity();
    run.hi = std::numeric_limits<float>::infinity();
    SparseRows rows;
    rows.columns = workspace + s.k * plan.width;
    rows.column = plan.width;
    rows.row = g.c_row;
    rows.row_count = run.count;
    rows.residual_row = g.residual_row;
    rows.residual_column = g.residual_column;
    rows.beta = g.beta;
    rows.lo = g.lo;
    rows.hi = g.hi;
    run.dst_step = plan.width;
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      const int64_t column = block * plan.lanes;
      rows.column_count = std::min(plan.lanes, s.n - column);
      for (int64_t j = 0; j < rows.column_count; j += form_.group()) {
        form_.set(weights_, (column + j) / form_.group(), run);
        if (bias_.defined()) run.bias = bias_.as<float>() + column + j;
        run.dst = rows.columns + j * plan.width;
        kernels_.run(run);
      }
      rows.rows = g.c + at.c + first * g.c_row + column;
      if (g.residual) rows.residual = g.residual + at.residual + first * g.residual_row + column * g.residual_column;
      kernels_.by_rows(rows);
      if (g.activation) g.activation(rows.rows, run.count, g.c_row, rows.column_count);
    }
  }

  void gather(const SparseGemmPlan& plan, const float* a, int64_t row, int64_t column, int64_t rows, float* to) const {
    if (column == 1 && plan.unit > 1) {
      SparseRows all;
      all.rows = const_cast<float*>(a);
      all.row = row;
      all.row_count = rows;
      all.column_count = plan.shape.k;
      all.columns = to;
      all.column = plan.width;
      return kernels_.by_columns(all);
    }
    for (int64_t k = 0; k < plan.shape.k; ++k) {
      for (int64_t i = 0; i < rows; ++i) to[k * plan.width + i] = a[i * row + k * column];
    }
  }

  GemmGeometry geometry_;
  MatrixView b_view_;
  SparseForm form_;
  int64_t lanes_;
  const SparseKernels& kernels_;
  GemmArgs args_;
  Tensor weights_, bias_;
  int a_ = -1, residual_ = -1, c_ = 0;
};

// Rows times a constant matrix with many zeros.
class SparseGemmRoutine final : public RoutineOf<SparseGemmRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/gemm_sparse"; }
  std::vector<std::string_view> roots() const override { return gemm_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_gemm(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    const std::optional<GemmProblem> problem = read_gemm(workload, &why);
    if (!problem) return why;
    const GemmGeometry& g = problem->geometry;
    if (!problem->packs_b() || g.b_rank != 2) return "the weights are not a constant matrix";
    if (g.alpha != 1.0f) return "the product is scaled";
    if (const char* reason = reject_sparse(sparse_matrix(*problem))) return reason;
    // A few rows by dense weights take as long as these take to arrive, which may be from a near cache.
    constexpr int64_t kManyRows = 8, kMinZeros = 10;
    const Tensor& weight = *problem->b->constant;
    const GemmShape s = problem->hint();
    if (!weight.is_absent() && s.m * s.batches() < kManyRows && kMinZeros * nonzeros_of(weight) > weight.size())
      return "fewer than 90 % of the weights are zeros, and there are few rows";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    std::vector<Candidate> all;
    for (const Schedule& schedule : SparseForm::schedules(sparse_matrix(problem)))
      all.push_back(candidate_of(workload, target, schedule));
    return all;
  }

  Space space(const Workload& workload, const Target&) const override {
    return SparseForm::space(sparse_matrix(*read_gemm(workload, nullptr)));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, target, schedule);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<SparseGemmStep>(candidate, *read_gemm(*candidate.workload, nullptr), target, packed);
  }

 private:
  static Candidate candidate_of(const Workload& workload, const Target& target, const Schedule& schedule) {
    // Cycles of a vector that is transposed.
    constexpr double kTransposed = 8;
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmShape s = problem.hint();
    const SparseForm form = SparseForm::of(sparse_matrix(problem), schedule);
    const SparseGemmPlan plan = SparseGemmPlan::of(s, form, target.lanes());
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    const double runs = real(std::max<int64_t>(1, plan.runs));
    const double width = real(plan.units) / runs;
    const double cycles = real(s.batches()) * runs *
                          (sparse_cycles(form, {plan.unit == 1 ? 0 : width, width * real(plan.unit * s.k) * 4, true}) +
                           kTransposed * real(ceil_div(plan.width, target.lanes())) *
                               real(round_up(s.k, target.lanes()) * plan.parts + plan.blocks * target.lanes()));
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(cycles, target);
    load.bytes = 4 * real(s.batches() * s.m) * real(s.k + (problem.residual ? 2 : 1) * s.n);
    load.constant_bytes = real(form.size()) * 4;
    load.tasks = plan.split.serial ? 1 : real(plan.split.tasks);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {problem.a, problem.residual}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    c.outputs.push_back(plain_schema(problem.c->type));
    c.schedule = schedule;
    c.cost.time_us = unfitted_us(load, target) + activation_us(problem.epilogue, *problem.c, target);
    c.cost.error = kSparseError;
    c.cost.workspace_bytes = plan.split.scratch_bytes() + plan.table_bytes;
    c.cost.packed_bytes = (form.size() + (problem.bias ? plan.blocks * target.lanes() : 0)) * 4;
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gemm_sparse, SparseGemmRoutine)

}  // namespace neo
