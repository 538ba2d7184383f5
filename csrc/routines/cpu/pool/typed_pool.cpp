#include "routines/cpu/pool/typed_pool.h"

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/pool/pool_shape.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void typed_pool_tasks(const TypedPoolArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

using TypedPoolKernel = decltype(&scalar::typed_pool_tasks);

struct TypedPoolCall {
  PoolShape shape;
  TaskSplit split;
};

class TypedPoolStep final : public KernelStep {
 public:
  // `args`: without shape and addresses. `values`, `places`: arguments, -1 where a result is not wanted.
  TypedPoolStep(const TypedPoolArgs& args, Window window, int places, TypedPoolKernel kernel)
      : args_(args), window_(std::move(window)), places_(places), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole planes");
    TypedPoolCall call;
    call.shape = pool_shape(window_, args[0], args[1], 1);
    call.shape.average = args_.shape.average;
    call.shape.include_pad = args_.shape.include_pad;
    const int64_t rows = call.shape.rows();
    call.split = TaskSplit::of(rows, rows * call.shape.axis[2].output * call.shape.taps());
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const TypedPoolCall*>(prepared);
    TypedPoolArgs p = args_;
    p.shape = call.shape;
    p.src = args[0];
    p.dst = args[1];
    p.places = places_ < 0 ? nullptr : reinterpret_cast<int64_t*>(args[places_]);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) { kernel_(p, begin, end); });
  }

 private:
  TypedPoolArgs args_;
  Window window_;
  int places_;
  TypedPoolKernel kernel_;
};

std::optional<Lane> pooled_lane(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return Lane::F32;
    case DType::Float64:
      return Lane::F64;
    case DType::Int8:
      return Lane::I8;
    case DType::UInt8:
      return Lane::U8;
    default:
      return std::nullopt;
  }
}

// Pools of other dtypes than float32, and maxima with their places.
class TypedPoolRoutine final : public RoutineOf<TypedPoolRoutine> {
 public:
  std::string_view name() const override { return "cpu/pool"; }
  std::vector<std::string_view> roots() const override { return {"MaxPool", "AveragePool"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* x = node.inputs.front();
    if (!x->type.is_tensor() || !x->shape().has_rank() || !workload.outputs.front()->shape().has_rank()) {
      return "a rank is not known";
    }
    if (x->shape().rank() < 3 || x->shape().rank() > 5) return "the input has not 1 to 3 spatial axes";
    const auto lane = pooled_lane(x->dtype());
    if (!lane || (node.op != "MaxPool" && *lane < Lane::F32)) return "there is no kernel for its dtype";
    if (!node.output(0)) return "only the indices are wanted";
    if (*lane == Lane::F32 && !node.output(1)) return "float32 without places has routines of its own";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    constexpr double kTapCycles = 1;
    Candidate c = Candidate::plain(workload);
    const Work work = workload.work(ops);
    const double arithmetic_us = cycles_us(kTapCycles * static_cast<double>(work.flops.hint()), target);
    c.cost.time_us = unfitted_us({arithmetic_us, static_cast<double>(work.bytes.hint())}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const Value* x = node.inputs.front();
    TypedPoolArgs args;
    args.shape.average = node.op == "AveragePool";
    args.lane = *pooled_lane(x->dtype());
    args.column_major = node.int_attr("storage_order", 0) != 0;
    args.shape.include_pad = node.int_attr("count_include_pad", 0) != 0;
    return std::make_unique<TypedPoolStep>(args, read_window(node, x->shape().rank() - 2), node.output(1) ? 2 : -1,
                                           NEO_PICK_TIER(target.isa, typed_pool_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_pool, TypedPoolRoutine)

}  // namespace neo
