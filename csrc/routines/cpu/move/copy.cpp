#include <algorithm>

#include "routines/cpu/move/copy_step.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

// Movement by strided copies, any dtype of a fixed size.
class CopyRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu/copy"; }
  std::vector<std::string_view> roots() const override {
    return {"Transpose", "Slice",        "Split",        "Concat",          "Expand",
            "Tile",      "DepthToSpace", "SpaceToDepth", "ConstantOfShape", "Identity"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const auto fits = [](const Value* v) {
      return v->type.is_tensor() && v->shape().has_rank() && v->shape().rank() <= kCopyAxes &&
             v->dtype() != DType::String;
    };
    for (const Value* v : workload.outputs) {
      if (!fits(v)) return "the result is not a tensor of known rank and fixed element size";
    }
    if (makes_sizes(node)) return "the size of the result is only known when it runs";
    if (node.op == "ConstantOfShape") return std::nullopt;
    if (!fits(node.inputs.front())) return "the input is not a tensor of known rank and fixed element size";
    if (node.op == "Concat" && !std::all_of(node.inputs.begin(), node.inputs.end(), fits))
      return "an input has no known rank";
    if (std::max(node.inputs.size(), node.outputs.size()) > kCopyParts) return "too many parts";
    if ((node.op == "Slice" || node.op == "Split") && !slice_ranges(node)) return "where the parts begin is not known";
    if (node.op == "Tile" && 2 * node.inputs.front()->shape().rank() > kCopyAxes) return "too many axes";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    Candidate c;
    Work work;
    for (const Value* v : workload.inputs) {
      const bool read = node.op == "Concat" || (v == node.inputs.front() && node.op != "ConstantOfShape");
      c.inputs.push_back(read ? std::optional(plain_schema(v->type)) : std::nullopt);
    }
    for (const Value* v : workload.outputs) {
      c.outputs.push_back(plain_schema(v->type));
      work.bytes = work.bytes + v->shape().element_count() * Dim(2 * item_bytes(v->dtype()));
    }
    c.cost.time_us = roofline_us(work, target, 1) * (node.op == "Transpose" ? 1.1 : 1);
    std::vector<Candidate> all{c};
    // Channels that become the last axis are read from their blocks, a vector at a time.
    if (node.op == "Transpose" && node.inputs[0]->dtype() == DType::Float32 && node.inputs[0]->shape().rank() >= 3 &&
        transpose_axes(node).back() == 1) {
      c.inputs[0]->layout = Layout::channel_blocked(node.inputs[0]->shape().rank(), target.lanes());
      all.push_back(std::move(c));
    }
    return all;
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<CopyStep>(make_copy_pattern(*candidate.workload), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(copy, CopyRoutine)

}  // namespace neo
