#include "runtime/run.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_mode.h"
#include "runtime/interpreter.h"
#include "runtime/limited_team.h"
#include "runtime/plan_device.h"

namespace neo {
namespace {

std::string_view kind_name(const HostValue& value) {
  constexpr std::string_view kNames[] = {"None", "an array", "a list", "a dict"};
  return kNames[static_cast<size_t>(value.kind)];
}

// Keys and values of a map are two arrays of one axis and one size, of the dtypes that its type says.
void check_map(const HostValue& value, const Type& type, const std::string& input) {
  NEO_CHECK(value.kind == HostValue::Kind::Map, Type, "run", "an input of type ", type.to_string(),
            " must be a dict. Got ", kind_name(value), " - at input '", input, "'");
  const Tensor &keys = value.items[0].tensor, &values = value.items[1].tensor;
  NEO_CHECK(keys.dtype() == type.key() && values.dtype() == type.element->dtype, Type, "run",
            "the dtypes of a map must be the input's. Got ", name(keys.dtype()), " and ", name(values.dtype()),
            ", expected ", type.to_string(), " - at input '", input, "'");
  NEO_CHECK(keys.rank() == 1 && keys.dims() == values.dims(), Shape, "run",
            "a map must have as many values as keys, on one axis. Got ", to_string(values.dims()), " and ",
            to_string(keys.dims()), " - at input '", input, "'");
}

// A plan trusts its arguments' kinds, dtypes, ranks and fixed sizes. Symbols are checked where they are bound.
void check_value(const HostValue& value, const Type& type, const std::string& input) {
  switch (type.kind) {
    case Type::Kind::Optional:
      if (value.kind != HostValue::Kind::Empty) check_value(value, *type.element, input);
      return;
    case Type::Kind::Sequence:
      NEO_CHECK(value.kind == HostValue::Kind::Sequence, Type, "run", "an input of type ", type.to_string(),
                " must be a list. Got ", kind_name(value), " - at input '", input, "'");
      for (const HostValue& item : value.items) check_value(item, *type.element, input);
      return;
    case Type::Kind::Map:
      return check_map(value, type, input);
    case Type::Kind::Tensor:
      break;
  }
  NEO_CHECK(value.kind == HostValue::Kind::Tensor, Type, "run", "an input of type ", type.to_string(),
            " must be an array. Got ", kind_name(value), " - at input '", input, "'");
  const Tensor& tensor = value.tensor;
  NEO_CHECK(type.dtype == DType::Undefined || tensor.dtype() == type.dtype, Type, "run",
            "dtype must be the input's. Got ", name(tensor.dtype()), ", expected ", name(type.dtype), " - at input '",
            input, "'");
  if (!type.shape.has_rank()) return;
  bool fits = static_cast<size_t>(type.shape.rank()) == tensor.dims().size();
  for (int i = 0; fits && i < type.shape.rank(); ++i) {
    const Dim& size = type.shape[i];
    fits = !size.is_constant() || size.value() == tensor.dims()[static_cast<size_t>(i)];
  }
  NEO_CHECK(fits, Shape, "run", "shape must be the input's. Got ", to_string(tensor.dims()), ", expected ",
            type.shape.to_string(), " - at input '", input, "'");
}

// Memory of its own for every tensor of a value.
void copy_tensors(HostValue& value) {
  if (value.kind == HostValue::Kind::Tensor) value.tensor = copy_tensor(value.tensor);
  for (HostValue& item : value.items) copy_tensors(item);
}

}  // namespace

Run::Run(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings, const Quota& quota,
         std::shared_ptr<PlanDevice> device)
    : plan_(std::move(plan)), state_(std::make_unique<RunState>()) {
  state_->bindings = std::move(bindings);
  if (kHasDevices && device) {
    state_->device = std::make_shared<DeviceRun>(std::move(device));
    state_->device->start(false);
  }
  state_->budget = std::make_shared<Budget>(quota);
  state_->root = plan_->root.get();
  interpreter_ = std::make_unique<Interpreter>(*plan_->root, *state_);
}

Run::~Run() = default;

std::vector<HostValue> Run::call(std::span<const HostValue> inputs, Executors& executors,
                                 const std::function<void()>* poll) {
  RunState& state = *state_;
  // Memory that was handed out is counted where it was allocated, and what runs now starts without it.
  if (state.budget.use_count() > 1) state.budget = std::make_shared<Budget>(state.budget->quota(), state.budget.get());
  // The workers take the mode over with the work; what is polled is the caller's code and runs in the caller's mode.
  const FloatModeScope mode(plan_->denormals);
  std::function<void()> polled;
  if (poll != nullptr) {
    polled = [poll, before = mode.before()] {
      const FloatModeScope restored(before);
      (*poll)();
    };
    poll = &polled;
  }
  state.budget->start(interpreter_->arena_bytes(), &state.cancelled, poll);
  const BudgetScope scope(state.budget);
  std::vector<LimitedTeam> limited;
  if (state.budget->quota().seconds) limited.reserve(static_cast<size_t>(executors.size()));
  state.executors = &executors;
  state.teams.clear();
  for (int e = 0; e < executors.size(); ++e) {
    Team* team = &executors.team(e);
    state.teams.push_back(state.budget->quota().seconds ? &limited.emplace_back(*team, *state.budget) : team);
  }
  state.iteration = -1;
  const Block& root = *plan_->root;
  NEO_ASSERT(inputs.size() == root.arguments.size());
  if (kHasDevices && state.device) state.device->start(state.trace != nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_value(inputs[i], root.slots[static_cast<size_t>(root.arguments[i])].type, plan_->input_names[i]);
  }
  std::vector<HostValue> results = interpreter_->call(inputs, {});
  // The caller may write to what it gets: nothing of the plan's or of its own inputs.
  for (size_t i = 0; i < results.size(); ++i) {
    const int slot = root.results[i];
    const Slot::Storage storage = root.slots[static_cast<size_t>(slot)].storage;
    const auto before = root.results.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_shared = storage == Slot::Storage::Argument || storage == Slot::Storage::Constant ||
                           std::find(root.results.begin(), before, slot) != before;
    if (is_shared) copy_tensors(results[i]);
  }
  return results;
}

void Run::cancel() {
  state_->cancelled.store(true, std::memory_order_relaxed);
}

bool Run::is_cancelled() const {
  return state_->cancelled.load(std::memory_order_relaxed);
}

void Run::set_trace(std::vector<TraceEvent>* trace) {
  state_->trace = trace;
}

void Run::set_observer(const ValueObserver* observer) {
  state_->observer = observer;
}

void Run::set_outputs(std::span<const Tensor> outputs) {
  state_->outputs = outputs;
  state_->outermost = plan_->root.get();
}

void Run::set_shuffle(std::optional<uint64_t> seed) {
  state_->shuffle = seed;
}

int64_t Run::arena_bytes() const {
  return interpreter_->arena_bytes();
}

}  // namespace neo
