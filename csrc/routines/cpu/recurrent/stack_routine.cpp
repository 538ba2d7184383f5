#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/recurrent/recurrent_arguments.h"
#include "routines/cpu/recurrent/recurrent_cost.h"
#include "routines/cpu/recurrent/recurrent_step.h"
#include "routines/cpu/recurrent/stack_form.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/space.h"

namespace neo {
namespace {

// Steps that a stage does at once. A member that waits for a longer chunk lets the system run other threads, and is
// late for the next one: longer ones are offered to measurements alone.
constexpr int64_t kChunks[] = {1, 2, 4, 8, 16, 32};
constexpr int64_t kMaxEstimatedChunk = 8;
constexpr int64_t kMaxStages = 64;
// From the memory of one layer to that of the next, which another core may write: prefetchers keep off a page.
constexpr int64_t kLayersApart = 4096;

int64_t work_of(const RecurrentForm& form) {
  return form.gates * form.hidden * (form.input + form.hidden);
}

// The stage of each layer, the first one's 0: neighbours share one, by their work. None is left out, since the results
// of a chunk are kept for one chunk more.
std::vector<int64_t> stages_of(const RecurrentStack& stack, int64_t stages) {
  int64_t all = 0, before = 0;
  for (const RecurrentForm& form : stack.layers) all += work_of(form);
  std::vector<int64_t> found;
  for (const RecurrentForm& form : stack.layers) {
    const int64_t wanted = std::min(stages - 1, stages * (2 * before + work_of(form)) / (2 * all));
    found.push_back(found.empty() ? 0 : std::min(wanted, found.back() + 1));
    before += work_of(form);
  }
  return found;
}

// How a layer does a chunk. The kernels of a chunk of one step may multiply its inputs themselves, whose weights lie as
// those beside the steps.
RecurrentMethod chunk_method(const Schedule& schedule, const RecurrentForm& form, const Target& target) {
  const bool takes_one = schedule.at("chunk") == 1 && RecurrentKernels::of(target).takes_input(form.kind);
  return {value_of(schedule, "beside") > 0 || takes_one ? RecurrentWay::InputBeside : RecurrentWay::InputFirst};
}

struct StackCall {
  int64_t steps = 0, batch = 0;
  int64_t chunks = 0;
  bool serial = false;
};

// Offsets are bytes.
struct StackLayerCall {
  int64_t stage = 0;
  int64_t whole = 0, rest = 0;  // in what prepare() made: the layer's calls of a whole chunk and of the last one
  int64_t scratch = 0, h = 0, cell = 0;
  int64_t result = 0, result_bytes = 0;  // of two chunks, and the size of one
};

class StackStep final : public KernelStep {
 public:
  StackStep(const Candidate& candidate, const Target& target, PackedStore& packed)
      : chunk_(candidate.schedule.at("chunk")) {
    const RecurrentStack stack = *read_stack(*candidate.workload, nullptr);
    const std::vector<int64_t> stages = stages_of(stack, candidate.schedule.at("stages"));
    stages_ = stages.back() + 1;
    steps_axis_ = stack.steps_axis;
    Target alone = target;
    alone.threads = 1;
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      const RecurrentForm& form = stack.layers[i];
      Layer layer;
      layer.op = stack.nodes[i]->op;
      layer.hidden = form.hidden;
      layer.input = form.input;
      layer.has_cell = form.kind == CellKind::Lstm;
      layer.stage = stages[i];
      layer.work = work_of(form);
      layer.arguments = RecurrentArguments::of(candidate, form, *stack.nodes[i]);
      layer.arguments.outputs[0] = argument_of_result(candidate, stack.results[i]);
      const bool is_last = i + 1 == stack.layers.size();
      layer.step =
          make_recurrent_layer(layer.op, form, own_arguments(form, !is_last || layer.arguments.outputs[0] >= 0),
                               chunk_method(candidate.schedule, form, alone), alone, packed);
      layers_.push_back(std::move(layer));
    }
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(layers_.front().arguments.x)];
    StackCall call;
    call.steps = x.dims[static_cast<size_t>(steps_axis_)];
    call.batch = x.dims[static_cast<size_t>(1 - steps_axis_)];
    call.chunks = ceil_div(call.steps, chunk_);
    Prepared prepared;
    std::vector<StackLayerCall> layers;
    std::vector<std::byte> calls;
    int64_t work = 0;
    const auto take = [&](int64_t bytes) {
      const int64_t at = prepared.scratch_bytes;
      prepared.scratch_bytes += round_up(bytes, 64);
      return at;
    };
    const auto add = [&](const Prepared& one) {
      const auto at = static_cast<int64_t>(calls.size());
      calls.insert(calls.end(), one.bytes.begin(), one.bytes.end());
      calls.resize(static_cast<size_t>(round_up(static_cast<int64_t>(calls.size()), 64)));
      return at;
    };
    for (const Layer& layer : layers_) {
      layer.arguments.check_states(args, {1, call.batch, layer.hidden}, layer.op);
      work += 2 * call.steps * call.batch * layer.work;
      StackLayerCall own;
      own.stage = layer.stage;
      own.h = take(state_bytes(layer, call));
      if (layer.has_cell) own.cell = take(state_bytes(layer, call));
      own.result_bytes = chunk_ * state_bytes(layer, call);
      if (&layer != &layers_.back() && layer.arguments.outputs[0] < 0) own.result = take(2 * own.result_bytes);
      const Prepared whole = prepare_layer(layer, chunk_, call.batch);
      const Prepared rest =
          prepare_layer(layer, call.steps - std::max<int64_t>(call.chunks - 1, 0) * chunk_, call.batch);
      own.whole = add(whole);
      own.rest = add(rest);
      own.scratch = take(std::max(whole.scratch_bytes, rest.scratch_bytes));
      take(kLayersApart);
      layers.push_back(own);
    }
    call.serial = TaskSplit::of(stages_, work).serial;
    prepared.bytes.resize(calls_at() + calls.size());
    std::memcpy(prepared.bytes.data(), &call, sizeof(call));
    std::memcpy(prepared.bytes.data() + sizeof(call), layers.data(), layers.size() * sizeof(StackLayerCall));
    std::copy(calls.begin(), calls.end(), prepared.bytes.begin() + static_cast<int64_t>(calls_at()));
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const StackCall*>(prepared);
    const auto* layers = reinterpret_cast<const StackLayerCall*>(prepared + sizeof(StackCall));
    for (size_t i = 0; i < layers_.size(); ++i) {
      const RecurrentArguments& given = layers_[i].arguments;
      load(given.initial_h, args, state_bytes(layers_[i], call), scratch + layers[i].h);
      if (layers_[i].has_cell) load(given.initial_c, args, state_bytes(layers_[i], call), scratch + layers[i].cell);
    }
    const auto run_phase = [&](int64_t phase, int64_t begin, int64_t end, int) {
      for (size_t i = 0; i < layers_.size(); ++i) {
        const int64_t stage = layers[i].stage, chunk = phase - stage;
        if (stage >= begin && stage < end && chunk >= 0 && chunk < call.chunks)
          run_layer(call, layers, i, chunk, prepared, args, scratch);
      }
    };
    const int64_t phases = call.chunks == 0 ? 0 : call.chunks + stages_ - 1;
    if (call.serial)
      SerialTeam().parallel_phases(phases, stages_, run_phase);
    else
      team.parallel_phases(phases, stages_, run_phase);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const RecurrentArguments& results = layers_[i].arguments;
      const auto size = static_cast<size_t>(state_bytes(layers_[i], call));
      if (results.outputs[1] >= 0) std::memcpy(args[results.outputs[1]], scratch + layers[i].h, size);
      if (results.outputs[2] >= 0) std::memcpy(args[results.outputs[2]], scratch + layers[i].cell, size);
    }
  }

 private:
  // Positions of the arguments of a layer's own step.
  enum Position : uint8_t { kX, kH, kCell, kY, kNextH, kNextCell, kArguments };

  struct Layer {
    std::string op;
    int64_t input = 0, hidden = 0, stage = 0;
    int64_t work = 0;  // products of a row in one step
    bool has_cell = false;
    RecurrentArguments arguments;  // of the stack; x is the first layer's
    std::unique_ptr<KernelStep> step;
  };

  static RecurrentArguments own_arguments(const RecurrentForm& form, bool has_result) {
    const bool has_cell = form.kind == CellKind::Lstm;
    RecurrentArguments a;
    a.x = kX;
    a.initial_h = kH;
    a.initial_c = has_cell ? kCell : -1;
    a.outputs[0] = has_result ? kY : -1;
    a.outputs[1] = kNextH;
    a.outputs[2] = has_cell ? kNextCell : -1;
    return a;
  }

  static int64_t state_bytes(const Layer& layer, const StackCall& call) { return call.batch * layer.hidden * 4; }

  size_t calls_at() const {
    return static_cast<size_t>(
        round_up(static_cast<int64_t>(sizeof(StackCall) + layers_.size() * sizeof(StackLayerCall)), 64));
  }

  static Prepared prepare_layer(const Layer& layer, int64_t steps, int64_t batch) {
    const auto floats = [](Dims dims) {
      return Arg{DType::Float32, Layout::plain(static_cast<int>(dims.size())), dims, dense_strides(dims), true};
    };
    const Arg state = floats({1, batch, layer.hidden});
    const Arg args[] = {floats({steps, batch, layer.input}),     state, state,
                        floats({steps, 1, batch, layer.hidden}), state, state};
    return layer.step->prepare(args);
  }

  static void load(int argument, std::byte* const* args, int64_t bytes, std::byte* to) {
    if (argument < 0)
      std::memset(to, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(to, args[argument], static_cast<size_t>(bytes));
  }

  void run_layer(const StackCall& call, const StackLayerCall* layers, size_t i, int64_t chunk,
                 const std::byte* prepared, std::byte* const* args, std::byte* scratch) const {
    const Layer& layer = layers_[i];
    const StackLayerCall& own = layers[i];
    // The hidden states of the chunk: where they are a result of the stack, or in memory of two chunks.
    const auto result = [&](size_t of) {
      const int argument = layers_[of].arguments.outputs[0];
      return argument >= 0 ? args[argument] + chunk * layers[of].result_bytes
                           : scratch + layers[of].result + chunk % 2 * layers[of].result_bytes;
    };
    std::byte* own_args[kArguments];
    own_args[kX] = i > 0 ? result(i - 1) : args[layer.arguments.x] + chunk * chunk_ * call.batch * layer.input * 4;
    own_args[kH] = own_args[kNextH] = scratch + own.h;
    own_args[kCell] = own_args[kNextCell] = scratch + own.cell;
    own_args[kY] = i + 1 < layers_.size() || layer.arguments.outputs[0] >= 0 ? result(i) : nullptr;
    SerialTeam alone;
    layer.step->run(prepared + calls_at() + (chunk + 1 == call.chunks ? own.rest : own.whole), own_args,
                    scratch + own.scratch, alone);
  }

  std::vector<Layer> layers_;
  int64_t chunk_ = 1, stages_ = 1;
  int steps_axis_ = 0;
};

