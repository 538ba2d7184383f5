#include <algorithm>

#include "routines/cost/step_cost.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/exponent_packed_matrix.h"
#include "routines/cpu/gemm/gemm.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/gemm_problem.h"

namespace neo {
namespace {

constexpr int64_t kMinWeights = 1 << 18;
constexpr int64_t kWorthOfATask = 200000;  // weights

struct GemvKernels {
  const ExponentPackedKernels& exponent_packed;
  const PackKernels& pack;

  static GemvKernels of(const Target& target) {
    return {NEO_PICK_TIER(target.isa, exponent_packed_kernels)(), NEO_PICK_TIER(target.isa, pack_kernels)()};
  }
};

BMatrix matrix_of(const GemmProblem& problem) {
  return b_matrix(problem.geometry, MatrixView::dense(problem.b->shape().hint_dims()));
}

ExponentPackedShape shape_of(const GemmProblem& problem, const Target& target) {
  const BMatrix b = matrix_of(problem);
  ExponentPackedShape shape;
  shape.rows = b.k;
  shape.vectors = kMaxExponentPackedVectors;
  shape.lanes = target.lanes();
  shape.panels = ceil_div(b.n, shape.width());
  shape.weights = b.k * b.n;
  shape.prefetched = exponent_packed_prefetch(target, true);
  return shape;
}

int64_t panels_of_a_task(const ExponentPackedShape& shape) {
  const int64_t weights = std::max<int64_t>(1, shape.rows * shape.width());
  return std::clamp<int64_t>(kWorthOfATask / weights, 1, shape.panels);
}

TaskSplit split_of(const ExponentPackedShape& shape) {
  // Weights that are read count as in GEMM.
  return TaskSplit::of(ceil_div(shape.panels, panels_of_a_task(shape)), 18 * shape.weights);
}

double estimate_us(const ExponentPackedShape& shape, const Target& target) {
  const auto vectors = static_cast<double>(shape.panels * shape.vectors * shape.rows);
  const TaskSplit split = split_of(shape);
  UnfittedLoad load;
  load.arithmetic_us = cycles_us(exponent_packed_cycles(target) * vectors, target);
  load.bytes = 4 * static_cast<double>(shape.rows + shape.panels * shape.width());
  load.constant_bytes = 4 * static_cast<double>(shape.size());
  load.tasks = static_cast<double>(split.serial ? 1 : split.tasks);
  return unfitted_us(load, target);
}

// One row of A and what becomes of it. Plain bytes.
struct RowArgs {
  const float* x = nullptr;
  int64_t x_step = 1;
  const float* bias = nullptr;  // padded to whole panels, or null
  float* y = nullptr;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

class ExponentPackedStep final : public KernelStep {
 public:
  ExponentPackedStep(const Candidate& candidate, const GemmProblem& problem, const Target& target, PackedStore& packed)
      : geometry_(problem.geometry),
        b_(MatrixView::dense(problem.b->shape().hint_dims())),
        columns_(matrix_of(problem).n),
        shape_(shape_of(problem, target)),
        kernels_(GemvKernels::of(target).exponent_packed),
        split_(split_of(shape_)) {
    x_ = argument_of(candidate, problem.a);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    args_.lo = problem.epilogue.lo;
    args_.hi = problem.epilogue.hi;
    args_.activation = activation_of(problem.epilogue, target);
    weight_ = packed.floats(shape_.size(), {problem.b}, [&](float* to) {
      const BMatrix b = matrix_of(problem);
      const auto* from = problem.b->constant->as<float>();
      const PackKernels& pack = GemvKernels::of(target).pack;
      pack_exponent_packed(
          shape_, kernels_, from,
          [&](int64_t panel, int64_t row, int64_t rows, float* plain) {
            const int64_t first = panel * shape_.width(), columns = std::min(shape_.width(), b.n - first);
            pack.panel(from + row * b.row + first * b.column, b.row, b.column, rows, columns, shape_.vectors, 1.0f,
                       plain);
          },
          to);
    });
    if (problem.bias) bias_ = packed_column_bias(problem, shape_.width(), packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return MatrixView{arg.dims, arg.strides};
    };
    GemmStrides strides;
    geometry_.bind(view(x_), b_, view(y_), nullptr, strides);
    RowArgs call = args_;
    call.x_step = strides.a_column;
    if (bias_.defined()) call.bias = bias_.as<float>();
    return Prepared::of(call, 0);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    RowArgs call = *reinterpret_cast<const RowArgs*>(prepared);
    call.x = reinterpret_cast<const float*>(args[x_]);
    call.y = reinterpret_cast<float*>(args[y_]);
    run_tasks(team, split_, [&](int64_t begin, int64_t end, int) {
      const int64_t panels = panels_of_a_task(shape_);
      for (int64_t p = begin * panels; p < std::min(end * panels, shape_.panels); ++p) run_panel(call, p);
    });
  }

 private:
  void run_panel(const RowArgs& call, int64_t panel) const {
    alignas(64) float sums[kMaxExponentPackedWidth] = {};
    multiply_exponent_packed(shape_, kernels_, weight_.as<float>(), panel, call.x, call.x_step, sums);
    const int64_t first = panel * shape_.width(), columns = std::min(shape_.width(), columns_ - first);
    kernels_.finish(sums, call.bias ? call.bias + first : nullptr, call.lo, call.hi, columns, call.y + first);
    if (call.activation) call.activation(call.y + first, columns);
  }

  GemmGeometry geometry_;
  MatrixView b_;
  int64_t columns_ = 0;
  ExponentPackedShape shape_;
  const ExponentPackedKernels& kernels_;
  TaskSplit split_;
  RowArgs args_;
  Tensor weight_, bias_;
  int x_ = -1, y_ = 0;
};

// One row times constant weights, which are held in 28 bits: see exponent_packed.h.
class ExponentPackedRoutine final : public RoutineOf<ExponentPackedRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/gemv_exponent_packed"; }
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
    // The hint counts an axis without elements as one.
    if (!problem->a->shape().is_static() || !problem->c->shape().element_count().is(problem->columns()) ||
        problem->hint().m != 1 || problem->hint().batches() != 1) {
      return "more than one row";
    }
    const ExponentPackedShape shape = shape_of(*problem, target);
    if (shape.weights < kMinWeights) return "few weights, which the caches hold";
    const char* reason = reject_exponent_packed(shape, GemvKernels::of(target).exponent_packed, *problem->b->constant);
    return reason ? std::optional<std::string>(reason) : std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const ExponentPackedShape shape = shape_of(problem, target);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    c.inputs[static_cast<size_t>(workload.input_index(problem.a))] = plain_schema(problem.a->type);
    c.outputs.push_back(plain_schema(problem.c->type));
    c.cost.time_us = estimate_us(shape, target) + activation_us(problem.epilogue, *problem.c, target);
    c.cost.packed_bytes = 4 * (shape.size() + (problem.bias ? shape.panels * shape.width() : 0));
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<ExponentPackedStep>(candidate, *read_gemm(*candidate.workload, nullptr), target, packed);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gemv_exponent_packed, ExponentPackedRoutine)

}  // namespace neo
