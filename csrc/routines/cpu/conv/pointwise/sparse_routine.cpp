#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/pointwise/sparse.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/tier.h"
#include "routines/space.h"

NEO_DECLARE_TIERS(void sparse_run(const SparseRun&))

namespace neo {
namespace {

// Fewer zeros leave more to do than the dense kernels lose by multiplying them.
constexpr double kLeastZeros = 0.6;
// Error of a sum without the zeros, in units of the direct sum's: it is that sum, but an infinity times a zero is
// left out, which only a caller who asks for the direct methods notices.
constexpr double kSparseError = 1e-6;

using SparseKernel = decltype(&scalar::sparse_run);

// A saved module has the packed weights alone.
bool is_known(const Tensor& weight) {
  return !weight.is_absent();
}

int64_t most_nonzeros(const Tensor& weight) {
  return static_cast<int64_t>((1 - kLeastZeros) * static_cast<double>(weight.size()));
}

int64_t nonzeros_of(const Tensor& weight) {
  const float* w = weight.as<float>();
  return weight.size() - std::count(w, w + weight.size(), 0.0f);
}

// The runs of pixels that tasks are made of, and the output channels of a task.
struct SparsePlan {
  int64_t pixels = 0, runs = 0;
  int64_t channels = 0, parts = 0;
  int64_t width = 0;  // floats of a channel that are gathered
  TaskSplit split;

  static SparsePlan of(const ConvShape& s, int64_t nonzeros, int64_t lanes) {
    constexpr int64_t kMaxParts = 4;  // each gathers anew
    SparsePlan plan;
    plan.pixels = s.oh * s.ow;
    const int64_t vectors = ceil_div(plan.pixels, lanes);
    plan.runs = ceil_div(vectors, kSparseVectors);
    plan.width = round_up(ceil_div(vectors, std::max<int64_t>(1, plan.runs)), 2) * lanes;
    plan.channels = s.oc;
    const int64_t work = 2 * nonzeros * plan.pixels * s.n;
    const int64_t wanted = ceil_div(worthwhile_tasks(work), std::max<int64_t>(1, plan.runs * s.n));
    plan.parts = std::clamp<int64_t>(wanted, 1, std::min(kMaxParts, s.oc));
    plan.split = TaskSplit::of(s.n * plan.runs * plan.parts, work, s.ic * plan.width * 4);
    return plan;
  }
};

struct SparseCall {
  SparsePlan plan;
  ConvOperands args;
};

class SparseStep final : public ConvStep {
 public:
  SparseStep(const ConvProblem& problem, const Candidate& candidate, const Target& target, PackedStore& packed)
      : ConvStep(problem, ConvArguments::of(candidate, problem, target)),
        nonzeros_(value_of(candidate.schedule, "nonzeros")),
        lanes_(target.lanes()),
        kernel_(NEO_PICK_TIER(target.isa, sparse_run)) {
    static_assert(sizeof(SparseWeight) == 2 * sizeof(float));
    NEO_CHECK(nonzeros_ >= 0 && nonzeros_ <= geometry_.oc * geometry_.ic, Model, "load",
              "a sparse convolution must have at most all of its weights. Got ", nonzeros_);
    const Tensor& dense = *problem.weight->constant;
    const int64_t size = geometry_.oc + 1 + 2 * nonzeros_;
    weights_ = packed.floats(size, {problem.weight}, [&](float* to) { pack(dense, to); });
    if (problem.bias) bias_ = packed.constant(*problem.bias);
    if (is_sound()) return;
    // A benchmark hands out any memory, since what is packed seldom matters to the time.
    NEO_CHECK(is_known(dense), Model, "load", "the weights of a sparse convolution must be of its channels");
    weights_ = Tensor(DType::Float32, {size});
    pack(dense, weights_.as<float>());
  }

