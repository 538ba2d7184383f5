#include <algorithm>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/plan_space.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"
#include "routines/patterns/eltwise_groups.h"

NEO_DECLARE_TIERS(void eltwise_tasks(const EltwiseArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

using TaskKernel = decltype(&scalar::eltwise_tasks);

// Below this many elements one thread is faster than two.
constexpr int64_t kSerialEltwise = 16384;
class EltwiseStepRun final : public KernelStep {
 public:
  EltwiseStepRun(EltwiseProgram program, TaskKernel kernel, int lanes)
      : program_(program), kernel_(kernel), lanes_(lanes) {}

  Prepared prepare(std::span<const Arg> args) const override {
    std::vector<const Arg*> operands;
    for (const Arg& a : args) operands.push_back(&a);
    return Prepared::of(plan_space(operands, lanes_));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& space = *reinterpret_cast<const EltwiseSpace*>(prepared);
    const EltwiseArgs call{&program_, &space, reinterpret_cast<const void* const*>(args)};
    const int64_t tasks = space.rows * space.tiles;
    if (space.rows * space.inner <= kSerialEltwise) {
      kernel_(call, 0, tasks);
      return;
    }
    team.parallel_for(tasks, [&](int64_t begin, int64_t end, int) { kernel_(call, begin, end); });
  }

 private:
  EltwiseProgram program_;
  TaskKernel kernel_;
  int lanes_;
};

// Where an input of the group lies under the output's axis 1: all channels, none (broadcast), or neither.
enum class ChannelAxis { All, Broadcast, Other };

ChannelAxis channels_of(const Value* v, const Shape& out) {
  const int axis = 1 - (out.rank() - v->shape().rank());
  if (axis < 0 || v->shape()[axis].is(1)) return ChannelAxis::Broadcast;
  return v->shape()[axis] == out[1] ? ChannelAxis::All : ChannelAxis::Other;
}

// The program over the elements as they are held, lanes of padding too. A row begins anew.
StepLoad load_of(const Candidate& c, const Workload& workload, const CompiledEltwise& compiled, const Target& target) {
  // A pass over a tile in the first cache loads and stores, whatever it computes.
  constexpr double kPassCycles = 3;
  const Value* out = workload.outputs.front();
  std::vector<Arg> args;
  double cycles = out->dtype() != DType::Float32 ? kPassCycles : 0;
  for (int i : compiled.inputs) {
    const Value* v = workload.inputs[static_cast<size_t>(i)];
    cycles += v->dtype() != DType::Float32 ? kPassCycles : 0;
    args.push_back(hint_arg(v->type, *c.inputs[static_cast<size_t>(i)]));
  }
  args.push_back(hint_arg(out->type, c.outputs.front()));
  for (int i = 0; i < compiled.program.steps; ++i)
    cycles += std::max(kPassCycles, step_cycles(compiled.program.step[i].op));
  std::vector<const Arg*> operands;
  for (const Arg& arg : args) operands.push_back(&arg);
  const EltwiseSpace space = plan_space(operands, target.lanes());
  const auto elements = static_cast<double>(space.rows * space.inner);
  StepLoad load{StepFamily::Eltwise, cycles * elements / target.lanes(), static_cast<double>(space.rows * space.tiles)};
  const EltwiseProgram& program = compiled.program;
  const bool takes_runs = space.run >= 2 * target.lanes() && program.steps == 1 &&
                          program.step[0].op >= EltwiseOp::Add &&
                          std::count(program.type, program.type + operands.size(), EltwiseType::F32) ==
                              static_cast<int64_t>(operands.size());
  load.cycles += nested_cycles(space, operands.size(), takes_runs);
  load.tasks = elements > static_cast<double>(kSerialEltwise) ? target.threads : 1;
  return load;
}

// Every operand in its plain layout.
Candidate plain_eltwise_candidate(const Workload& workload, const CompiledEltwise& compiled) {
  const Value* out = workload.outputs.front();
  Candidate plain;
  plain.inputs.resize(workload.inputs.size());
  for (int i : compiled.inputs) {
    const Value* v = workload.inputs[static_cast<size_t>(i)];
    plain.inputs[static_cast<size_t>(i)] = plain_schema(v->type);
    if (plain.in_place < 0 && v->dtype() == out->dtype() && v->shape() == out->shape() && !v->constant)
      plain.in_place = i;
  }
  plain.outputs.push_back(plain_schema(out->type));
  return plain;
}

// A step's arguments follow the workload's inputs; the program as compiled counts them in order of use.
EltwiseProgram by_argument(const CompiledEltwise& compiled) {
  std::vector<int> arguments = compiled.inputs;
  std::sort(arguments.begin(), arguments.end());
  std::vector<int8_t> position;
  for (int i : compiled.inputs) {
    position.push_back(static_cast<int8_t>(std::find(arguments.begin(), arguments.end(), i) - arguments.begin()));
  }
  EltwiseProgram program = compiled.program;
  for (int i = 0; i < program.inputs; ++i) program.type[position[static_cast<size_t>(i)]] = compiled.program.type[i];
  const auto renumber = [&](int8_t& x) {
    if (x < 0) x = static_cast<int8_t>(-1 - position[static_cast<size_t>(-1 - x)]);
  };
  for (int i = 0; i < program.steps; ++i) {
    renumber(program.step[i].a);
    renumber(program.step[i].b);
    renumber(program.step[i].c);
  }
  return program;
}

class EltwiseRoutine final : public RoutineOf<EltwiseRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/eltwise"; }
  std::vector<std::string_view> roots() const override { return eltwise_ops(); }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_eltwise(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    for (const Node* node : workload.nodes) {
      if (!is_eltwise(*node)) return str(node->op, " with these dtypes or operands is not a program step");
    }
    if (workload.outputs.front()->shape().rank() > kEltwiseMaxAxes) return "too many axes";
    std::string why;
    if (!compile_eltwise(workload, &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CompiledEltwise compiled = *compile_eltwise(workload, nullptr);
    std::vector<Candidate> all{plain_eltwise_candidate(workload, compiled)};
    if (auto blocked = block_channels(all.front(), workload, compiled, target)) all.push_back(std::move(*blocked));
    for (Candidate& c : all) price(c, workload, load_of(c, workload, compiled, target), target);
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<EltwiseStepRun>(by_argument(*compile_eltwise(*candidate.workload, nullptr)),
                                            NEO_PICK_TIER(target.isa, eltwise_tasks), target.lanes());
  }

 private:
  static std::optional<Candidate> block_channels(Candidate c, const Workload& workload, const CompiledEltwise& compiled,
                                                 const Target& target) {
    const Shape& shape = workload.outputs.front()->shape();
    if (shape.rank() < 3 || !shape[1].is_constant() || shape[1].value() < 2 || shape.rank() + 1 > kEltwiseMaxAxes)
      return std::nullopt;
    bool any = false;
    for (int i : compiled.inputs) {
      const Value* v = workload.inputs[static_cast<size_t>(i)];
      switch (channels_of(v, shape)) {
        case ChannelAxis::Other:
          return std::nullopt;
        case ChannelAxis::Broadcast:
          break;
        case ChannelAxis::All: {
          const int rank = v->shape().rank();
          const int axis = 1 - (shape.rank() - rank);
          c.inputs[static_cast<size_t>(i)]->layout = Layout(Layout::plain(rank).order(), {{axis, target.lanes()}});
          any = any || !v->constant;
          break;
        }
      }
    }
    if (!any) return std::nullopt;
    c.outputs.front().layout = Layout::channel_blocked(shape.rank(), target.lanes());
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(eltwise, EltwiseRoutine)

}  // namespace neo
