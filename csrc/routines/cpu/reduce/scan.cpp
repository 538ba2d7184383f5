#include "routines/cpu/reduce/scan.h"

#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/reduce/run_time_axes.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void scan_tasks(const ScanArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

class ScanRoutine final : public RoutineOf<ScanRoutine> {
 public:
  std::string_view name() const override { return "cpu/scan"; }
  std::vector<std::string_view> roots() const override { return {"CumSum", "CumProd"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* x = node.inputs[0];
    if (!x->type.is_tensor() || !x->shape().has_rank() || x->shape().rank() == 0) return "the input has no known axis";
    const auto lane = lane_of(x->dtype());
    if (!lane || is_half(*lane) || lane_bytes(*lane) < 4) return "there is no kernel for its dtype";
    if (node.inputs[1]->constant && node.inputs[1]->constant->size() != 1) return "there is not one axis";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    constexpr double kElementCycles = 2;
    const Node& node = workload.root();
    const Value* x = node.inputs[0];
    Candidate c = Candidate::reading(workload, {x, has_run_time_axes(node) ? node.inputs[1] : nullptr});
    if (has_run_time_axes(node)) {
      c.kind = Candidate::Kind::Host;
    } else {
      c.in_place = workload.input_index(x);
    }
    const auto elements = static_cast<double>(x->shape().element_count().hint());
    const double bytes = 2 * elements * static_cast<double>(item_bytes(x->dtype()));
    c.cost.time_us = unfitted_us({cycles_us(kElementCycles * elements, target), bytes}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const Value* x = node.inputs[0];
    std::optional<AxisRun> run;
    if (!has_run_time_axes(node)) {
      const int axis = axis_from_front(load_ints(*node.inputs[1]->constant).front(), x->shape().rank());
      run = AxisRun{axis, axis};
    }
    ScanArgs args;
    args.lane = *lane_of(x->dtype());
    args.product = node.op == "CumProd";
    args.exclusive = node.int_attr("exclusive", 0) != 0;
    args.reverse = node.int_attr("reverse", 0) != 0;
    return make_reduction(candidate, target, ops, args, run, NEO_PICK_TIER(target.isa, scan_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(scan, ScanRoutine)

}  // namespace neo
