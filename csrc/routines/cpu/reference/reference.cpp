#include "routines/cost/step_cost.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/families.h"

namespace neo {
namespace {

// Every op by its plain loops. Takes and gives the plain layout, any dtype, any rank, sizes born at run time.
class ReferenceRoutine final : public RoutineOf<ReferenceRoutine> {
 public:
  std::string_view name() const override { return "cpu/reference"; }
  std::vector<std::string_view> roots() const override { return {}; }

  std::optional<std::string> rejects(const Workload&, const Target&) const override { return std::nullopt; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    ops.get(workload.root().op);
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    // An operator that computes nothing moves elements one by one.
    double moved = 0;
    for (const auto* values : {&workload.inputs, &workload.outputs}) {
      for (const Value* v : *values) {
        if (v->type.is_tensor() && v->shape().has_rank())
          moved += static_cast<double>(v->shape().element_count().hint());
      }
    }
    const auto flops = static_cast<double>(workload.work(ops).flops.hint());
    price(c, workload, {StepFamily::Reference, std::max(flops, moved), 1, 1}, target);
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
