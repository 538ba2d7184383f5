#include <algorithm>
#include <functional>
#include <set>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/eltwise/plan_space.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"

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

// The largest group of elementwise nodes that ends in `root`: same shape throughout, nothing read from outside.
std::vector<const Node*> grow(const Node& root, const Graph::Users& users, const Graph& graph) {
  constexpr size_t kMaxNodes = 24;
  std::vector<const Node*> group{&root};
  std::set<const Node*> members{&root};
  const Shape& shape = root.outputs.front()->shape();
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < group.size() && group.size() < kMaxNodes; ++i) {
      for (const Value* v : group[i]->inputs) {
        const Node* p = v ? v->producer : nullptr;
        if (!p || members.count(p) || !is_eltwise(*p) || !(v->shape() == shape) || graph.is_output(v)) continue;
        // A half is rounded where the model says so.
        if (v->dtype() == DType::Float16 || v->dtype() == DType::BFloat16) continue;
        const auto it = users.find(v);
        const bool inside = std::all_of(it->second.begin(), it->second.end(),
                                        [&](const auto& u) { return members.count(u.first) > 0; });
        if (!inside) continue;
        group.push_back(p);
        members.insert(p);
        grown = true;
      }
    }
  }
  // Topological order: producers first.
  std::vector<const Node*> order;
  std::set<const Node*> done;
  const std::function<void(const Node*)> visit = [&](const Node* n) {
    if (!done.insert(n).second) return;
    for (const Value* v : n->inputs) {
      if (v && v->producer && members.count(v->producer)) visit(v->producer);
    }
    order.push_back(n);
  };
  visit(&root);
  return order;
}

// Where an input of the group lies under the output's axis 1: all channels, none (broadcast), or neither.
enum class ChannelAxis { All, Broadcast, Other };

ChannelAxis channels_of(const Value* v, const Shape& out) {
  const int axis = 1 - (out.rank() - v->shape().rank());
  if (axis < 0 || v->shape()[axis].is(1)) return ChannelAxis::Broadcast;
  return v->shape()[axis] == out[1] ? ChannelAxis::All : ChannelAxis::Other;
}

// An operand that repeats its elements along short rows, and is copied for that.
bool is_copied(const Value* v, const Value* out) {
  const Shape& shape = out->shape();
  int64_t run = 1;
  bool repeats = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = v->shape().rank() - 1 - i, out_axis = shape.rank() - 1 - i;
    const bool one = axis < 0 || v->shape()[axis].is(1);
    if (!one) return repeats && run < kShortRow;
    repeats = repeats || !shape[out_axis].is(1);
    run *= shape[out_axis].hint();
  }
  return false;
}

// The first pass over a tile is hidden behind its transfer, the others find it in the first cache. Arithmetic of many
// steps leaves a processor no room to load ahead.
double estimate_us(const Workload& workload, const CompiledEltwise& compiled, double bytes, const Target& target) {
  constexpr double kPassCycles = 3;
  // A line that is written is asked for by its owner, and written back, beside the transfer itself.
  constexpr double kOwned = 2;
  const Value* out = workload.outputs.front();
  double heaviest = 0, all = 0;
  for (int i = 0; i < compiled.program.steps; ++i) {
    const double cycles = std::max(kPassCycles, step_cycles(compiled.program.step[i].op));
    heaviest = std::max(heaviest, cycles);
    all += cycles;
  }
  for (int i : compiled.inputs) {
    const Value* v = workload.inputs[static_cast<size_t>(i)];
    all += is_copied(v, out) || v->dtype() != DType::Float32 ? kPassCycles : 0;
  }
  all += out->dtype() != DType::Float32 ? kPassCycles : 0;
  const double vectors = static_cast<double>(out->shape().element_count().hint()) / static_cast<double>(target.lanes());
  StepLoad load;
  load.arithmetic_us = cycles_us(vectors * heaviest, target);
  load.also_us = cycles_us(vectors * (all - heaviest + (heaviest > kPassCycles ? kPassCycles : 0)), target);
  load.bytes = bytes + kOwned * static_cast<double>(out->shape().element_count().hint() * item_bytes(out->dtype()));
  load.tasks = bytes > kSerialBytes ? target.threads : 1;
  return step_us(load, target);
}

// Every operand in its plain layout.
Candidate plain_eltwise_candidate(const Workload& workload, const CompiledEltwise& compiled, const Target& target) {
  const Value* out = workload.outputs.front();
  Candidate plain;
  Work work;
  plain.inputs.resize(workload.inputs.size());
  for (int i : compiled.inputs) {
    const Value* v = workload.inputs[static_cast<size_t>(i)];
    plain.inputs[static_cast<size_t>(i)] = plain_schema(v->type);
    work.bytes = work.bytes + v->shape().element_count() * Dim(item_bytes(v->dtype()));
    if (plain.in_place < 0 && v->dtype() == out->dtype() && v->shape() == out->shape() && !v->constant)
      plain.in_place = i;
  }
  plain.outputs.push_back(plain_schema(out->type));
  work.bytes = work.bytes + out->shape().element_count() * Dim(item_bytes(out->dtype()));
  plain.cost.time_us = estimate_us(workload, compiled, static_cast<double>(work.bytes.hint()), target);
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

class EltwiseRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu:float32/eltwise"; }
  std::vector<std::string_view> roots() const override { return eltwise_ops(); }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    std::vector<Workload> found{Workload::of(root)};
    if (!is_eltwise(root)) return found;
    std::vector<const Node*> group = grow(root, users, graph);
    if (group.size() > 1) {
      Workload together = Workload::of(std::move(group));
      if (compile_eltwise(together, nullptr)) found.push_back(std::move(together));
    }
    return found;
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
    Candidate plain = plain_eltwise_candidate(workload, compiled, target);
    std::vector<Candidate> all{plain};
    if (auto blocked = block_channels(plain, workload, compiled, target)) all.push_back(std::move(*blocked));
    return all;
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
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
    // An image of few channels is mostly padding lanes then, which are computed too.
    const int64_t channels = shape[1].value(), lanes = target.lanes();
    if (channels < lanes) c.cost.time_us *= static_cast<double>(lanes) / static_cast<double>(channels);
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(eltwise, EltwiseRoutine)

}  // namespace neo
