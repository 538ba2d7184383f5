#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/winograd.h"
#include "routines/cpu/gemm/tile_cost.h"
#include "routines/cpu/tier.h"

namespace neo {
namespace {

// No tile is offered whose error is more in units of the direct method's: a whole model keeps within 16.
constexpr double kMostError = 12;

double products_of(const ConvShape& s, int64_t tile) {
  return static_cast<double>((tile + 2) * (tile + 2) * ceil_div(s.oh, tile) * ceil_div(s.ow, tile));
}

// The errors of F(6, 3) are four times those of F(4, 3): it must save multiplications worth that, which the tiles at
// the border often undo.
bool is_offered(const ConvShape& s, int64_t tile) {
  constexpr double kWorthwhile = 0.9;
  if (winograd_error(tile, s.ic) > kMostError) return false;
  return tile <= 4 || products_of(s, tile) <= kWorthwhile * products_of(s, 4);
}

// The two instruction set dependent parts.
struct Kernels {
  const WinogradKernels& transforms;
  const TileKernels& tiles;

  static Kernels of(const Target& target) {
    return {NEO_PICK_TIER(target.isa, winograd_kernels)(), NEO_PICK_TIER(target.isa, tile_kernels)()};
  }
};

// Tiles per task: the panel of weights that one register block fetched serves the next one from L1. Weights far beyond
// the private cache are worth more tiles, though their transforms no longer stay in it.
int64_t block_of(int64_t weight_size, int64_t oc_vectors, const TileKernels& kernels, const Target& target) {
  const int64_t rows = kernels.max_rows[oc_vectors];
  const int64_t wanted = weight_size * 4 > 8 * target.l2_bytes ? 28 : 14;
  return ceil_div(wanted, rows) * rows;
}

struct WinogradCall {
  WinogradPlan plan;
  WinogradArgs args;
  TaskSplit split;
};

TaskSplit split_of(const WinogradPlan& plan, int threads) {
  // Members of a team that is larger than the one compiled for share workspaces.
  constexpr int64_t kFewestWorkspaces = 4;
  TaskSplit split = TaskSplit::of(plan.tasks, plan.shape.flops(), true);
  split.workspaces = std::min(split.workspaces, std::max<int64_t>(threads, kFewestWorkspaces));
  return split;
}

// Cycles of the transforms of one vector of channels, per point; a cycle is one vector FMA.
constexpr double kInputCycles = 8.7;
constexpr double kOutputCycles = 5.5;

double compute_us(const WinogradPlan& plan, const TileKernels& kernels, const Target& target) {
  const auto tiles = static_cast<double>(plan.tiles), points = static_cast<double>(plan.points);
  const auto ic_vectors = static_cast<double>(plan.ic_vectors), oc_vectors = static_cast<double>(plan.oc_vectors);
  const double vectors = oc_vectors / static_cast<double>(plan.panels);
  const double per_block = tiles / static_cast<double>(std::max<int64_t>(plan.blocks, 1));
  const auto most = static_cast<double>(kernels.max_rows[ceil_div(plan.oc_vectors, plan.panels)]);
  const double rows = per_block / std::ceil(per_block / most);
  const auto ic = static_cast<double>(plan.shape.ic);
  const double efficiency = tile_efficiency(rows, vectors, 0, target) * 0.96 * ic / (ic + 3);
  const double products = tiles * points * ic * oc_vectors / efficiency;
  const double transforms = tiles * points * (kInputCycles * ic_vectors + kOutputCycles * oc_vectors);
  return (products + transforms) * 2 * static_cast<double>(plan.lanes) / (target.gflops_per_thread * 1e3);
}

// Weights pass once from memory and then, for every further block of tiles of a thread, from the shared cache; input
// and output pass once.
double stream_us(const ConvProblem& problem, const WinogradPlan& plan, double speedup, const Target& target) {
  constexpr double kCacheBytes = 4e6;
  constexpr double kAlone = 0.8;  // of the memory's bandwidth, which one core does not reach
  const double memory = target.memory_gbps * (speedup > 1 ? 1 : kAlone);
  const double weights = static_cast<double>(winograd_weight_size(plan)) * 4;
  const double data = problem.traffic_bytes(plan.lanes, plan.lanes);
  const double bandwidth = weights + data > kCacheBytes ? memory : target.l2_gbps * speedup;
  double us = (weights + data) / (bandwidth * 1e3);
  if (weights > 0.75 * static_cast<double>(target.l2_bytes)) {
    const double passes = static_cast<double>(plan.blocks) / speedup - 1;
    us += std::max(passes, 0.0) * weights / (target.l2_gbps * 1e3);
  }
  return us;
}

double estimate_us(const ConvProblem& problem, const WinogradPlan& plan, const TileKernels& kernels,
                   const Target& target) {
  constexpr double kStepUs = 0.4;
  constexpr double kForkUs = 1.5;
  constexpr double kExposed = 0.4;  // of the shorter of arithmetic and streaming
  const TaskSplit split = split_of(plan, target.threads);
  double speedup = 1;
  if (!split.serial && target.threads > 1) {
    const auto tasks = static_cast<double>(plan.tasks);
    speedup = tasks / std::ceil(tasks / target.threads);
  }
  const double compute = compute_us(plan, kernels, target) / speedup,
               stream = stream_us(problem, plan, speedup, target);
  return kStepUs + (speedup > 1 ? kForkUs : 0) + std::max(compute, stream) + kExposed * std::min(compute, stream);
}

class WinogradStep final : public KernelStep {
 public:
  WinogradStep(const ConvProblem& problem, const ConvArguments& arguments, const WinogradSchedule& schedule,
               const Kernels& kernels, int threads)
      : geometry_(problem.geometry), arguments_(arguments), schedule_(schedule), kernels_(kernels), threads_(threads) {
    // Packing does not depend on batch and space.
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    const WinogradPlan plan = plan_winograd(geometry_.shape(ones, ones), schedule_, kernels_.tiles.lanes);
    weight_ = Tensor(DType::Float32, {winograd_weight_size(plan)});
    pack_winograd_weight(plan, problem.weight->constant->as<float>(), weight_.as<float>());
    if (problem.bias) {
      bias_ = Tensor(DType::Float32, {plan.oc_vectors * plan.lanes});
      std::fill_n(bias_.as<float>(), bias_.size(), 0.0f);
      std::copy_n(problem.bias->constant->as<float>(), geometry_.oc, bias_.as<float>());
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(arguments_.x)];
    const Arg& y = args[static_cast<size_t>(arguments_.y)];
    WinogradCall call;
    call.plan = plan_winograd(geometry_.shape(x.dims, y.dims), schedule_, kernels_.tiles.lanes);
    call.split = split_of(call.plan, threads_);
    const ConvStrides from = ConvStrides::of(x), to = ConvStrides::of(y);
    call.args.src_batch = from.batch;
    call.args.src_block = from.channel;
    call.args.dst_batch = to.batch;
    call.args.dst_block = to.channel;
    if (arguments_.residual >= 0) {
      const ConvStrides residual = ConvStrides::of(args[static_cast<size_t>(arguments_.residual)]);
      call.args.residual_batch = residual.batch;
      call.args.residual_block = residual.channel;
    }
    call.args.weight = weight_.as<float>();
    if (bias_.defined()) call.args.bias = bias_.as<float>();
    call.args.lo = arguments_.lo;
    call.args.hi = arguments_.hi;
    return Prepared::of(call, call.split.workspaces * workspace_floats(call.plan) * 4);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const WinogradCall*>(prepared);
    WinogradArgs a = call.args;
    a.src = reinterpret_cast<const float*>(args[arguments_.x]);
    a.dst = reinterpret_cast<float*>(args[arguments_.y]);
    if (arguments_.residual >= 0) a.residual = reinterpret_cast<const float*>(args[arguments_.residual]);
    WinogradMember members[kMaxMembers];
    for (int64_t i = 0; i < call.split.workspaces; ++i) {
      members[i].workspace = reinterpret_cast<float*>(scratch) + i * workspace_floats(call.plan);
    }
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int workspace) {
      run_winograd(call.plan, kernels_.transforms, kernels_.tiles, a, begin, end, members[workspace]);
    });
  }

