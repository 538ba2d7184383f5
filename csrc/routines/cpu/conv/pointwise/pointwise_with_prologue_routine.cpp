#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/fused/fused_convs_problem.h"
#include "routines/cpu/conv/pack_bias.h"
#include "routines/cpu/conv/pointwise/pointwise_with_prologue.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"
#include "routines/space.h"

NEO_DECLARE_TIERS(void affine_rows(const AffineRows& rows))

namespace neo {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

// A value with one element per channel of `x`, of one image or of each.
bool is_per_channel(const Value& v, const Value& x) {
  if (!v.type.is_tensor() || v.dtype() != DType::Float32 || !v.shape().has_rank()) return false;
  const Shape &shape = v.shape(), &whole = x.shape();
  const int missing = whole.rank() - shape.rank();
  if (missing < 0 || missing > 1 || !whole[1].is_constant()) return false;
  for (int axis = missing; axis < whole.rank(); ++axis) {
    const Dim& size = shape[axis - missing];
    if (axis == 0 ? !(size.is(1) || size == whole[0]) : !size.is(axis == 1 ? whole[1].value() : 1)) return false;
  }
  return v.constant ? element_count(v.constant->dims()) == whole[1].value() : missing == 0;
}

// The operand of a Mul or Add that has the shape of its result and is not known, where the other is per channel.
const Value* whole_operand(const Node& node, const Value*& other) {
  const Value& y = *node.outputs.front();
  if (node.inputs.size() != 2 || !y.type.is_tensor() || y.dtype() != DType::Float32 || !y.shape().has_rank()) {
    return nullptr;
  }
  for (size_t i = 0; i < 2; ++i) {
    const Value *x = node.inputs[i], *v = node.inputs[1 - i];
    if (x != v && !x->constant && x->type.is_tensor() && x->shape() == y.shape() && is_per_channel(*v, *x)) {
      other = v;
      return x;
    }
  }
  return nullptr;
}

// The prologue of a convolution: Mul, Add of constants, and one activation or clamp, each of which may be left
// out.
struct AffinePrologue {
  const Value* x = nullptr;
  const Value* scale = nullptr;  // or null
  const Value* shift = nullptr;  // a constant, or null
  ClampRange bounds{-kNoLimit, kNoLimit};
  std::optional<EltwiseStep> activation;
  std::vector<const Node*> nodes;  // last first

