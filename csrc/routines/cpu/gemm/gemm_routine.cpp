#include <algorithm>

#include "base/check.h"
#include "exec/strided_step.h"
#include "routines/cost/loop_nest.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/gemm/gemm_split.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/cpu/turn.h"
#include "routines/families.h"
#include "routines/patterns/gemm_problem.h"
#include "routines/space.h"

namespace neo {
namespace {

struct GemmKernels {
  const TileKernels& tiles;
  const PackKernels& pack;

  static GemmKernels of(const Target& target) {
    return {tile_kernels_of(target.isa), NEO_PICK_TIER(target.isa, pack_kernels)()};
  }
};

MatrixView view_of(const Arg& arg) {
  return {arg.dims, arg.strides};
}

// The matrices of a constant B, one packed after the other.
struct PackedB {
  Tensor weight;
  MatrixView view;  // batch strides in packed elements
};

PackedB pack(const GemmProblem& problem, const GemmSchedule& schedule, const GemmKernels& kernels, PackedStore& store) {
  PackedB packed;
  packed.view = MatrixView::dense(problem.b->constant->dims());
  const BMatrix b = b_matrix(problem.geometry, packed.view);
  GemmShape shape;
  shape.m = 1;
  shape.n = b.n;
  shape.k = b.k;
  const GemmPlan plan = plan_gemm(shape, schedule, kernels.tiles);
  const int64_t size = gemm_packed_size(plan);
  const int64_t elements = b.k * b.n;
  const int64_t matrices = elements == 0 ? 0 : problem.b->constant->size() / elements;
  packed.weight = store.floats(matrices * size, {problem.b}, [&](float* to) {
    const float* from = problem.b->constant->as<float>();
    for (int64_t i = 0; i < matrices; ++i) {
      pack_gemm_b(plan, kernels.pack, from + i * elements, b.row, b.column, problem.geometry.alpha, to + i * size);
    }
  });
  if (elements > 0) {
    for (size_t i = 0; i + 2 < packed.view.dims.size(); ++i) {
      packed.view.strides[i] = packed.view.strides[i] / elements * size;
    }
  }
  return packed;
}

struct GemmCall {
  GemmPlan plan;
  GemmArgs args;
  TaskSplit split;
};

class GemmStep final : public StridedStep {
 public:
  GemmStep(const Candidate& candidate, const GemmProblem& problem, const GemmSchedule& schedule, const Target& target,
           PackedStore& packed)
      : geometry_(problem.geometry),
        schedule_(schedule),
        kernels_(GemmKernels::of(target)),
        lo_(problem.epilogue.lo),
        hi_(problem.epilogue.hi),
        activation_(activation_of(problem.epilogue, target)) {
    a_ = argument_of(candidate, problem.a);
    b_ = argument_of(candidate, problem.b);
    residual_ = argument_of(candidate, problem.residual);
    for (const auto& schema : candidate.inputs) c_ += schema.has_value();
    if (schedule_.packed_b) packed_ = pack(problem, schedule_, kernels_, packed);
    if (problem.bias) bias_ = packed_column_bias(problem, kernels_.tiles.lanes, packed);
  }

  bool reads_strides(int) const override { return true; }

  Prepared prepare(std::span<const Arg> args) const override {
    const auto arg = [&](int i) { return view_of(args[static_cast<size_t>(i)]); };
    GemmCall call;
    const MatrixView residual = residual_ >= 0 ? arg(residual_) : MatrixView{};
    const GemmShape shape = geometry_.bind(arg(a_), b_ >= 0 ? arg(b_) : packed_.view, arg(c_),
                                           residual_ >= 0 ? &residual : nullptr, call.args);
    call.plan = plan_gemm(shape, schedule_, kernels_.tiles);
    call.split = gemm_split(call.plan);
    call.args.alpha = geometry_.alpha;
    call.args.beta = geometry_.beta;
    call.args.lo = lo_;
    call.args.hi = hi_;
    call.args.activation = activation_;
    if (packed_.weight.defined()) call.args.b = packed_.weight.as<float>();
    if (bias_.defined()) call.args.column_bias = bias_.as<float>();
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const GemmCall*>(prepared);
    GemmArgs g = call.args;
    g.a = reinterpret_cast<const float*>(args[a_]);
    if (b_ >= 0) g.b = reinterpret_cast<const float*>(args[b_]);
    if (residual_ >= 0) g.residual = reinterpret_cast<const float*>(args[residual_]);
    g.c = reinterpret_cast<float*>(args[c_]);
    if (takes_turns(call.plan)) g.backwards = turn_.next();
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_gemm(call.plan, kernels_.tiles, kernels_.pack, g, begin, end, workspace);
    });
  }