// Microseconds of a stack at the hints.
double stack_us(const RecurrentStack& stack, const Schedule& schedule, const Target& target) {
  const int64_t chunk = schedule.at("chunk");
  constexpr double kStackUs = 3, kMeetUs = 0.5;
  constexpr double kLayerUs = 1, kChunkUs = 0.3;  // of a layer, and of each of its chunks
  Target alone = target;
  alone.threads = 1;
  const int64_t batch = stack.batch().hint();
  const std::vector<int64_t> stage = stages_of(stack, schedule.at("stages"));
  std::vector<double> us(static_cast<size_t>(stage.back() + 1)), bytes(us.size());
  for (size_t i = 0; i < stage.size(); ++i) {
    const RecurrentForm& form = stack.layers[i];
    us[static_cast<size_t>(stage[i])] +=
        kChunkUs + recurrent_us(form, chunk_method(schedule, form, alone), chunk, batch, alone);
    bytes[static_cast<size_t>(stage[i])] += 4 * static_cast<double>(work_of(form));
  }
  double longest = 0, all = 0;
  for (size_t i = 0; i < us.size(); ++i) {
    // A chunk finds the weights of a large stage beyond the private cache.
    if (!is_cache_resident(bytes[i], target)) us[i] += bytes[i] * far_byte_us(target);
    longest = std::max(longest, us[i]);
    all += us[i];
  }
  const double chunks = static_cast<double>(stack.steps().hint()) / static_cast<double>(chunk);
  const double filled = (std::max(1.0, chunks) + static_cast<double>(stage.back())) * (longest + kMeetUs);
  return kStackUs + kLayerUs * static_cast<double>(stack.layers.size()) +
         std::max(filled, chunks * all / target.threads);
}