  // Walks back from a value; `next(value)` is the producer that may be taken over, or null.
  template <class Next>
  static AffinePrologue read(const Value* end, Next&& next) {
    AffinePrologue p;
    p.x = end;
    const auto take = [&](const Node* node, const Value* x) {
      p.nodes.push_back(node);
      p.x = x;
    };
    const Node* at = next(p.x);
    if (at && at->input(0)) {
      const auto bounds = read_clamp(*at);
      if (bounds) p.bounds = *bounds;
      if (!bounds) p.activation = find_activation_step(*at);
      if (bounds || p.activation) take(at, at->inputs[0]);
    }
    at = next(p.x);
    if (at && at->op == "Add") {
      const Value* shift = nullptr;
      const Value* x = whole_operand(*at, shift);
      if (x && shift->constant) {
        p.shift = shift;
        take(at, x);
      }
    }
    at = next(p.x);
    if (at && at->op == "Mul") {
      const Value* scale = nullptr;
      if (const Value* x = whole_operand(*at, scale)) {
        p.scale = scale;
        take(at, x);
      }
    }
    return p;
  }
};

// A group: the prologue's nodes, a convolution and its epilogue.
struct AffineProblem {
  AffinePrologue prologue;
  ConvProblem conv;  // its x is the prologue's
};

size_t conv_index(const Workload& workload) {
  size_t at = 0;
  while (workload.nodes[at]->op != "Conv") ++at;
  return at;
}

std::optional<AffineProblem> read_affine(const Workload& workload, std::string* why) {
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  const auto first = static_cast<std::ptrdiff_t>(conv_index(workload));
  std::optional<ConvProblem> conv =
      read_conv(Workload::of({workload.nodes.begin() + first, workload.nodes.end()}), why);
  if (!conv) return std::nullopt;
  AffineProblem p;
  p.prologue = AffinePrologue::read(conv->x, [&](const Value* v) {
    const bool inside = v->producer && std::find(workload.nodes.begin(), workload.nodes.begin() + first, v->producer) !=
                                           workload.nodes.begin() + first;
    return inside ? v->producer : nullptr;
  });
  p.conv = *conv;
  p.conv.x = p.prologue.x;
  const Value* residual = p.conv.epilogue.residual;
  const Value* scale = p.prologue.scale;
  if (p.conv.geometry.axes > 2) return reject("more than two spatial axes");
  if (const char* reason = reject_run_time_weights(p.conv)) return reject(reason);
  if (p.conv.x->constant || p.conv.x->dtype() != DType::Float32) return reject("the input is not float32");
  if (residual && residual == scale) return reject("one value is two operands");
  return p;
}

AffineKernels affine_kernels_of(const Target& target) {
  return {&tile_kernels_of(target.isa), &strassen_kernels_of(target.isa), NEO_PICK_TIER(target.isa, affine_rows)};
}

// Bytes that are prepared for a run. They may leave the first-level cache: a short run would wait for weights that
// arrive more slowly than it uses them. Strassen's algorithm pairs the pixels of a run, which for the same bits on
// every machine does not depend on this one's caches.
int64_t cache_bytes(const Target& target, bool strassen) {
  const int64_t l2_bytes = strassen ? target.l2_bytes : private_caches(target).l2_bytes;
  return std::max(target.l1_bytes / 2, l2_bytes / 6);
}

// The schedule:
//   tasks     as many parts of the image, where it has them; the runs of these are shared
//   strassen  levels of Strassen's algorithm for the product; where it is not there: directly
AffineSchedule affine_schedule(const Schedule& schedule, const Target& target) {
  AffineSchedule s;
  s.product.ic_bn = s.product.oc_bn = target.lanes();
  const TileKernels& kernels = tile_kernels_of(target.isa);
  s.product.oc_vectors = kernels.panel_vectors;
  s.product.reg_n = kernels.max_rows[kernels.panel_vectors];
  s.strassen = value_of(schedule, "strassen");
  s.tasks = schedule.at("tasks");
  s.cache_bytes = cache_bytes(target, s.strassen > 0);
  return s;
}

TaskSplit split_of(const PointwiseWithProloguePlan& plan, int threads) {
  return TaskSplit::of(plan.tasks, plan.shape.flops(), plan.workspace_size * 4, threads);
}

int64_t weight_size(const PointwiseWithProloguePlan& plan) {
  return plan.strassen.levels > 0 ? strassen_weight_size(plan.strassen) : direct_weight_size(plan.product);
}

struct AffineCall {
  PointwiseWithProloguePlan plan;
  ConvOperands args;
  AffineOperands affine;
  TaskSplit split;
};

class PointwiseWithPrologueStep final : public ConvStep {
 public:
  PointwiseWithPrologueStep(const AffineProblem& problem, const Candidate& candidate, const Target& target,
                            PackedStore& packed)
      : ConvStep(problem.conv, ConvArguments::of(candidate, problem.conv, target)),
        schedule_(affine_schedule(candidate.schedule, target)),
        kernels_(affine_kernels_of(target)),
        threads_(target.threads) {
    const AffinePrologue& prologue = problem.prologue;
    const PointwiseWithProloguePlan plan = plan_pointwise_with_prologue(problem.conv.unit_shape(), schedule_, kernels_);
    weight_ = packed.floats(weight_size(plan), {problem.conv.weight}, [&](float* to) {
      const auto* weight = problem.conv.weight->constant->as<float>();
      schedule_.strassen > 0 ? pack_strassen_weight(plan.strassen, weight, to)
                             : pack_direct_weight(plan.product, weight, to);
    });
    bias_ = padded_channels(problem.conv.bias, plan.lanes, packed);
    if (prologue.scale && prologue.scale->constant) scale_ = padded_channels(prologue.scale, plan.lanes, packed);
    shift_ = padded_channels(prologue.shift, plan.lanes, packed);
    scale_argument_ = argument_of(candidate, prologue.scale);
    affine_.lo = prologue.bounds.lo;
    affine_.hi = prologue.bounds.hi;
    affine_.activation = activation_of(prologue.activation, target);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    AffineCall call;
    call.plan = plan_pointwise_with_prologue(shape_at(args), schedule_, kernels_);
    call.split = split_of(call.plan, threads_);
    call.args = bind(args);
    call.affine = affine_;
    if (scale_.defined()) call.affine.scale = scale_.as<float>();
    if (shift_.defined()) call.affine.shift = shift_.as<float>();
    if (scale_argument_ >= 0) {
      const Arg& scale = args[static_cast<size_t>(scale_argument_)];
      call.affine.scale_batch = scale.dims[0] == 1 ? 0 : ConvStrides::of(scale).batch;
      NEO_ASSERT(call.plan.blocks == 1 || ConvStrides::of(scale).channel == call.plan.lanes);
    }
    return Prepared::of(call, call.split.scratch_bytes());
  }