 private:
  GemmGeometry geometry_;
  GemmSchedule schedule_;
  GemmKernels kernels_;
  PackedB packed_;
  Tensor bias_;
  int a_ = -1, b_ = -1, residual_ = -1, c_ = 0;
  float lo_, hi_;
  Activation activation_;
  Turn turn_;
};

double estimate_us(const GemmPlan& plan, bool constant_b, const Target& target) {
  const GemmShape& s = plan.shape;
  const auto batches = static_cast<double>(s.batches());
  const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
  const double rows = m / static_cast<double>(ceil_div(s.m, plan.schedule.rows));
  const double panel_bytes = std::min(k, 256.0) * vectors * static_cast<double>(plan.lanes) * 4;
  const double padded_n = static_cast<double>(plan.vectors * plan.lanes);
  double efficiency = 0.9 * tile_efficiency(rows, vectors, panel_bytes, target);
  if (!plan.schedule.packed_b && s.m > 4) {
    // Packing an element of B takes about as long as four operations of a row.
    efficiency *= m / (m + 4 * static_cast<double>(plan.row_chunks));
  }
  const TaskSplit split = gemm_split(plan);
  return tasks_us(2 * m * padded_n * k * batches, efficiency, split.serial ? 1 : split.tasks,
                  4 * batches * (m * k + (constant_b ? 0 : k * n) + m * n), target,
                  constant_b ? 4 * batches * k * n : 0);
}

GemmSchedule gemm_schedule(const Schedule& schedule, int64_t lanes, bool packed_b) {
  return {schedule.at("columns") / lanes, schedule.at("rows"),         packed_b,
          value_of(schedule, "k"),        value_of(schedule, "chunk"), value_of(schedule, "panels")};
}

// The schedules:
//   columns, rows  of C per register block
//   k              summed per pass over C
//   chunk, panels  rows, and panels of columns, per task
Space gemm_space(const GemmShape& shape, bool packed_b, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 16;
  const int64_t lanes = kernels.lanes, vectors = ceil_div(shape.n, lanes);
  std::vector<int64_t> columns, rows, k = {0};
  for (int64_t v = 1; v <= std::min<int64_t>(std::max<int64_t>(vectors, 1), kTileVectors); ++v) {
    columns.push_back(v * lanes);
  }
  for (int64_t r = kTileRows; r >= 1; --r) rows.push_back(r);
  for (int64_t part = 64; part < shape.k && part <= 2048; part *= 2) k.push_back(part);
  const auto read = [&](std::span<const int64_t> v) {
    return GemmSchedule{v[0] / lanes, v[1], packed_b, v[2], v[3], v[4]};
  };
  const auto allows = [&](std::span<const int64_t> v) {
    const GemmSchedule s = read(v);
    const int64_t most = kernels.max_rows[s.vectors], blocks = ceil_div(shape.m, s.rows);
    if (s.rows > most || (s.rows < most && (s.rows * 3 < most || blocks == ceil_div(shape.m, most) ||
                                            s.rows != ceil_div(shape.m, blocks)))) {
      return false;
    }
    const GemmPlan plan = plan_gemm(shape, s, kernels);
    if ((s.chunk > 0 && s.chunk != plan.row_chunk) || (s.panels > 0 && s.panels != plan.panel_chunk)) return false;
    for (int64_t GemmSchedule::*parameter : {&GemmSchedule::k, &GemmSchedule::chunk, &GemmSchedule::panels}) {
      if (s.*parameter == 0) continue;
      GemmSchedule without = s;
      without.*parameter = 0;
      const GemmPlan other = plan_gemm(shape, without, kernels);
      if (other.k_chunk == plan.k_chunk && other.whole_k == plan.whole_k && other.row_chunk == plan.row_chunk &&
          other.panel_chunk == plan.panel_chunk) {
        return false;
      }
    }
    return true;
  };
  return Space({{"columns", columns},
                {"rows", rows},
                {"k", k},
                {"chunk", part_sizes(std::max<int64_t>(shape.m, 1), kMaxParts, 0)},
                {"panels", part_sizes(std::max<int64_t>(vectors, 1), kMaxParts, 0)}},
               allows);
}

