#include <algorithm>

#include "ops/slice.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/scatter.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

using Reason = std::optional<std::string>;

bool is_index(const Value* v) {
  return v->dtype() == DType::Int64 || v->dtype() == DType::Int32;
}

Reason rejects_moved(const Node&) {
  return std::nullopt;
}

Reason rejects_elements(const Node& node) {
  if (!is_index(node.inputs[1])) return "the indices are neither int32 nor int64";
  if (node.inputs[0]->shape().rank() == 0) return "the input has no axis";
  const bool reduces = node.op == "ScatterElements" && scatter_reduction(node) != ScatterReduction::None;
  if (reduces && !has_combine(node.inputs[0]->dtype())) return "there is no kernel that reduces its dtype";
  return std::nullopt;
}

Reason rejects_unpool(const Node& node) {
  return is_index(node.inputs[1]) ? Reason() : "the indices are neither int32 nor int64";
}

Reason rejects_non_zero(const Node& node) {
  return lane_of(node.inputs[0]->dtype()) ? Reason() : "there is no kernel for its dtype";
}

Reason rejects_floats(const Node& node) {
  return node.inputs[0]->dtype() == DType::Float32 && node.inputs[1]->dtype() == DType::Float32
             ? Reason()
             : "there is no kernel for its dtype";
}

Reason rejects_sums(const Node& node) {
  const DType dtype = node.inputs[0]->dtype();
  return dtype == DType::Float32 || dtype == DType::Float64 ? Reason() : "there is no kernel for its dtype";
}

Reason rejects_window(const Node& node) {
  const DType dtype = node.outputs.front()->dtype();
  return dtype == DType::Float32 || dtype == DType::Float64 ? Reason() : "there is no kernel for its dtype";
}

Reason rejects_unique(const Node& node) {
  const Value* x = node.inputs[0];
  const auto lane = lane_of(x->dtype());
  if (!lane || is_half(*lane)) return "there is no kernel for its dtype";
  if (node.has_attr("axis") && x->shape().rank() != 1) return "it compares slices, not elements";
  return std::nullopt;
}

Reason rejects_slice(const Node& node) {
  return slice_ranges(node) && !makes_sizes(node) ? "where the parts begin is known" : Reason();
}

Reason rejects_range(const Node& node) {
  const DType dtype = node.outputs.front()->dtype();
  const bool has_kernel =
      dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Int32 || dtype == DType::Int64;
  return has_kernel ? Reason() : "there is no kernel for its dtype";
}

using HostFunction = void (*)(ReferenceContext& ctx, Team& team);

// A function that needs no team.
template <NodeFunction function>
void alone(ReferenceContext& ctx, Team&) {
  function(ctx);
}

struct HostOperator {
  std::string_view op;
  Reason (*rejects)(const Node& node);
  HostFunction run;
  double element_cycles;  // for each element of an input or the result
};

class HostFunctionStep final : public NodeStep {
 public:
  HostFunctionStep(const Candidate& candidate, const OpRegistry& ops, HostFunction function)
      : NodeStep(candidate, ops), function_(function) {}

 private:
  void compute(ReferenceContext& ctx, Team& team) const override { function_(ctx, team); }

  HostFunction function_;
};

constexpr HostOperator kOperators[] = {
    {"AffineGrid", rejects_sums, alone<run_affine_grid>, 1},
    {"BlackmanWindow", rejects_window, alone<run_window>, 2},
    {"Col2Im", rejects_sums, run_col2im, 1},
    {"Compress", rejects_moved, alone<run_compress>, 1},
    {"GatherElements", rejects_elements, alone<run_gather_elements>, 1},
    {"HammingWindow", rejects_window, alone<run_window>, 2},
    {"HannWindow", rejects_window, alone<run_window>, 2},
    {"MaxRoiPool", rejects_floats, run_max_roi_pool, 5},
    {"MaxUnpool", rejects_unpool, alone<run_max_unpool>, 1},
    {"NegativeLogLikelihoodLoss", rejects_sums, alone<run_class_loss>, 0.1},
    {"NonMaxSuppression", rejects_floats, alone<run_non_max_suppression>, 20},
    {"NonZero", rejects_non_zero, alone<run_non_zero>, 1},
    {"Range", rejects_range, alone<run_range>, 0.5},
    {"ReverseSequence", rejects_moved, alone<run_reverse_sequence>, 0.5},
    {"RoiAlign", rejects_floats, alone<run_roi_align>, 5},
    {"ScatterElements", rejects_elements, alone<run_scatter_elements>, 1},
    {"Slice", rejects_slice, alone<reference_slice>, 0.5},
    {"Unique", rejects_unique, alone<run_unique>, 4},
};

const HostOperator& host_operator(std::string_view op) {
  return *std::find_if(std::begin(kOperators), std::end(kOperators), [=](const HostOperator& o) { return o.op == op; });
}

// Operators whose inputs say where elements go, or how many there are: on the host, where an index outside its axis can
// be an error.
class IndexRoutine final : public RoutineOf<IndexRoutine> {
 public:
  std::string_view name() const override { return "cpu/index"; }
  std::vector<std::string_view> roots() const override {
    std::vector<std::string_view> ops;
    for (const HostOperator& o : kOperators) ops.push_back(o.op);
    return ops;
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor() || !v->shape().has_rank()) return "the rank of an input is not known";
      if (v->dtype() == DType::String) return "strings have owners of their own";
    }
    return host_operator(node.op).rejects(node);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    double elements = 0;
    for (const auto* values : {&workload.inputs, &workload.outputs}) {
      for (const Value* v : *values) {
        if (v->shape().has_rank()) elements += static_cast<double>(v->shape().element_count().hint());
      }
    }
    // The family's cycles are fitted to elements of the result alone.
    constexpr double kOperandShare = 0.4;
    const double cycles = kOperandShare * host_operator(workload.root().op).element_cycles * elements;
    price(c, workload, {StepFamily::GatherElements, cycles, 1, 1}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry& ops,
                                         PackedStore&) {
    return std::make_unique<HostFunctionStep>(candidate, ops, host_operator(candidate.workload->root().op).run);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(index, IndexRoutine)

}  // namespace neo
