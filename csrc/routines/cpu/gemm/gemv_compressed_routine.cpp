#include <algorithm>

#include "routines/cpu/gemm/gemm_problem.h"
#include "routines/cpu/gemm/gemv_compressed.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/step_cost.h"

namespace neo {
namespace {

constexpr int64_t kFewestWeights = 1 << 18;

struct Kernels {
  const CompressedKernels& compressed;
  const PackKernels& pack;

  static Kernels of(const Target& target) {
    return {NEO_PICK_TIER(target.isa, compressed_kernels)(), NEO_PICK_TIER(target.isa, pack_kernels)()};
  }
};

BMatrix matrix_of(const GemmProblem& problem) {
  return b_matrix(problem.geometry, MatrixView::dense(problem.b->shape().hint_dims()));
}

CompressedPlan plan_of(const GemmProblem& problem, const Target& target) {
  const BMatrix b = matrix_of(problem);
  return plan_compressed(b.k, b.n, target.lanes());
}

TaskSplit split_of(const CompressedPlan& plan) {
  // Weights that are read count as in GEMM.
  return TaskSplit::of(plan.tasks, 18 * plan.n * plan.k);
}

double estimate_us(const CompressedPlan& plan, const Target& target) {
  // For a vector of weights, beside their way from memory; bits are selected in one instruction or in three.
  const double cycles = target.lanes() > 8 ? 3 : 4.5;
  const auto vectors = static_cast<double>(plan.panels * kCompressedVectors * plan.k);
  const TaskSplit split = split_of(plan);
  StepLoad load;
  load.arithmetic_us = cycles_us(cycles * vectors, target);
  load.bytes = 4 * static_cast<double>(plan.k + plan.n);
  load.constant_bytes = 4 * static_cast<double>(compressed_size(plan));
  load.tasks = static_cast<double>(split.serial ? 1 : split.tasks);
  return step_us(load, target);
}

class CompressedStep final : public KernelStep {
 public:
  CompressedStep(const Candidate& candidate, const GemmProblem& problem, const Target& target, PackedStore& packed)
      : geometry_(problem.geometry),
        b_(MatrixView::dense(problem.b->shape().hint_dims())),
        plan_(plan_of(problem, target)),
        kernels_(Kernels::of(target).compressed),
        split_(split_of(plan_)) {
    x_ = argument_of(candidate, problem.a);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    args_.lo = problem.epilogue.lo;
    args_.hi = problem.epilogue.hi;
    args_.activation = activation_of(problem.epilogue, target);
    weight_ = packed.floats(compressed_size(plan_), {problem.b}, [&](float* to) {
      const BMatrix b = matrix_of(problem);
      pack_compressed(plan_, kernels_, Kernels::of(target).pack, problem.b->constant->as<float>(), b.row, b.column, to);
    });
    if (problem.bias) bias_ = packed_column_bias(problem, plan_.width, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return MatrixView{arg.dims, arg.strides};
    };
    GemmArgs strides;
    geometry_.bind(view(x_), b_, view(y_), nullptr, strides);
    CompressedArgs call = args_;
    call.x_step = strides.a_column;
    call.b = weight_.as<float>();
    if (bias_.defined()) call.bias = bias_.as<float>();
    return Prepared::of(call, 0);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    CompressedArgs call = *reinterpret_cast<const CompressedArgs*>(prepared);
    call.x = reinterpret_cast<const float*>(args[x_]);
    call.y = reinterpret_cast<float*>(args[y_]);
    run_tasks(team, split_,
              [&](int64_t begin, int64_t end, int) { run_compressed(plan_, kernels_, call, begin, end); });
  }

 private:
  GemmGeometry geometry_;
  MatrixView b_;
  CompressedPlan plan_;
  const CompressedKernels& kernels_;
  TaskSplit split_;
  CompressedArgs args_;
  Tensor weight_, bias_;
  int x_ = -1, y_ = 0;
};

// One row times constant weights, which are held in 28 bits: see gemv_compressed.h.
class CompressedRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu:float32/gemv_compressed"; }
  std::vector<std::string_view> roots() const override { return gemm_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_gemm(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    std::string why;
    const std::optional<GemmProblem> problem = read_gemm(workload, &why);
    if (!problem) return why;
    if (problem->residual) return "a tensor is added";
    if (!problem->packs_b() || problem->geometry.b_rank != 2) return "the weights are not a constant matrix";
    if (problem->geometry.alpha != 1.0f) return "the product is scaled";
    if (!problem->a->shape().is_static() || problem->hint().m != 1 || problem->hint().batches() != 1) {
      return "more than one row";
    }
    const CompressedPlan plan = plan_of(*problem, target);
    if (plan.k * plan.n < kFewestWeights) return "few weights, which the caches hold";
    if (plan.k * plan.width > UINT32_MAX) return "more rows than an outlier can name";
    const Tensor& b = *problem->b->constant;
    if (b.is_absent()) return std::nullopt;  // a saved module has them packed
    const char* reason = reject_compressed(plan, Kernels::of(target).compressed, b.as<float>());
    return reason ? std::optional<std::string>(reason) : std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const CompressedPlan plan = plan_of(problem, target);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    c.inputs[static_cast<size_t>(workload.input_index(problem.a))] = plain_schema(problem.a->type);
    c.outputs.push_back(plain_schema(problem.c->type));
    c.cost.time_us = estimate_us(plan, target) + activation_us(problem.epilogue, *problem.c, target);
    c.cost.packed_bytes = 4 * (compressed_size(plan) + (problem.bias ? plan.panels * plan.width : 0));
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<CompressedStep>(candidate, *read_gemm(*candidate.workload, nullptr), target, packed);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gemv_compressed, CompressedRoutine)

}  // namespace neo
