#include <algorithm>
#include <cstring>

#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

struct GatherCall {
  int64_t outer = 1;
  int64_t size = 1;  // of the axis
  int64_t run = 1;   // elements behind one index
  TaskSplit split;
};

// Copies runs of elements, one task per outer index and index.
class GatherStep final : public KernelStep {
 public:
  GatherStep(int axis, std::vector<int64_t> indices) : axis_(axis), indices_(std::move(indices)) {}

  Prepared prepare(std::span<const Arg> args) const override {
    GatherCall call;
    const Dims& dims = args[0].dims;
    for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
      const int64_t d = dims[static_cast<size_t>(i)];
      (i < axis_ ? call.outer : i == axis_ ? call.size : call.run) *= d;
    }
    call.run *= item_bytes(args[0].dtype);
    const int64_t count = call.outer * static_cast<int64_t>(indices_.size());
    call.split = TaskSplit::of(count, count * (call.run + 8));
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const GatherCall*>(prepared);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      switch (call.run) {
        case 1:
          return copy<1>(call, args, begin, end);
        case 2:
          return copy<2>(call, args, begin, end);
        case 4:
          return copy<4>(call, args, begin, end);
        case 8:
          return copy<8>(call, args, begin, end);
        default:
          return copy<0>(call, args, begin, end);
      }
    });
  }

 private:
  // `bytes` of a run; 0: as many as the call says.
  template <int64_t bytes>
  void copy(const GatherCall& call, std::byte* const* args, int64_t begin, int64_t end) const {
    const int64_t run = bytes > 0 ? bytes : call.run;
    const auto count = static_cast<int64_t>(indices_.size());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i / count * call.size + indices_[static_cast<size_t>(i % count)];
      std::memcpy(args[1] + i * run, args[0] + from * run, static_cast<size_t>(run));
    }
  }

  int axis_;
  std::vector<int64_t> indices_;
};

// The indices counted from the front, where all are known to lie inside the axis.
std::optional<std::vector<int64_t>> indices_of(const Node& node) {
  const Value* given = node.input(1);
  if (!given->constant) return std::nullopt;
  const Shape& shape = node.inputs.front()->shape();
  const Dim& size = shape[normalized_axis(node, shape.rank())];
  std::vector<int64_t> indices = load_ints(*given->constant);
  for (int64_t& i : indices) {
    if (i < 0 && !size.is_constant()) return std::nullopt;
    if (i < 0) i += size.value();
    if (i < 0 || i >= size.range().lo) return std::nullopt;
  }
  return indices;
}

// Gather with constant indices.
class GatherRoutine final : public RoutineOf<GatherRoutine> {
 public:
  std::string_view name() const override { return "cpu/gather"; }
  std::vector<std::string_view> roots() const override { return {"Gather"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank() || input->shape().rank() == 0 ||
        !workload.outputs.front()->shape().has_rank() || input->dtype() == DType::String) {
      return "the input is not a tensor of known rank and fixed element size";
    }
    if (!indices_of(node)) return "the indices are not known to lie inside the axis";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* input = workload.root().inputs.front();
    const Value* output = workload.outputs.front();
    Candidate c = Candidate::reading(workload, {input});
    const double bytes = schema_bytes(output->type, c.outputs.front());
    price(c, workload, {StepFamily::Gather, 0, gathered_runs(workload.root()), 0, bytes, bytes}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    return std::make_unique<GatherStep>(normalized_axis(node, node.inputs.front()->shape().rank()), *indices_of(node));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gather, GatherRoutine)

}  // namespace neo
