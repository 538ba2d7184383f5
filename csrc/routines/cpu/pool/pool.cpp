#include "routines/cpu/pool/pool.h"

#include <algorithm>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/pool/pool_shape.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void pool_tasks(const PoolArgs&, int64_t, int64_t);
                  void pool_plain_tasks(const PoolArgs&, int64_t, int64_t);
                  void global_pool_tasks(const GlobalPoolArgs&, int64_t, int64_t))

namespace neo {
namespace {

constexpr int kMinRank = 3;
constexpr int kMaxPoolRank = 5;

using PoolKernel = decltype(&scalar::pool_tasks);
using GlobalPoolKernel = decltype(&scalar::global_pool_tasks);

std::optional<std::string> rejects_input(const Workload& workload, const Target&) {
  const Value* input = workload.root().inputs.front();
  if (!input->type.is_tensor() || !input->shape().has_rank() || input->dtype() != DType::Float32) {
    return "the input is not a float32 tensor of known rank";
  }
  const int rank = input->shape().rank();
  if (rank < kMinRank || rank > kMaxPoolRank) return "the input has not 1 to 3 spatial axes";
  if (!workload.outputs.front()->shape().has_rank()) return "the rank of the result is not known";
  return std::nullopt;
}

}  // namespace

PoolShape pool_shape(const Window& window, const Arg& src, const Arg& dst, int64_t lanes) {
  PoolShape s;
  s.images = src.dims[0];
  s.channels = src.dims[1];
  s.planes = ceil_div(src.dims[1], lanes);
  s.src_image = src.strides[0];
  s.src_plane = src.strides[1];
  s.dst_image = dst.strides[0];
  s.dst_plane = dst.strides[1];
  const int rank = window.rank();
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    PoolAxis& a = s.axis[3 - rank + i];
    a.input = src.dims[at + 2];
    a.output = dst.dims[at + 2];
    a.kernel = window.kernel[at];
    a.stride = window.strides[at];
    a.dilation = window.dilations[at];
    a.pad = window_pad_begin(window, i, a.kernel, a.input);
    a.padded = a.input + window_pad_total(window, i, a.kernel, a.input);
    a.src = src.strides[at + 2];
    a.dst = dst.strides[at + 2];
  }
  return s;
}

namespace {

struct PoolCall {
  PoolShape shape;
  TaskSplit split;
};

class PoolStep final : public KernelStep {
 public:
  PoolStep(Window window, bool average, bool include_pad, bool blocked, PoolKernel kernel)
      : window_(std::move(window)), average_(average), include_pad_(include_pad), blocked_(blocked), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& src = args[0];
    const Arg& dst = args[1];
    const int64_t lanes = blocked_ ? src.layout.block_of(1) : 1;
    PoolCall call;
    call.shape = pool_shape(window_, src, dst, lanes);
    PoolShape& s = call.shape;
    s.average = average_;
    s.include_pad = include_pad_;
    const PoolAxis& width = s.axis[2];
    NEO_ASSERT((width.src == lanes || width.input <= 1) && (width.dst == lanes || width.output <= 1),
               "rows of a pool are dense");
    call.split = TaskSplit::of(s.rows(), s.rows() * width.output * lanes * s.taps(),
                               blocked_ ? 0 : call.shape.plain_workspace() * 4);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const PoolCall*>(prepared);
    PoolArgs p;
    p.shape = call.shape;
    p.src = reinterpret_cast<const float*>(args[0]);
    p.dst = reinterpret_cast<float*>(args[1]);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      PoolArgs mine = p;
      mine.workspace = workspace;
      kernel_(mine, begin, end);
    });
  }

 private:
  Window window_;
  bool average_;
  bool include_pad_;
  bool blocked_;
  PoolKernel kernel_;
};

