#include "base/int_math.h"
#include "exec/strided_step.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/gemm/typed_gemm.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/gemm_problem.h"

NEO_DECLARE_TIERS(int64_t typed_gemm_columns(Lane lane);
                  void typed_gemm_tasks(const TypedGemmArgs& args, int64_t begin, int64_t end, void* workspace))

namespace neo {
namespace {

// The lanes that numbers of a dtype are multiplied in.
std::optional<Lane> product_lane(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return Lane::F32;
    case DType::Float64:
      return Lane::F64;
    case DType::Int32:
    case DType::UInt32:
      return Lane::U32;
    case DType::Int64:
    case DType::UInt64:
      return Lane::U64;
    default:
      return std::nullopt;
  }
}

struct TypedGemmKernel {
  decltype(&scalar::typed_gemm_columns) columns;
  decltype(&scalar::typed_gemm_tasks) tasks;

  static TypedGemmKernel of(const Target& target) {
    return {NEO_PICK_TIER(target.isa, typed_gemm_columns), NEO_PICK_TIER(target.isa, typed_gemm_tasks)};
  }
};

struct TypedGemmCall {
  TypedGemmArgs args;
  TaskSplit split;
};

class TypedGemmStep final : public StridedStep {
 public:
  TypedGemmStep(const Candidate& candidate, const GemmProblem& problem, const Target& target)
      : geometry_(problem.geometry),
        kernel_(TypedGemmKernel::of(target)),
        lane_(*product_lane(problem.c->dtype())),
        a_(argument_of(candidate, problem.a)),
        b_(argument_of(candidate, problem.b)),
        residual_(argument_of(candidate, problem.residual)) {
    for (const auto& schema : candidate.inputs) c_ += schema.has_value();
  }

  bool reads_strides(int) const override { return true; }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto view = [&](int i) {
      const Arg& arg = args[static_cast<size_t>(i)];
      return MatrixView{arg.dims, arg.strides};
    };
    const MatrixView residual = residual_ >= 0 ? view(residual_) : MatrixView{};
    TypedGemmCall call;
    TypedGemmArgs& g = call.args;
    g.shape = geometry_.bind(view(a_), view(b_), view(c_), residual_ >= 0 ? &residual : nullptr, g);
    g.lane = lane_;
    g.alpha = geometry_.alpha;
    g.beta = geometry_.beta;
    const GemmShape& s = g.shape;
    const int64_t columns = kernel_.columns(lane_);
    const int64_t tasks = s.batches() * ceil_div(s.m, kTypedGemmRows) * ceil_div(s.n, columns);
    call.split = TaskSplit::of(tasks, 4 * s.batches() * s.m * s.n * s.k, s.k * columns * lane_bytes(lane_));
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TypedGemmCall*>(prepared);
    TypedGemmArgs g = call.args;
    g.a = args[a_];
    g.b = args[b_];
    if (residual_ >= 0) g.residual = args[residual_];
    g.c = args[c_];
    run_tasks_with<std::byte>(team, call.split, scratch, [&](int64_t begin, int64_t end, std::byte* workspace) {
      kernel_.tasks(g, begin, end, workspace);
    });
  }

 private:
  GemmGeometry geometry_;
  TypedGemmKernel kernel_;
  Lane lane_;
  int a_, b_, residual_, c_ = 0;
};

// MatMul and Gemm of float64 and integers, and of float32 by few columns; all operands read where they lie.
class TypedGemmRoutine final : public RoutineOf<TypedGemmRoutine> {
 public:
  std::string_view name() const override { return "cpu/gemm"; }
  std::vector<std::string_view> roots() const override { return {"MatMul", "Gemm", "com.microsoft.FusedMatMul"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const DType dtype = workload.outputs.front()->dtype();
    if (!product_lane(dtype)) return "it has no lanes for the dtype";
    std::string why;
    const auto problem = read_gemm(workload, &why, dtype);
    if (!problem) return why;
    const GemmGeometry& g = problem->geometry;
    const GemmShape hint = problem->hint();
    if (dtype == DType::Float32 && (hint.n > kDotColumns || (hint.m >= kManyRows && hint.k <= kShortRow * hint.n)))
      return "float32 of many columns, or of many rows that are short, has a routine of its own";
    if (problem->bias) return "a constant is added, which another routine packs";
    if (!is_float(dtype) && (g.alpha != 1.0f || g.beta != 1.0f)) return "integers are scaled";
    if (problem->epilogue.lo > -kInfinity || problem->epilogue.hi < kInfinity) return "the result is clamped";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr, workload.outputs.front()->dtype());
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {problem.a, problem.b, problem.residual}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    c.outputs.push_back(plain_schema(problem.c->type));
    const GemmShape s = problem.hint();
    const bool few = s.n <= kDotColumns;
    const auto products =
        static_cast<double>(s.batches() * s.m * s.k) *
        static_cast<double>(few ? s.n : round_up(s.n, TypedGemmKernel::of(target).columns(Lane::F64)));
    UnfittedLoad load;
    // Cycles of as many products as a vector of float32 has; integers of 64 bits are multiplied in parts.
    const double cycles = (is_float(problem.c->dtype()) ? 3 : 6) / (few ? 2.0 : 1.0);
    load.arithmetic_us = cycles_us(cycles * products / static_cast<double>(target.lanes()), target);
    load.bytes = static_cast<double>(workload.work(ops).bytes.hint());
    load.tasks = products > 200000 ? target.threads : 1;
    c.cost.time_us = unfitted_us(load, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Workload& workload = *candidate.workload;
    return std::make_unique<TypedGemmStep>(candidate, *read_gemm(workload, nullptr, workload.outputs.front()->dtype()),
                                           target);
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // From this many rows of float32 on, those of at most as many terms for each column are faster as blocks.
  static constexpr int64_t kManyRows = 16, kShortRow = 8;
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_gemm, TypedGemmRoutine)

}  // namespace neo
