#include <algorithm>
#include <functional>
#include <set>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"

NEO_DECLARE_TIERS(void eltwise_tasks(const EltwiseArgs& args, int64_t begin, int64_t end);
                  void integer_tasks(const EltwiseArgs& args, int64_t begin, int64_t end))

namespace neo {
namespace {

using TaskKernel = decltype(&scalar::eltwise_tasks);

// Below this many elements one thread is faster than two.
constexpr int64_t kSerialEltwise = 16384;
// Rows shorter than this are worth copying an operand run by run.
constexpr int64_t kShortRow = kEltwiseTile;

struct Axis {
  int64_t size;
  int64_t stride[kEltwiseMaxOperands];
};

// The iteration space: the physical axes of the output, with each operand's stride along them.
std::vector<Axis> physical_axes(std::span<const Arg* const> operands) {
  const Arg& out = *operands.back();
  const int rank = static_cast<int>(out.dims.size());
  const bool blocked = out.layout.is_blocked();
  const int64_t block = blocked ? out.layout.blocks().front().size : 1;
  std::vector<Axis> axes;
  const auto stride_of = [&](const Arg& arg, int axis) -> int64_t {
    const int missing = rank - static_cast<int>(arg.dims.size());
    if (axis < missing || arg.dims[static_cast<size_t>(axis - missing)] == 1) return 0;
    const int64_t stride = arg.strides[static_cast<size_t>(axis - missing)];
    // A plain operand under a blocked channel axis would need block strides; signatures exclude it.
    return stride;
  };
  for (int axis = 0; axis < rank; ++axis) {
    Axis a{out.dims[static_cast<size_t>(axis)], {}};
    if (blocked && axis == 1) a.size = (a.size + block - 1) / block;
    for (size_t i = 0; i < operands.size(); ++i) a.stride[i] = stride_of(*operands[i], axis);
    axes.push_back(a);
  }
  if (blocked) {
    Axis lanes{block, {}};
    for (size_t i = 0; i < operands.size(); ++i)
      lanes.stride[i] = operands[i]->layout.is_blocked() ? operands[i]->strides.back() : 0;
    axes.push_back(lanes);
  }
  return axes;
}

// `lanes`: of the vectors that channel blocks fill; 0 where the kernel knows no blocks.
EltwiseSpace plan_space(std::span<const Arg* const> operands, int lanes) {
  const Arg& out = *operands.back();
  const size_t count = operands.size();
  std::vector<Axis> axes = physical_axes(operands);
  const bool blocked = out.layout.is_blocked();
  const int64_t channels = blocked ? out.dims[1] : 0;
  const bool pads = blocked && channels % out.layout.blocks().front().size != 0;

  EltwiseSpace space{};
  std::vector<Axis> merged;
  int block_axis = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool is_block_axis = pads && i == 1;
    if (axes[i].size == 1 && !is_block_axis) continue;
    // The axis of channel blocks stays apart where its last block is masked.
    bool fits = !merged.empty() && !is_block_axis && block_axis != static_cast<int>(merged.size()) - 1;
    for (size_t o = 0; fits && o < count; ++o) fits = merged.back().stride[o] == axes[i].stride[o] * axes[i].size;
    if (fits) {
      merged.back().size *= axes[i].size;
      std::copy_n(axes[i].stride, count, merged.back().stride);
    } else {
      merged.push_back(axes[i]);
      if (is_block_axis) block_axis = static_cast<int>(merged.size()) - 1;
    }
  }
  if (merged.empty() || block_axis == static_cast<int>(merged.size()) - 1) merged.push_back({1, {}});

  // Channel blocks repeated over the pixels: one axis of whole vectors, in which some operands repeat their lanes.
  bool repeats[kEltwiseMaxOperands] = {};
  if (lanes > 0 && merged.size() >= 2 && merged.back().size == lanes &&
      static_cast<int>(merged.size()) - 2 != block_axis) {
    const Axis& inner = merged.back();
    const Axis& outer = merged[merged.size() - 2];
    bool fits = true;
    for (size_t o = 0; o < count; ++o) {
      repeats[o] = inner.stride[o] == 1 && outer.stride[o] == 0;
      fits = fits && (repeats[o] || outer.stride[o] == inner.stride[o] * inner.size);
    }
    if (fits) {
      Axis both = inner;
      both.size *= outer.size;
      merged.pop_back();
      merged.back() = both;
    } else {
      std::fill_n(repeats, count, false);
    }
  }

  Axis inner = merged.back();
  merged.pop_back();
  // Short rows that follow each other in the output become one; what an operand repeats is read run by run.
  bool nested[kEltwiseMaxOperands] = {};
  const bool is_nest =
      lanes > 0 && inner.stride[count - 1] == 1 && std::none_of(repeats, repeats + count, [](bool r) { return r; });
  space.run = inner.size;
  while (is_nest && inner.size < kShortRow && space.nest < kEltwiseMaxNest && !merged.empty() &&
         block_axis != static_cast<int>(merged.size()) - 1 && merged.back().stride[count - 1] == inner.size) {
    const Axis& outer = merged.back();
    space.nest_size[space.nest] = outer.size;
    for (size_t o = 0; o < count; ++o) {
      nested[o] = nested[o] || outer.stride[o] != inner.stride[o] * inner.size;
      space.nest_stride[o][space.nest] = outer.stride[o];
    }
    ++space.nest;
    inner.size *= outer.size;
    merged.pop_back();
  }
  NEO_ASSERT(merged.size() <= kEltwiseMaxAxes);
  space.axes = static_cast<int32_t>(merged.size());
  space.inner = inner.size;
  for (size_t i = 0; i < merged.size(); ++i) {
    space.size[i] = merged[i].size;
    space.rows *= merged[i].size;
    for (size_t o = 0; o < count; ++o) space.stride[o][i] = merged[i].stride[o];
  }
  for (size_t o = 0; o < count; ++o) {
    space.inner_stride[o] = inner.stride[o];
    const bool one = inner.size == 1;
    space.mode[o] = repeats[o]                    ? EltwiseMode::Lanes
                    : nested[o]                   ? EltwiseMode::Nested
                    : one || inner.stride[o] == 1 ? EltwiseMode::Dense
                    : inner.stride[o] == 0        ? EltwiseMode::Scalar
                                                  : EltwiseMode::Strided;
  }
  space.tiles = (space.inner + kEltwiseTile - 1) / kEltwiseTile;
  space.block_axis = block_axis;
  space.valid_lanes = pads ? static_cast<int32_t>(channels % lanes) : 0;
  return space;
}

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
  for (int i : compiled.inputs) all += is_copied(workload.inputs[static_cast<size_t>(i)], out) ? kPassCycles : 0;
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
    return c;
  }
};

// One node at a time: what a narrow dtype wraps around must be seen by the next one.
class IntegerRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu:int64/eltwise"; }
  std::vector<std::string_view> roots() const override { return integer_eltwise_ops(); }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (!is_integer_eltwise(*workload.nodes.front())) return "an operand is not an integer that it takes";
    if (workload.outputs.front()->shape().rank() > kEltwiseMaxAxes) return "too many axes";
    std::string why;
    if (!compile_eltwise(workload, &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    return {plain_eltwise_candidate(workload, *compile_eltwise(workload, nullptr), target)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<EltwiseStepRun>(by_argument(*compile_eltwise(*candidate.workload, nullptr)),
                                            NEO_PICK_TIER(target.isa, integer_tasks), 0);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(eltwise, EltwiseRoutine)
NEO_DEFINE_ROUTINE(integer_eltwise, IntegerRoutine)

}  // namespace neo
