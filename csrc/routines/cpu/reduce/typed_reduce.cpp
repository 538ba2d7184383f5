#include "routines/cpu/reduce/typed_reduce.h"

#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void typed_reduce_tasks(const TypedReduceArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

// Reductions of integers, truth values and float64; positions of extremes, of float32 too.
class TypedReduceRoutine final : public Routine {
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
    if (!reduced_run(node)) return "the axes are not known neighbours";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    // Of as many elements as a vector of float32 has.
    constexpr double kVectorCycles = 4;
    const Value* x = workload.root().inputs.front();
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    c.inputs.front() = plain_schema(x->type);
    c.outputs.push_back(plain_schema(workload.outputs.front()->type));
    StepLoad load;
    const auto elements = static_cast<double>(x->shape().element_count().hint());
    load.arithmetic_us = cycles_us(kVectorCycles * elements / static_cast<double>(target.lanes()), target);
    load.bytes = 0.7 * static_cast<double>(workload.work(ops).bytes.hint());  // nearly all reading
    load.tasks = load.bytes > kSerialBytes ? target.threads : 1;
    c.cost.time_us = step_us(load, target);
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const DType dtype = node.inputs.front()->dtype();
    TypedReduceArgs args;
    args.kind = *reduce_kind(node);
    args.lane = *lane_of(dtype);
    args.select_last = node.int_attr("select_last_index", 0) != 0;
    args.is_truth = dtype == DType::Bool;
    return std::make_unique<ReductionStep<TypedReduceArgs>>(args, *reduced_run(node),
                                                            NEO_PICK_TIER(target.isa, typed_reduce_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_reduce, TypedReduceRoutine)

}  // namespace neo