 private:
  static constexpr int64_t kMaxMembers = 48;

  ConvGeometry geometry_;
  ConvArguments arguments_;
  WinogradSchedule schedule_;
  Kernels kernels_;
  int threads_;
  Tensor weight_, bias_;

  static int64_t workspace_floats(const WinogradPlan& plan) { return ceil_div(plan.workspace_size, 16) * 16; }
};

// Fast convolution by small tiles: Lavin & Gray 2015.
class WinogradRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/winograd"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape shape = problem.geometry.shape(problem.x_hint(), problem.y_hint());
    const Kernels kernels = Kernels::of(target);
    std::vector<Candidate> all;
    for (int64_t tile : {4, 2, 6}) {
      if (!is_offered(shape, tile)) continue;
      WinogradSchedule schedule;
      schedule.tile = tile;
      schedule.oc_vectors = std::min<int64_t>(kTileVectors, ceil_div(shape.oc, target.lanes()));
      WinogradPlan plan = plan_winograd(shape, schedule, target.lanes());
      schedule.block = block_of(winograd_weight_size(plan), schedule.oc_vectors, kernels.tiles, target);
      plan = plan_winograd(shape, schedule, target.lanes());
      Candidate c = conv_candidate(workload, problem, target.lanes(), target.lanes());
      c.schedule = {{"tile", tile}, {"oc_bn", schedule.oc_vectors * target.lanes()}, {"block", schedule.block}};
      c.cost.time_us = estimate_us(problem, plan, kernels.tiles, target);
      c.cost.error = winograd_error(tile, shape.ic);
      c.cost.packed_bytes = (winograd_weight_size(plan) + (problem.bias ? plan.oc_vectors * plan.lanes : 0)) * 4;
      c.cost.workspace_bytes = split_of(plan, target.threads).workspaces * plan.workspace_size * 4;
      all.push_back(std::move(c));
    }
    return all;
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry&) const override {
    const ConvProblem problem = *read_conv(*candidate.workload, nullptr);
    WinogradSchedule schedule;
    schedule.tile = candidate.schedule.at("tile");
    schedule.oc_vectors = candidate.schedule.at("oc_bn") / target.lanes();
    schedule.block = candidate.schedule.at("block");
    return std::make_unique<WinogradStep>(problem, ConvArguments::of(candidate, problem, target), schedule,
                                          Kernels::of(target), target.threads);
  }

 protected:
  const char* rejects_activation(const ConvProblem&, const Target&) const override {
    return "it takes no activation but a clamp";
  }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes != 2) return "not two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    const Dims ones(4, 1);
    if (const char* why = reject_winograd(problem.geometry.shape(ones, ones))) return why;
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Routine> make_winograd_routine() {
  return std::make_unique<WinogradRoutine>();
}

}  // namespace neo
