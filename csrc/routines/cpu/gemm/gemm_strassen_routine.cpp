#include <limits>
#include <vector>

#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/gemm_block.h"
#include "routines/cpu/gemm/gemm_split.h"
#include "routines/cpu/gemm/strassen_form.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/gemm_problem.h"

namespace neo {
namespace {

// Limit for one step: the weights of a large layer come from memory, and there are many of these in a model.
constexpr int64_t kMaxWeightBytes = 8 << 20;

// Whether a call may have few rows. Then the weights are packed as they are too.
bool has_open_rows(const GemmProblem& problem) {
  const Shape& c = problem.c->shape();
  for (int i = 0; i + 1 < c.rank(); ++i) {
    if (!c[i].is_constant()) return true;
  }
  return false;
}

// The product of few rows.
GemmPlan plan_few_rows(const GemmShape& shape, const TileKernels& kernels) {
  return plan_gemm(shape, GemmSchedule{.vectors = kTileVectors, .rows = kernels.max_rows[kTileVectors]}, kernels);
}

BMatrix strassen_b(const GemmProblem& problem) {
  return b_matrix(problem.geometry, MatrixView::dense(problem.b->shape().hint_dims()));
}

StrassenWork strassen_rows(const GemmShape& s) {
  return {s.batches(), s.m};
}

TaskSplit split_rows(const GemmShape& s, const StrassenForm& form, bool has_residual, int threads) {
  // A run's rows of A, of the result and of the residual.
  const int64_t blocks = form.plan.input_blocks() + (has_residual ? 2 : 1) * form.vectors();
  return form.split(strassen_rows(s), 2 * s.n * s.k * s.m * s.batches(),
                    form.plan.workspace_size + blocks * form.copied_stride(strassen_rows(s)), threads);
}

struct StrassenGemmCall {
  GemmArgs args;
  GemmShape shape;
  TaskSplit split;
  bool has_few_rows = false;
  GemmPlan few_rows;
};

// The rows of a run are copied into blocks of vectors, multiplied, and copied out.
class StrassenGemmStep final : public KernelStep {
 public:
  StrassenGemmStep(const Candidate& candidate, const GemmProblem& problem, const Target& target, PackedStore& packed)
      : geometry_(problem.geometry),
        b_view_(MatrixView::dense(problem.b->shape().hint_dims())),
        kernels_(strassen_kernels_of(target.isa)),
        tiles_(tile_kernels_of(target.isa)),
        pack_(NEO_PICK_TIER(target.isa, pack_kernels)()),
        form_(StrassenForm::of(strassen_b(problem).k, strassen_b(problem).n, candidate.schedule, target)),
        threads_(target.threads) {
    a_ = argument_of(candidate, problem.a);
    residual_ = argument_of(candidate, problem.residual);
    for (const auto& schema : candidate.inputs) c_ += schema.has_value();
    args_.lo = problem.epilogue.lo;
    args_.hi = problem.epilogue.hi;
    args_.activation = activation_of(problem.epilogue, target);
    weight_ = packed.floats(form_.weight_size(), {problem.b}, [&](float* to) {
      const BMatrix b = strassen_b(problem);
      const float* from = problem.b->constant->as<float>();
      std::vector<float> columns(static_cast<size_t>(b.n * b.k));
      float* next = columns.data();
      for (int64_t j = 0; j < b.n; ++j) {
        for (int64_t i = 0; i < b.k; ++i) *next++ = from[i * b.row + j * b.column];
      }
      form_.pack(columns.data(), to);
    });
    if (problem.bias) bias_ = packed_column_bias(problem, form_.plan.lanes, packed);
    if (!has_open_rows(problem)) return;
    const BMatrix b = strassen_b(problem);
    GemmShape row;
    row.m = 1;
    row.n = b.n;
    row.k = b.k;
    const GemmPlan plan = plan_few_rows(row, tiles_);
    few_rows_weight_ = packed.floats(gemm_packed_size(plan), {problem.b}, [&](float* to) {
      pack_gemm_b(plan, pack_, problem.b->constant->as<float>(), b.row, b.column, 1.0f, to);
    });
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return MatrixView{arg.dims, arg.strides};
    };
    StrassenGemmCall call;
    call.args = args_;
    const MatrixView residual = residual_ >= 0 ? view(residual_) : MatrixView{};
    call.shape = geometry_.bind(view(a_), b_view_, view(c_), residual_ >= 0 ? &residual : nullptr, call.args);
    call.has_few_rows = few_rows_weight_.defined() && call.shape.m < kMinStrassenPixels;
    call.args.b = (call.has_few_rows ? few_rows_weight_ : weight_).as<float>();
    if (bias_.defined()) call.args.column_bias = bias_.as<float>();
    if (call.has_few_rows) {
      call.few_rows = plan_few_rows(call.shape, tiles_);
      call.split = gemm_split(call.few_rows);
    } else {
      call.split = split_rows(call.shape, form_, residual_ >= 0, threads_);
    }
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const StrassenGemmCall*>(prepared);
    GemmArgs g = call.args;
    g.a = reinterpret_cast<const float*>(args[a_]);
    if (residual_ >= 0) g.residual = reinterpret_cast<const float*>(args[residual_]);
    g.c = reinterpret_cast<float*>(args[c_]);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      if (call.has_few_rows) return run_gemm(call.few_rows, tiles_, pack_, g, begin, end, workspace);
      for (int64_t i = begin; i < end; ++i)
        run_task(call.shape, g, StrassenTask::of(form_, strassen_rows(call.shape), i), workspace);
    });
  }

 private:
  void run_task(const GemmShape& shape, const GemmArgs& g, const StrassenTask& task, float* workspace) const {
    const StrassenPlan& plan = form_.plan;
    const IndexRange run = strassen_run(plan, task.pixels.size(), task.runs, task.run);
    const int64_t first = task.pixels.begin + run.begin, column = task.group * form_.vectors() * plan.lanes;
    const BatchOffsets at = BatchOffsets::of(shape, g, task.image);
    const int64_t stride = form_.copied_stride(strassen_rows(shape));
    float* const a = workspace + plan.workspace_size;
    float* const c = a + plan.input_blocks() * stride;
    float* const residual = c + form_.vectors() * stride;
    copy_in(g.a + at.a + first * g.a_row, g.a_row, g.a_column, run.size(), plan.input_blocks(), stride, a);
    ConvOperands product;
    product.src = a;
    product.src_channel = stride;
    product.weight = g.b + task.group * strassen_weight_size(plan);
    product.dst = c;
    product.dst_channel = stride;
    if (g.column_bias) product.bias = g.column_bias + column;
    if (g.residual) {
      copy_in(g.residual + at.residual + first * g.residual_row + column * g.residual_column, g.residual_row,
              g.residual_column, run.size(), form_.vectors(), stride, residual);
      product.residual = residual;
      product.residual_channel = stride;
    }
    product.lo = g.lo;
    product.hi = g.hi;
    product.activation = g.activation;
    run_strassen(plan, kernels_, product, run.size(), workspace);
    copy_out(c, stride, run.size(), g.c + at.c + first * g.c_row + column, g.c_row);
  }

  void copy_in(const float* from, int64_t row, int64_t column, int64_t rows, int64_t blocks, int64_t stride,
               float* to) const {
    const int64_t lanes = form_.plan.lanes;
    if (column == 1) return kernels_.copy({from, lanes, row, to, stride, blocks, rows});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < blocks * lanes; ++j)
        to[j / lanes * stride + i * lanes + j % lanes] = from[i * row + j * column];
    }
  }

  void copy_out(const float* from, int64_t stride, int64_t rows, float* to, int64_t row) const {
    const int64_t lanes = form_.plan.lanes;
    for (int64_t i = 0; i < rows; ++i)
      kernels_.copy({from + i * lanes, 0, stride, to + i * row, 0, 1, form_.vectors()});
  }

  GemmGeometry geometry_;
  MatrixView b_view_;
  const StrassenKernels& kernels_;
  const TileKernels& tiles_;
  const PackKernels& pack_;
  StrassenForm form_;
  int threads_;
  GemmArgs args_;
  Tensor weight_, bias_;
  Tensor few_rows_weight_;  // undefined where no call has few rows
  int a_ = -1, residual_ = -1, c_ = 0;
};

