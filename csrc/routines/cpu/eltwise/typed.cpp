#include <algorithm>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/compile_typed.h"
#include "routines/cpu/eltwise/plan_space.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"

NEO_DECLARE_TIERS(void typed_tasks(const TypedArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

using TypedKernel = decltype(&scalar::typed_tasks);

// One thread is faster than two where a step takes less, of as many elements at once as a vector of float32 has.
constexpr double kSerialCycles = 65536;

struct TypedPlan {
  EltwiseSpace space;
  int64_t tile = 0;
  int64_t buffer_bytes = 0;
};

class TypedStepRun final : public KernelStep {
 public:
  TypedStepRun(CompiledTyped compiled, TypedKernel kernel) : compiled_(std::move(compiled)), kernel_(kernel) {
    serial_ = static_cast<int64_t>(kSerialCycles / compiled_.cycles);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    std::vector<const Arg*> operands;
    for (const Arg& a : args) operands.push_back(&a);
    TypedPlan plan{plan_space(operands, 0)};
    const TypedProgram& program = compiled_.program;
    // A tile that no buffer holds as a whole may be large: elements that repeat, and the last ones, take one group.
    bool is_buffered = program.registers > 0;
    for (int i = 0; i < program.inputs; ++i) {
      const EltwiseMode mode = plan.space.mode[i];
      is_buffered = is_buffered || mode == EltwiseMode::Nested || mode == EltwiseMode::Strided;
    }
    for (int i = 0; i < program.steps; ++i) {
      const int operand = -1 - program.step[i].a;
      if (!is_unary(program.step[i].op) || operand < 0) continue;
      is_buffered = is_buffered || operand >= program.inputs || plan.space.mode[operand] == EltwiseMode::Scalar;
    }
    const int64_t buffers = program.registers + program.inputs + program.constants;
    const int64_t elements = std::min(kTypedBufferBytes, kTypedCachedBytes / (buffers + 1)) / compiled_.widest;
    const int64_t held = is_buffered ? std::max(kTypedGroup, elements & -kTypedGroup) : kTypedGroup;
    NEO_ASSERT(buffers * held * compiled_.widest <= kTypedCachedBytes);
    plan.tile = is_buffered ? held : kTypedLargeTile;
    plan.buffer_bytes = held * compiled_.widest;
    plan.space.tiles = (plan.space.inner + plan.tile - 1) / plan.tile;
    return Prepared::of(plan);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& plan = *reinterpret_cast<const TypedPlan*>(prepared);
    const TypedArgs call{&compiled_.program, &plan.space, reinterpret_cast<const void* const*>(args), plan.tile,
                         plan.buffer_bytes};
    const int64_t tasks = plan.space.rows * plan.space.tiles;
    if (plan.space.rows * plan.space.inner <= serial_) {
      kernel_(call, 0, tasks);
      return;
    }
    team.parallel_for(tasks, [&](int64_t begin, int64_t end, int) { kernel_(call, begin, end); });
  }

 private:
  CompiledTyped compiled_;
  TypedKernel kernel_;
  int64_t serial_;  // elements that one thread computes faster than two
};

// One node at a time, in the lanes of its own dtypes.
class TypedRoutine final : public RoutineOf<TypedRoutine> {
 public:
  std::string_view name() const override { return "cpu/eltwise"; }
  std::vector<std::string_view> roots() const override { return typed_ops(); }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (!compile_typed(workload)) return "its dtypes or operands have no program of one node";
    if (workload.outputs.front()->shape().rank() > kEltwiseMaxAxes) return "too many axes";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CompiledTyped compiled = *compile_typed(workload);
    const Value* out = workload.outputs.front();
    Candidate c;
    std::vector<Arg> args;
    c.inputs.resize(workload.inputs.size());
    for (int i : compiled.inputs) {
      const Value* v = workload.inputs[static_cast<size_t>(i)];
      c.inputs[static_cast<size_t>(i)] = plain_schema(v->type);
      args.push_back(hint_arg(v->type, *c.inputs[static_cast<size_t>(i)]));
      if (c.in_place < 0 && v->dtype() == out->dtype() && v->shape() == out->shape() && !v->constant) c.in_place = i;
    }
    c.outputs.push_back(plain_schema(out->type));
    args.push_back(hint_arg(out->type, c.outputs.front()));
    std::vector<const Arg*> operands;
    for (const Arg& arg : args) operands.push_back(&arg);
    const EltwiseSpace space = plan_space(operands, 0);
    const auto elements = static_cast<double>(space.rows * space.inner);
    // Elements are loaded and stored, whatever is computed.
    constexpr double kPassCycles = 5;
    StepLoad load{StepFamily::TypedEltwise, (compiled.cycles + kPassCycles) * elements / target.lanes(),
                  static_cast<double>(space.rows)};
    load.cycles += nested_cycles(space, operands.size());
    load.tasks = elements * compiled.cycles > kSerialCycles ? target.threads : 1;
    price(c, workload, load, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<TypedStepRun>(*compile_typed(*candidate.workload), NEO_PICK_TIER(target.isa, typed_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(typed_eltwise, TypedRoutine)

}  // namespace neo