  bool prefetches_later() const override { return schedule_.strassen > 0; }
  void prefetch_later(std::byte* prepared, std::span<const float> constants) const override {
    reinterpret_cast<AffineCall*>(prepared)->args.later = {constants.data(), std::ssize(constants)};
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const AffineCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    AffineOperands affine = call.affine;
    if (scale_argument_ >= 0) affine.scale = reinterpret_cast<const float*>(args[scale_argument_]);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      run_pointwise_with_prologue(call.plan, kernels_, affine, a, begin, end, workspace);
    });
  }

 private:
  AffineSchedule schedule_;
  AffineKernels kernels_;
  int threads_;
  int scale_argument_ = -1;
  AffineOperands affine_;
  Tensor scale_, shift_;
};

double estimate_us(const AffineProblem& problem, const PointwiseWithProloguePlan& plan, const Target& target) {
  constexpr double kCyclesPerVector = 2;
  const ConvShape& s = plan.shape;
  const DirectPlan& run = plan.product;
  const auto lanes = static_cast<double>(plan.lanes);
  const double vectors = static_cast<double>(run.group_vectors) / static_cast<double>(run.panels);
  const auto part = static_cast<double>(s.oh * s.ow) / static_cast<double>(plan.parts);
  const double pixels = part / static_cast<double>(std::max<int64_t>(1, plan.runs));
  const double rows = pixels / std::ceil(pixels / static_cast<double>(run.schedule.reg_n));
  const double panel_bytes = static_cast<double>(s.ic) * vectors * lanes * 4;
  const double efficiency = blocked_efficiency(rows, vectors, panel_bytes, std::min<int64_t>(plan.lanes, s.ic), target);
  const auto weights = static_cast<double>(weight_size(plan));
  const double images = static_cast<double>(s.n * s.oh * s.ow);
  const double elements = images * static_cast<double>(plan.blocks) * lanes;
  double cycles = kCyclesPerVector * elements / lanes;
  if (problem.prologue.activation) cycles += activation_flops(*problem.prologue.activation) / 2 * elements / lanes;
  const double product = plan.strassen.levels > 0 ? strassen_work(plan.strassen, images, pixels, target) * efficiency
                                                  : 2 * weights * images;
  const double flops = product + cycles * 2 * lanes * efficiency;
  const TaskSplit split = split_of(plan, target.threads);
  const double team = split.serial ? 1 : target.threads;
  const double runs = std::ceil(static_cast<double>(plan.tasks) / team);
  return far_us(weights * 4, runs, target) + tasks_us(flops, efficiency, split.serial ? 1 : split.tasks,
                                                      problem.conv.traffic_bytes(plan.lanes, plan.lanes), target,
                                                      weights * 4);
}

