#include <algorithm>

#include "routines/cost/step_cost.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/families.h"

namespace neo {
namespace {

// Bytes of elements of four that are read and written while the loops of a reference visit one element; narrower
// elements take as long as these.
constexpr double kStretchBytes = 128, kStretchItem = 4;
// Visits of elements that take as long as a call takes to read attributes and to make room for its results.
constexpr double kCallVisits = 100;
// The least that sizes count for which only a call tells: a call may tell others than the hints, and the time of a
// reference grows by hundreds of times where that of a routine stays small.
constexpr double kOpenVisits = 20000;

// Whether elements keep their order, or are those of a sequence: they are copied in stretches. Other operators that
// compute nothing, such as a Transpose or a GatherElements, visit them one by one.
bool copies_in_order(const Workload& workload) {
  constexpr std::string_view kOps[] = {"Concat", "Flatten", "Identity", "Reshape", "Split", "Squeeze", "Unsqueeze"};
  const auto is_tensor = [](const Value* v) { return v->type.is_tensor(); };
  return std::ranges::find(kOps, workload.root().op) != std::end(kOps) ||
         !std::ranges::all_of(workload.inputs, is_tensor) || !std::ranges::all_of(workload.outputs, is_tensor);
}

StepLoad load_of(const Workload& workload, const Op& op, const OpRegistry& ops) {
  const auto flops = static_cast<double>(workload.work(ops).flops.hint());
  const Dim moved = op.work && flops == 0 ? op.work(workload.root()).bytes : Dim(0);
  if (op.work && flops == 0 && (moved.is(0) || copies_in_order(workload))) {
    // It copies what the operator says, or nothing: a Shape does not read its tensor. price() takes 0 as not counted.
    const double bytes = std::max(2.0, static_cast<double>(moved.hint()));
    const double call = bytes > 2 ? kCallVisits : 0;
    const Type& y = workload.outputs.front()->type;
    const double item =
        y.is_tensor() && y.dtype != DType::String ? static_cast<double>(item_bytes(y.dtype)) : kStretchItem;
    const double visits = bytes / kStretchBytes * std::max(1.0, kStretchItem / item);
    return {StepFamily::Reference, call + visits, 1, 1, bytes / 2, bytes / 2};
  }
  // Strings have no other routine.
  const auto is_string = [](const Value* v) { return v->type.is_tensor() && v->type.dtype == DType::String; };
  const bool is_of_strings =
      std::ranges::any_of(workload.inputs, is_string) || std::ranges::any_of(workload.outputs, is_string);
  double visited = 0;
  for (const auto* values : {&workload.inputs, &workload.outputs}) {
    for (const Value* v : *values) {
      if (!v->type.is_tensor() || !v->shape().has_rank()) continue;
      const Dim count = v->shape().element_count();
      visited += std::max(static_cast<double>(count.hint()), count.is_constant() || is_of_strings ? 0 : kOpenVisits);
    }
  }
  return {StepFamily::Reference, std::max(flops, visited), 1, 1};
}

// Every op by its plain loops. Takes and gives the plain layout, any dtype, any rank, sizes born at run time.
class ReferenceRoutine final : public RoutineOf<ReferenceRoutine> {
 public:
  std::string_view name() const override { return "cpu/reference"; }
  std::vector<std::string_view> roots() const override { return {}; }

  std::optional<std::string> rejects(const Workload&, const Target&) const override { return std::nullopt; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const Op& op = ops.get(workload.root().op);
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    price(c, workload, load_of(workload, op, ops), target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry& ops,
                                         PackedStore&) {
    return make_node_step(candidate, ops, ops.get(candidate.workload->root().op).reference);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(reference, ReferenceRoutine)

}  // namespace neo