LoopNest gemm_loops(const GemmPlan& plan, bool constant_b, const TileKernels& kernels) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const GemmShape& s = plan.shape;
  const double batches = real(s.batches());
  const int64_t rows = plan.schedule.rows > 0 ? plan.schedule.rows : kernels.max_rows[plan.schedule.vectors];
  LoopNest l;
  l.flops = 2 * batches * real(s.m * s.k) * real(plan.vectors * plan.lanes);
  l.rows = real(s.m) / real(ceil_div(std::max<int64_t>(s.m, 1), rows));
  l.full_rows = real(rows);
  l.vectors = real(plan.vectors) / real(std::max<int64_t>(1, plan.panels));
  l.reduction = l.inner = real(plan.whole_k ? s.k : plan.k_chunk);
  l.passes = std::ceil(real(s.k) / std::max(1.0, l.reduction));
  l.block_bytes = l.reduction * l.vectors * real(plan.lanes) * 4;
  l.pixel_bytes = l.reduction * l.rows * 4;
  l.inputs = batches * real(s.m * s.k) * 4 + (constant_b ? 0 : batches * real(s.k * s.n) * 4);
  l.weights = constant_b ? batches * real(s.k * s.n) * 4 : 0;
  l.outputs = batches * real(s.m * s.n) * 4;
  l.tasks = real(plan.tasks);
  l.task_weights = real(plan.panel_chunk) * l.vectors * real(plan.lanes * s.k) * 4;
  l.task_inputs = real(plan.row_chunk * s.k) * 4;
  l.task_outputs = real(plan.row_chunk * plan.panel_chunk) * l.vectors * real(plan.lanes) * 4;
  l.input_reads = l.task_inputs * l.tasks * real(plan.panel_chunk);
  l.weight_reads = l.task_weights * l.tasks;
  l.sweep_bytes = l.block_bytes + l.task_inputs / l.passes;
  l.moved = plan.schedule.packed_b ? 0 : l.task_weights / 4 * l.tasks;
  l.workspace = real(plan.workspace_size) * 4;
  return l;
}

// C = clamp(alpha A B + bias + beta R) over broadcast batches, where R is a run-time bias or another tensor that is
// added. A constant B is packed; everything else is read through its strides.
class GemmRoutine final : public RoutineOf<GemmRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/gemm"; }
  std::vector<std::string_view> roots() const override { return gemm_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_gemm(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    if (!read_gemm(workload, &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmKernels kernels = GemmKernels::of(target);
    std::optional<Candidate> best;
    for (int64_t vectors : {4, 3, 2, 1}) {
      const Schedule schedule = {{"columns", vectors * target.lanes()}, {"rows", kernels.tiles.max_rows[vectors]}};
      const GemmPlan plan = plan_of(problem, schedule, target);
      if (vectors > plan.vectors) continue;
      Candidate c = candidate_of(workload, problem, plan, schedule, target);
      if (!best || c.cost.time_us < best->cost.time_us) best = std::move(c);
    }
    return {std::move(*best)};
  }

  Space space(const Workload& workload, const Target& target) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    return gemm_space(problem.hint(), problem.packs_b(), GemmKernels::of(target).tiles);
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    return candidate_of(workload, problem, plan_of(problem, schedule, target), schedule, target);
  }

  LoopNest loops(const Candidate& candidate, const Target& target) const override {
    const GemmProblem problem = *read_gemm(*candidate.workload, nullptr);
    return gemm_loops(plan_of(problem, candidate.schedule, target), problem.packs_b(), GemmKernels::of(target).tiles);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    const GemmProblem problem = *read_gemm(*candidate.workload, nullptr);
    const GemmSchedule schedule = gemm_schedule(candidate.schedule, target.lanes(), problem.packs_b());
    return std::make_unique<GemmStep>(candidate, problem, schedule, target, packed);
  }

 private:
  static GemmPlan plan_of(const GemmProblem& problem, const Schedule& schedule, const Target& target) {
    return plan_gemm(problem.hint(), gemm_schedule(schedule, target.lanes(), problem.packs_b()),
                     GemmKernels::of(target).tiles);
  }

  static Candidate candidate_of(const Workload& workload, const GemmProblem& problem, const GemmPlan& plan,
                                const Schedule& schedule, const Target& target) {
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {problem.a, problem.packs_b() ? nullptr : problem.b, problem.residual}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    c.outputs.push_back(plain_schema(problem.c->type));
    if (problem.residual && problem.residual->shape() == problem.c->shape() && problem.residual != problem.a &&
        problem.residual != problem.b) {
      c.in_place = workload.input_index(problem.residual);
    }
    c.schedule = schedule;
    c.cost.time_us = estimate_us(plan, problem.packs_b(), target) + activation_us(problem.epilogue, *problem.c, target);
    const TaskSplit split = gemm_split(plan);
    c.cost.workspace_bytes = split.scratch_bytes();
    if (problem.packs_b()) c.cost.packed_bytes = packed_bytes(problem, plan);
    return c;
  }

  static int64_t packed_bytes(const GemmProblem& problem, const GemmPlan& plan) {
    const Shape& b = problem.b->shape();
    int64_t matrices = 1;
    for (int i = 0; i + 2 < b.rank(); ++i) matrices *= b[i].value();
    return (matrices * gemm_packed_size(plan) + (problem.bias ? plan.vectors * plan.lanes : 0)) * 4;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gemm, GemmRoutine)

}  // namespace neo
