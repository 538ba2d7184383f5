#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/reduce/typed_reduce.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void typed_reduce_tasks(const TypedReduceArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

// One where a line has its first largest element, else zero: the positions, then the elements.
template <class T>
class HardmaxStep final : public KernelStep {
 public:
  using Kernel = decltype(&scalar::typed_reduce_tasks);

  HardmaxStep(int axis, Lane lane, Kernel kernel) : axis_(axis), lane_(lane), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const ReduceShape shape = shape_along(args[0].dims, {axis_, axis_});
    return Prepared::of(shape, shape.outer * shape.inner * static_cast<int64_t>(sizeof(int64_t)));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    TypedReduceArgs call;
    call.shape = *reinterpret_cast<const ReduceShape*>(prepared);
    call.kind = ReduceKind::ArgMax;
    call.lane = lane_;
    call.src = args[0];
    call.dst = scratch;
    run_reduction(
        [this, y = reinterpret_cast<T*>(args[1])](const TypedReduceArgs& a, int64_t begin, int64_t end) {
          kernel_(a, begin, end);
          for (int64_t task = begin; task < end; ++task) write(a.shape, task, static_cast<const int64_t*>(a.dst), y);
        },
        call, team);
  }

 private:
  static void write(const ReduceShape& s, int64_t task, const int64_t* positions, T* y) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task, last = std::min(s.outer, first + s.rows_per_task);
      std::fill(y + first * s.along, y + last * s.along, T(0));
      for (int64_t row = first; row < last; ++row) y[row * s.along + positions[row]] = T(1);
      return;
    }
    const int64_t tiles = ceil_div(s.inner, kReduceColumns), outer = task / tiles;
    const int64_t first = task % tiles * kReduceColumns, columns = std::min(s.inner - first, kReduceColumns);
    T* tile = y + outer * s.along * s.inner + first;
    for (int64_t i = 0; i < s.along; ++i) std::fill_n(tile + i * s.inner, columns, T(0));
    for (int64_t j = 0; j < columns; ++j) tile[positions[outer * s.inner + first + j] * s.inner + j] = T(1);
  }

  int axis_;
  Lane lane_;
  Kernel kernel_;
};

class HardmaxRoutine final : public RoutineOf<HardmaxRoutine> {
 public:
  std::string_view name() const override { return "cpu/hardmax"; }
  std::vector<std::string_view> roots() const override { return {"Hardmax"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Value* x = workload.root().inputs.front();
    if (!x->type.is_tensor() || !x->shape().has_rank() || x->shape().rank() == 0) return "the input has no known axis";
    if (x->dtype() != DType::Float32 && x->dtype() != DType::Float64) return "there is no kernel for its dtype";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    constexpr double kElementCycles = 0.5;
    const Shape& x = workload.root().inputs.front()->shape();
    Candidate c = Candidate::plain(workload);
    const double arithmetic_us = cycles_us(kElementCycles * static_cast<double>(x.element_count().hint()), target);
    c.cost.time_us = unfitted_us({arithmetic_us, static_cast<double>(workload.work(ops).bytes.hint())}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const Value* x = node.inputs.front();
    const int axis = axis_from_front(node.int_attr("axis", -1), x->shape().rank());
    const auto kernel = NEO_PICK_TIER(target.isa, typed_reduce_tasks);
    if (x->dtype() == DType::Float64) return std::make_unique<HardmaxStep<double>>(axis, Lane::F64, kernel);
    return std::make_unique<HardmaxStep<float>>(axis, Lane::F32, kernel);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(hardmax, HardmaxRoutine)

}  // namespace neo