// Rows times a constant matrix by seven products of quarters: Strassen 1969.
class StrassenGemmRoutine final : public RoutineOf<StrassenGemmRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/gemm_strassen"; }
  std::vector<std::string_view> roots() const override { return gemm_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_gemm(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    std::string why;
    const std::optional<GemmProblem> problem = read_gemm(workload, &why);
    if (!problem) return why;
    const GemmGeometry& g = problem->geometry;
    if (!problem->packs_b() || g.b_rank != 2) return "the weights are not a constant matrix";
    if (g.alpha != 1.0f || g.beta != 1.0f) return "the product or what is added is scaled";
    const BMatrix b = strassen_b(*problem);
    if (const char* reason = reject_strassen(b.k, b.n, target.lanes(), strassen_kernels_of(target.isa))) return reason;
    if (7 * b.k * b.n > kMaxWeightBytes) return "its weights take too much memory";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmShape shape = problem.hint();
    std::vector<Candidate> all;
    for (const Schedule& schedule : StrassenForm::schedules(shape.k, shape.n, target)) {
      const StrassenForm form = StrassenForm::of(shape.k, shape.n, schedule, target);
      // One level of the algorithm holds 7/4 of the weights, two 49/16.
      if (4 * form.weight_size() > kMaxWeightBytes) continue;
      Candidate c;
      c.inputs.resize(workload.inputs.size());
      for (const Value* v : {problem.a, problem.residual}) {
        if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
      }
      c.outputs.push_back(plain_schema(problem.c->type));
      c.schedule = schedule;
      c.cost = cost_of(problem, shape, form, target);
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<StrassenGemmStep>(candidate, *read_gemm(*candidate.workload, nullptr), target, packed);
  }

 private:
  static Cost cost_of(const GemmProblem& problem, const GemmShape& s, const StrassenForm& form, const Target& target) {
    const auto real = [](int64_t value) { return static_cast<double>(value); };
    const TaskSplit split = split_rows(s, form, problem.residual != nullptr, target.threads);
    const double rows = real(s.m * s.batches());
    const int64_t results = problem.residual ? 2 : 1;
    StrassenTraffic traffic;
    traffic.copied = rows * real(form.plan.input_blocks() + results * form.vectors());
    traffic.bytes = 4 * rows * real(s.k + results * s.n);
    Cost cost;
    cost.time_us = strassen_us(form, strassen_rows(s), traffic, split, target) +
                   activation_us(problem.epilogue, *problem.c, target);
    cost.error = strassen_error(form.plan.levels);
    cost.packed_bytes = 4 * (form.weight_size() + (has_open_rows(problem) ? s.n * s.k : 0) + (problem.bias ? s.n : 0));
    cost.workspace_bytes = split.scratch_bytes();
    return cost;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gemm_strassen, StrassenGemmRoutine)

}  // namespace neo