  Prepared prepare(std::span<const Arg> args) const override {
    SparseCall call;
    call.plan = SparsePlan::of(shape_at(args), nonzeros_, lanes_);
    call.args = bind(args);
    return Prepared::of(call, call.plan.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const SparseCall*>(prepared);
    const ConvOperands a = arguments_.at(call.args, args);
    run_tasks_with<float>(team, call.plan.split, scratch, [&](int64_t begin, int64_t end, float* gathered) {
      for (int64_t task = begin; task < end; ++task) run_task(call.plan, a, task, gathered);
    });
  }

 private:
  // Where each output channel's weights begin, then the weights.
  int32_t* starts(float* packed) const { return reinterpret_cast<int32_t*>(packed); }
  SparseWeight* weights(float* packed) const { return reinterpret_cast<SparseWeight*>(packed + geometry_.oc + 1); }

  void pack(const Tensor& dense, float* to) const {
    NEO_ASSERT(is_known(dense) && nonzeros_of(dense) == nonzeros_, "a schedule is of its weights");
    const float* from = dense.as<float>();
    int32_t count = 0;
    for (int64_t k = 0; k < geometry_.oc; ++k) {
      starts(to)[k] = count;
      for (int64_t c = 0; c < geometry_.ic; ++c) {
        const float value = from[k * geometry_.ic + c];
        if (value != 0.0f) weights(to)[count++] = {static_cast<int32_t>(c), value};
      }
    }
    starts(to)[geometry_.oc] = count;
  }

  // Whether what is packed keeps to the weights and channels that there are.
  bool is_sound() const {
    auto* packed = weights_.as<float>();
    const int32_t* begin = starts(packed);
    const bool rises = std::is_sorted(begin, begin + geometry_.oc + 1) && begin[0] == 0;
    return rises && begin[geometry_.oc] == nonzeros_ &&
           std::all_of(weights(packed), weights(packed) + nonzeros_,
                       [&](const SparseWeight& w) { return w.channel >= 0 && w.channel < geometry_.ic; });
  }

  void run_task(const SparsePlan& plan, const ConvOperands& a, int64_t task, float* gathered) const {
    const IndexRange channels = even_part(plan.channels, plan.parts, task % plan.parts);
    const int64_t image = task / plan.parts / plan.runs;
    const IndexRange vectors = even_part(ceil_div(plan.pixels, lanes_), plan.runs, task / plan.parts % plan.runs);
    const int64_t first = vectors.begin * lanes_;
    const int32_t* begin = starts(weights_.as<float>());
    const SparseWeight* packed = weights(weights_.as<float>());
    SparseRun run;
    run.src = gathered;
    run.src_channel = plan.width;
    run.pixels = std::min(plan.pixels, vectors.end * lanes_) - first;
    for (int64_t c = 0; c < geometry_.ic; ++c) {
      std::memcpy(gathered + c * plan.width, a.src + image * a.src_batch + c * a.src_channel + first,
                  static_cast<size_t>(run.pixels) * sizeof(float));
    }
    run.lo = a.lo;
    run.hi = a.hi;
    for (int64_t k = channels.begin; k < channels.end; ++k) {
      run.begin = packed + begin[k];
      run.end = packed + begin[k + 1];
      run.bias = a.bias ? a.bias[k] : 0.0f;
      if (a.residual) run.residual = a.residual + image * a.residual_batch + k * a.residual_channel + first;
      run.dst = a.dst + image * a.dst_batch + k * a.dst_channel + first;
      kernel_(run);
      if (a.activation) a.activation(run.dst, run.pixels);
    }
  }

  int64_t nonzeros_;
  int64_t lanes_;
  SparseKernel kernel_;
  Tensor weights_;
};

// A 1x1 convolution with many zeros among its weights.
class SparseRoutine final : public RoutineOf<SparseRoutine, ConvRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/sparse_pointwise"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Tensor& weight = *read_conv(workload, nullptr)->weight->constant;
    if (!is_known(weight)) return {};
    return {candidate_of(workload, target, nonzeros_of(weight))};
  }

  // The weights say how many are zeros; where a saved module no longer has them, its schedule does.
  Space space(const Workload& workload, const Target&) const override {
    const Tensor& weight = *read_conv(workload, nullptr)->weight->constant;
    if (is_known(weight)) return {};
    std::vector<int64_t> counts(static_cast<size_t>(most_nonzeros(weight)) + 1);
    std::iota(counts.begin(), counts.end(), 0);
    return Space({{"nonzeros", std::move(counts)}}, [](std::span<const int64_t>) { return true; });
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, target, value_of(schedule, "nonzeros"));
  }

  static Candidate candidate_of(const Workload& workload, const Target& target, int64_t nonzeros) {
    // Vector FMAs in the time of a product with all vectors of a run, from the first cache and from the second; the
    // least that a weight takes, what an output channel takes to begin, and a vector and a channel that are gathered.
    constexpr double kNear = 1.3, kFar = 2.4, kLeast = 9, kChannel = 40, kVector = 3, kGather = 20;
    const ConvProblem problem = *read_conv(workload, nullptr);
    const ConvShape s = problem.hint_shape();
    const SparsePlan plan = SparsePlan::of(s, nonzeros, target.lanes());
    const double vectors = static_cast<double>(ceil_div(plan.pixels, target.lanes()));
    const double width = vectors / static_cast<double>(std::max<int64_t>(1, plan.runs));
    const double run_bytes = width * static_cast<double>(target.lanes() * s.ic) * 4;
    const double product = std::max(kLeast, width * (run_bytes > 24576 ? kFar : kNear));
    const double cycles = static_cast<double>(s.n * plan.runs) *
                          (static_cast<double>(nonzeros) * product + static_cast<double>(s.oc) * kChannel +
                           static_cast<double>(s.ic * plan.parts) * (width * kVector + kGather));
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(cycles, target);
    load.bytes = problem.traffic_bytes(1, 1);
    load.constant_bytes = static_cast<double>(nonzeros) * 8;
    load.tasks = plan.split.serial ? 1 : static_cast<double>(plan.split.tasks);
    Candidate c = conv_candidate(workload, problem, 1, 1);
    c.schedule = {{"nonzeros", nonzeros}};
    c.cost.time_us = unfitted_us(load, target) + activation_us(problem.epilogue, *problem.y, target);
    c.cost.error = kSparseError;
    c.cost.workspace_bytes = plan.split.scratch_bytes();
    c.cost.packed_bytes = (2 * nonzeros + s.oc + 1 + (problem.bias ? s.oc : 0)) * 4;
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<SparseStep>(*read_conv(*candidate.workload, nullptr), candidate, target, packed);
  }

 protected:
  const char* rejects_activation(const ConvProblem&, const Target&) const override { return nullptr; }

  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (!problem.geometry.is_pointwise()) return "not a 1x1 convolution of one group and stride one without padding";
    const Tensor& weight = *problem.weight->constant;
    if (weight.is_splat()) return "all weights are alike";
    if (is_known(weight) && nonzeros_of(weight) > most_nonzeros(weight))
      return "fewer than 60 % of the weights are zeros";
    return std::nullopt;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(sparse_pointwise, SparseRoutine)

}  // namespace neo
