#include "routines/cpu/lrn/lrn.h"

#include "base/check.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void lrn_tasks(const LrnArgs&, int64_t, int64_t);
                  void lrn_blocked_tasks(const LrnArgs&, int64_t, int64_t))

namespace neo {
namespace {

constexpr int kMinBlockedRank = 3;
constexpr int kMaxBlockedRank = 5;

using LrnKernel = decltype(&scalar::lrn_tasks);

int64_t window_of(const Node& node) {
  return node.int_attr("size", 1);
}

struct LrnCall {
  LrnArgs args;
  TaskSplit split;
};

class LrnStep final : public KernelStep {
 public:
  LrnStep(const Node& node, bool blocked, LrnKernel kernel) : blocked_(blocked), kernel_(kernel) {
    const int64_t size = window_of(node);
    shape_.before = (size - 1) / 2;
    shape_.after = size / 2;
    shape_.scale = static_cast<float>(static_cast<double>(node.float_attr("alpha", 1e-4f)) / static_cast<double>(size));
    shape_.bias = static_cast<float>(node.float_attr("bias", 1));
    shape_.beta = static_cast<float>(node.float_attr("beta", 0.75));
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& src = args[0];
    NEO_ASSERT(src.is_dense() && args[1].is_dense(), "an LRN takes whole images");
    LrnCall call;
    LrnArgs& a = call.args = shape_;
    const int64_t lanes = blocked_ ? src.layout.block_of(1) : 1;
    a.images = src.dims[0];
    a.channels = src.dims[1];
    for (size_t i = 2; i < src.dims.size(); ++i) a.pixels *= src.dims[i];
    a.image = ceil_div(a.channels, lanes) * lanes * a.pixels;
    const int64_t tasks = a.images * ceil_div(a.channels, blocked_ ? lanes : kLrnChannels) *
                          ceil_div(a.pixels, blocked_ ? kLrnBlock : kLrnPixels);
    call.split = TaskSplit::of(tasks, a.images * a.image * (a.before + a.after + 20));
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const LrnCall*>(prepared);
    LrnArgs a = call.args;
    a.src = reinterpret_cast<const float*>(args[0]);
    a.dst = reinterpret_cast<float*>(args[1]);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) { kernel_(a, begin, end); });
  }

 private:
  LrnArgs shape_;
  bool blocked_;
  LrnKernel kernel_;
};

// LRN over channel blocks, or over the plain layout.
template <bool kBlocked>
class LrnRoutine final : public RoutineOf<LrnRoutine<kBlocked>> {
 public:
  std::string_view name() const override { return kBlocked ? "cpu:float32/lrn_nchwc" : "cpu:float32/lrn_nchw"; }
  std::vector<std::string_view> roots() const override { return {"LRN"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    const Value* input = workload.root().inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank() || input->dtype() != DType::Float32) {
      return "the input is not a float32 tensor of known rank";
    }
    if (!workload.outputs.front()->shape().has_rank()) return "the rank of the result is not known";
    if (window_of(workload.root()) < 1) return "the window is empty";
    const int rank = input->shape().rank();
    if (rank < 2) return "the input has no channels";
    if (!kBlocked) return std::nullopt;
    if (rank < kMinBlockedRank || rank > kMaxBlockedRank) return "the input has not 1 to 3 spatial axes";
    if (window_of(workload.root()) / 2 > target.lanes()) return "the window is wider than the blocks beside its own";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    Candidate c;
    c.inputs.emplace_back(plain_schema(workload.inputs.front()->type));
    c.outputs.push_back(plain_schema(workload.outputs.front()->type));
    if (kBlocked) {
      const Layout layout = Layout::channel_blocked(c.outputs.front().layout.rank(), target.lanes());
      c.inputs.front()->layout = layout;
      c.outputs.front().layout = layout;
    }
    price(c, workload, {StepFamily::Lrn, static_cast<double>(workload.work(ops).flops.hint()) / target.lanes(), 1},
          target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<LrnStep>(
        candidate.workload->root(), kBlocked,
        kBlocked ? NEO_PICK_TIER(target.isa, lrn_blocked_tasks) : NEO_PICK_TIER(target.isa, lrn_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(lrn_nchwc, LrnRoutine<true>)
NEO_DEFINE_ROUTINE(lrn_nchw, LrnRoutine<false>)

}  // namespace neo
