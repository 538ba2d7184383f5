#include "routines/cpu/reduce/typed_reduce.h"

#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/reduce/run_time_axes.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void typed_reduce_tasks(const TypedReduceArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

// Vectors where a row or the columns fill them, else elements one by one; the lanes of a long row are compared in the
// end.
StepLoad positions_load(const ReduceShape& shape, int64_t lanes, const Target& target) {
  const auto outer = static_cast<double>(shape.outer), along = static_cast<double>(shape.along);
  const bool is_serial = shape.outer * shape.along * shape.inner <= kSerialReduced;
  StepLoad load{StepFamily::Positions};
  load.tasks = is_serial ? 1 : target.threads;
  if (shape.inner > 1) {
    load.cycles = outer * along * static_cast<double>(shape.inner / lanes + shape.inner % lanes);
  } else if (shape.along < lanes || lanes == 1) {
    load.cycles = outer * along;
  } else {
    load.cycles = outer * static_cast<double>(ceil_div(shape.along, lanes));
    load.runs = outer;
  }
  return load;
}

// Reductions of integers, truth values and float64; positions of extremes, of float32 too.
class TypedReduceRoutine final : public RoutineOf<TypedReduceRoutine> {
 public:
  std::string_view name() const override { return "cpu/reduce"; }
  std::vector<std::string_view> roots() const override {
    return {"ReduceSum", "ReduceMean",      "ReduceMax",     "ReduceMin",         "ReduceL1",
            "ReduceL2",  "ReduceSumSquare", "ReduceLogSum",  "ReduceLogSumExp",   "ReduceProd",
            "ArgMax",    "ArgMin",          "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* x = node.inputs.front();
    if (!x->type.is_tensor() || !x->shape().has_rank() || !workload.outputs.front()->shape().has_rank())
      return "a rank is not known";
    const auto kind = reduce_kind(node);
    if (!kind) return "there is no kernel for its power";
    const auto lane = lane_of(x->dtype());
    if (!lane || !has_typed_reduce(*kind, *lane)) return "there is no kernel for its dtype";
    if (!reduced_run(node) && !has_run_time_axes(node)) return "the axes are not known neighbours";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* x = workload.root().inputs.front();
    Candidate c = reduction_candidate(workload);
    const Node& node = workload.root();
    const bool finds = node.op == "ArgMax" || node.op == "ArgMin";
    const ReduceShape shape = shape_along(x->shape().hint_dims(), likely_run(node));
    price(c, workload,
          finds
              ? positions_load(shape, x->dtype() == DType::Float32 ? target.lanes() : 1, target)
              : reduction_load(StepFamily::TypedReduce, shape, static_cast<double>(item_bytes(x->dtype())) / 4, target),
          target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const DType dtype = node.inputs.front()->dtype();
    TypedReduceArgs args;
    args.kind = *reduce_kind(node);
    args.lane = *lane_of(dtype);
    args.select_last = node.int_attr("select_last_index", 0) != 0;
    args.is_truth = dtype == DType::Bool;
    return make_reduction(candidate, target, ops, args, reduced_run(node),
                          NEO_PICK_TIER(target.isa, typed_reduce_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_reduce, TypedReduceRoutine)

}  // namespace neo