// MaxPool and AveragePool over channel blocks, or over the plain layout.
template <bool kBlocked>
class PoolRoutine final : public RoutineOf<PoolRoutine<kBlocked>> {
 public:
  std::string_view name() const override { return kBlocked ? "cpu:float32/pool_nchwc" : "cpu:float32/pool_nchw"; }
  std::vector<std::string_view> roots() const override { return {"MaxPool", "AveragePool"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    if (auto why = rejects_input(workload, target)) return why;
    if (workload.outputs.size() > 1) return "the indices of the maxima are wanted";
    if (!workload.root().output(0)) return "only the indices are wanted";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    Candidate c;
    c.inputs.emplace_back(plain_schema(workload.inputs.front()->type));
    c.outputs.push_back(plain_schema(workload.outputs.front()->type));
    if (kBlocked) {
      const Layout layout = Layout::channel_blocked(c.outputs.front().layout.rank(), target.lanes());
      c.inputs.front()->layout = layout;
      c.outputs.front().layout = layout;
    }
    price(c, workload, kBlocked ? blocked_load(workload, target) : plain_load(workload, target), target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    return std::make_unique<PoolStep>(
        read_window(node, node.inputs.front()->shape().rank() - 2), node.op == "AveragePool",
        node.int_attr("count_include_pad", 0) != 0, kBlocked,
        kBlocked ? NEO_PICK_TIER(target.isa, pool_tasks) : NEO_PICK_TIER(target.isa, pool_plain_tasks));
  }

 private:
  static StepLoad blocked_load(const Workload& workload, const Target& target) {
    const Dims y = workload.outputs.front()->shape().hint_dims();
    double taps = 1, rows = 1;
    for (int64_t k : read_window(workload.root(), static_cast<int>(y.size()) - 2).kernel)
      taps *= static_cast<double>(k);
    for (size_t i = 0; i + 1 < y.size(); ++i)
      rows *= static_cast<double>(i == 1 ? ceil_div(y[i], int64_t{target.lanes()}) : y[i]);
    const double vectors = rows * static_cast<double>(y.back());
    constexpr double kVectorCycles = 3;
    const bool is_serial = TaskSplit::of(2, static_cast<int64_t>(vectors * taps) * target.lanes()).serial;
    return {StepFamily::Pool, vectors * (taps + kVectorCycles), rows, is_serial ? 1.0 : target.threads};
  }

  // The vectors of a row of the input and of one of the output.
  static StepLoad plain_load(const Workload& workload, const Target& target) {
    const Node& node = workload.root();
    const Shape& x = node.inputs.front()->shape();
    const Shape& y = workload.outputs.front()->shape();
    const Window window = read_window(node, x.rank() - 2);
    const auto vectors = [&](const Dim& d) { return static_cast<double>(ceil_div(d.hint(), target.lanes())); };
    double above = 1, rows = 1;
    for (int i = 0; i + 1 < window.rank(); ++i) above *= static_cast<double>(window.kernel[static_cast<size_t>(i)]);
    for (int i = 0; i + 1 < y.rank(); ++i) rows *= static_cast<double>(y[i].hint());
    const int64_t stride = window.strides.back();
    const double tap = stride == 1 ? 1 : stride == 2 ? 3 : 20;
    const double row = vectors(x[x.rank() - 1]) * (above + 1) +
                       vectors(y[y.rank() - 1]) * (tap * static_cast<double>(window.kernel.back()) + 1);
    const double work =
        rows * static_cast<double>(y[y.rank() - 1].hint()) * above * static_cast<double>(window.kernel.back());
    const bool is_serial = TaskSplit::of(2, static_cast<int64_t>(work)).serial;
    return {StepFamily::PlainPool, rows * row, rows, is_serial ? 1.0 : target.threads};
  }
};

struct GlobalPoolCall {
  GlobalPoolArgs args;
  TaskSplit split;
};

class GlobalPoolStep final : public KernelStep {
 public:
  GlobalPoolStep(bool average, GlobalPoolKernel kernel) : average_(average), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& src = args[0];
    const Arg& dst = args[1];
    GlobalPoolCall call;
    GlobalPoolArgs& g = call.args;
    const int64_t lanes = src.layout.block_of(1);
    g.channels = src.dims[1];
    g.planes = ceil_div(g.channels, lanes);
    for (size_t i = 2; i < src.dims.size(); ++i) g.positions *= src.dims[i];
    NEO_ASSERT(src.is_dense() && dst.is_dense(), "a global pool takes whole planes");
    g.src_image = src.strides[0];
    g.src_plane = src.strides[1];
    g.blocked_dst = dst.layout.is_blocked();
    g.dst_image = dst.strides[0];
    g.dst_plane = g.blocked_dst ? dst.strides[1] : lanes;
    g.average = average_;
    const int64_t tasks = src.dims[0] * g.planes;
    call.split = TaskSplit::of(tasks, tasks * g.positions * lanes * 4);
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const GlobalPoolCall*>(prepared);
    GlobalPoolArgs g = call.args;
    g.src = reinterpret_cast<const float*>(args[0]);
    g.dst = reinterpret_cast<float*>(args[1]);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) { kernel_(g, begin, end); });
  }

 private:
  bool average_;
  GlobalPoolKernel kernel_;
};

// True where a reduction is over all spatial axes and nothing else.
bool reduces_planes(const Node& node) {
  if (node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool") return true;
  const int rank = node.inputs.front()->shape().rank();
  const Value* given = node.input(1);
  if (!given || !given->constant) return false;
  std::vector<int64_t> axes = load_ints(*given->constant);
  for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return static_cast<int>(axes.size()) == rank - 2 && axes.front() == 2;
}

// Global pools, and the reductions that are ones, over channel blocks. The result is as plain as it is blocked.
class GlobalPoolRoutine final : public RoutineOf<GlobalPoolRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/global_pool_nchwc"; }
  std::vector<std::string_view> roots() const override {
    return {"GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    if (auto why = rejects_input(workload, target)) return why;
    const Node& node = workload.root();
    if (!reduces_planes(node)) return "it does not reduce all spatial axes and no other";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* output = workload.outputs.front();
    const int rank = workload.inputs.front()->shape().rank();
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    c.inputs.front() = plain_schema(workload.inputs.front()->type);
    c.inputs.front()->layout = Layout::channel_blocked(rank, target.lanes());
    c.outputs.push_back(plain_schema(output->type));
    const double vectors = schema_bytes(workload.inputs.front()->type, *c.inputs.front()) / (4 * target.lanes());
    const Dims x = workload.inputs.front()->shape().hint_dims();
    const double planes = static_cast<double>(x[0] * ceil_div(x[1], int64_t{target.lanes()}));
    const bool is_serial = TaskSplit::of(static_cast<int64_t>(planes), static_cast<int64_t>(64 * vectors)).serial;
    price(c, workload, {StepFamily::GlobalPool, vectors, planes, is_serial ? 1.0 : target.threads}, target);
    std::vector<Candidate> all{c};
    if (output->shape().rank() == rank) {
      c.outputs.front().layout = c.inputs.front()->layout;
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const std::string& op = candidate.workload->root().op;
    return std::make_unique<GlobalPoolStep>(op == "GlobalAveragePool" || op == "ReduceMean",
                                            NEO_PICK_TIER(target.isa, global_pool_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(pool_nchwc, PoolRoutine<true>)
NEO_DEFINE_ROUTINE(pool_nchw, PoolRoutine<false>)
NEO_DEFINE_ROUTINE(global_pool, GlobalPoolRoutine)

}  // namespace neo