class PointwiseWithPrologueRoutine final : public RoutineOf<PointwiseWithPrologueRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/pointwise_with_prologue"; }

  std::vector<std::string_view> roots() const override {
    std::vector<std::string_view> roots = {"Conv"};
    roots.insert(roots.end(), epilogue_ops().begin(), epilogue_ops().end());
    return roots;
  }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    static constexpr std::string_view kConv[] = {"Conv"};
    std::vector<Workload> found;
    for (const Workload& end : match_epilogues(root, kConv, users, graph)) {
      if (!is_pointwise(*end.nodes.front())) continue;
      const AffinePrologue prologue = AffinePrologue::read(end.nodes.front()->inputs[0], [&](const Value* v) {
        return read_only_by_one(v, users, graph) ? v->producer : nullptr;
      });
      if (prologue.nodes.empty()) continue;
      std::vector<const Node*> nodes(prologue.nodes.rbegin(), prologue.nodes.rend());
      nodes.insert(nodes.end(), end.nodes.begin(), end.nodes.end());
      found.push_back(Workload::of(std::move(nodes)));
    }
    return found;
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    std::string why;
    const auto problem = read_affine(workload, &why);
    if (!problem) return why;
    if (workload.is_exact()) return kRejectExact;
    if (problem->conv.geometry.oc % target.lanes() != 0 && !keeps_zero(problem->conv.epilogue)) {
      return "the activation does not keep padding lanes zero";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const AffineProblem problem = *read_affine(workload, nullptr);
    const ConvShape shape = problem.conv.geometry.shape(problem.conv.x_hint(), problem.conv.y_hint());
    std::vector<Candidate> all;
    std::vector<Schedule> schedules;
    for (int64_t wanted : {int64_t{target.threads}, int64_t{4} * target.threads}) {
      schedules.push_back({{"tasks", wanted}});
      for (int64_t levels = 1; levels <= kStrassenLevels; ++levels) {
        if (reject_strassen(shape.ic, shape.oc, target.lanes(), *affine_kernels_of(target).strassen, levels)) break;
        schedules.push_back({{"tasks", wanted}, {"strassen", levels}});
      }
    }
    for (const Schedule& schedule : schedules) {
      const PointwiseWithProloguePlan plan =
          plan_pointwise_with_prologue(shape, affine_schedule(schedule, target), affine_kernels_of(target));
      Candidate c = conv_candidate(workload, problem.conv, target.lanes(), target.lanes());
      if (const Value* scale = problem.prologue.scale; scale && !scale->constant) {
        Schema& schema = c.inputs[static_cast<size_t>(workload.input_index(scale))].emplace(
            Schema::plain(DType::Float32, problem.conv.rank()));
        schema.layout = Layout::channel_blocked(problem.conv.rank(), target.lanes());
      }
      c.schedule = schedule;
      if (plan.strassen.levels > 0) c.cost.error = strassen_error(plan.strassen.levels);
      c.cost.time_us =
          estimate_us(problem, plan, target) + activation_us(problem.conv.epilogue, *problem.conv.y, target);
      c.cost.packed_bytes = (weight_size(plan) + 2 * plan.blocks * plan.lanes +
                             (problem.conv.bias ? packed_bias_size(plan.product) : 0)) *
                            4;
      c.cost.workspace_bytes = split_of(plan, target.threads).scratch_bytes();
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<PointwiseWithPrologueStep>(*read_affine(*candidate.workload, nullptr), candidate, target,
                                                       packed);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(pointwise_with_prologue, PointwiseWithPrologueRoutine)

}  // namespace neo