// A pipeline over layers: while one stage, some layers, does a chunk of steps, the next one does the chunk before. Its
// parameters:
//   beside  as of cpu:float32/recurrent
//   chunk   steps that a stage does at once
//   stages  as many layers or fewer
class StackRoutine final : public RoutineOf<StackRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/recurrent_stack"; }
  std::vector<std::string_view> roots() const override { return {"LSTM", "GRU", "RNN"}; }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_stacks(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    const std::optional<RecurrentStack> stack = read_stack(workload, &why);
    if (!stack) return why;
    return stack->steps().is(1) ? std::optional<std::string>("there is one step") : std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const RecurrentStack stack = *read_stack(workload, nullptr);
    const int64_t stages = std::min<int64_t>({std::ssize(stack.layers), kMaxStages, std::max(target.threads, 2)});
    std::vector<Candidate> found;
    for (const int64_t chunk : kChunks) {
      if (chunk > kMaxEstimatedChunk || (chunk > 1 && chunk >= stack.steps().hint())) break;
      found.push_back(candidate(workload, target, ops, {{"chunk", chunk}, {"stages", stages}}));
      if (has_beside(stack, chunk, target))
        found.push_back(candidate(workload, target, ops, {{"beside", 1}, {"chunk", chunk}, {"stages", stages}}));
    }
    return found;
  }

  Space space(const Workload& workload, const Target& target) const override {
    const RecurrentStack stack = *read_stack(workload, nullptr);
    std::vector<int64_t> stages;
    for (int64_t i = 2; i <= std::min<int64_t>(std::ssize(stack.layers), kMaxStages); ++i) stages.push_back(i);
    return Space({{"beside", {0, 1}}, {"chunk", {std::begin(kChunks), std::end(kChunks)}}, {"stages", stages}},
                 [&](std::span<const int64_t> v) { return v[0] == 0 || has_beside(stack, v[1], target); });
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const RecurrentStack stack = *read_stack(workload, nullptr);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const auto read = [&](const Value* v) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    };
    read(stack.layers.front().x);
    const int64_t chunk = schedule.at("chunk"), batch = stack.batch().hint();
    for (const RecurrentForm& form : stack.layers) {
      read(form.initial_h);
      read(form.initial_c);
      const int64_t width = gates_width(form, target.lanes());
      c.cost.packed_bytes += (2 * width + width * (form.input + form.hidden)) * 4;
      c.cost.workspace_bytes += chunk * batch * (width + 2 * form.hidden) * 4;
    }
    for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
    c.schedule = schedule;
    c.cost.time_us = stack_us(stack, schedule, target);
    return c;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<StackStep>(candidate, target, packed);
  }

 private:
  // Whether a layer multiplies the inputs of some steps of a chunk beside others of it.
  static bool has_beside(const RecurrentStack& stack, int64_t chunk, const Target& target) {
    const RecurrentKernels kernels = RecurrentKernels::of(target);
    return std::any_of(stack.layers.begin(), stack.layers.end(), [&](const RecurrentForm& form) {
      const InputTiles tiles = input_tiles(form, {RecurrentWay::InputBeside}, kernels, chunk, stack.batch().hint());
      return tiles.small > 0 && chunk > tiles.small;
    });
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(recurrent_stack, StackRoutine)

}  // namespace neo
