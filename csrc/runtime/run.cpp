#include "exec/run.h"

#include "base/check.h"
#include "runtime/frame.h"
#include "runtime/limited_team.h"
#include "runtime/plan_device.h"

namespace neo {
namespace {

// A plan trusts its arguments' kinds, dtypes, ranks and fixed sizes. Symbols are checked where they are bound.
void check_value(const HostValue& value, const Type& type, const std::string& input) {
  switch (type.kind) {
    case Type::Kind::Optional:
      if (value.kind != HostValue::Kind::Empty) check_value(value, *type.element, input);
      return;
    case Type::Kind::Sequence:
      NEO_CHECK(value.kind == HostValue::Kind::Sequence, Type, "run", "an input of type ", type.to_string(),
                " must be a list. Got ", value.kind == HostValue::Kind::Empty ? "None" : "an array", " - at input '",
                input, "'");
      for (const HostValue& item : value.items) check_value(item, *type.element, input);
      return;
    case Type::Kind::Tensor:
      break;
  }
  NEO_CHECK(value.kind == HostValue::Kind::Tensor, Type, "run", "an input of type ", type.to_string(),
            " must be an array. Got ", value.kind == HostValue::Kind::Empty ? "None" : "a list", " - at input '", input,
            "'");
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

class PlanRun final : public Run {
 public:
  PlanRun(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings, const Quota& quota,
          std::shared_ptr<PlanDevice> device)
      : plan_(std::move(plan)) {
    state_.bindings = std::move(bindings);
    if (kHasDevices && device) {
      state_.device = std::make_shared<DeviceRun>(std::move(device));
      state_.device->start(false);
    }
    state_.budget = std::make_shared<Budget>(quota);
    frame_ = std::make_unique<Frame>(*plan_->root, state_);
  }

  std::vector<HostValue> call(std::span<const HostValue> inputs, Team& team,
                              const std::function<void()>* poll) override {
    // Memory that was handed out is counted where it was allocated, and what runs now starts without it.
    if (state_.budget.use_count() > 1)
      state_.budget = std::make_shared<Budget>(state_.budget->quota(), state_.budget.get());
    state_.budget->start(frame_->arena_bytes(), &state_.cancelled, poll);
    const BudgetScope scope(state_.budget);
    std::optional<LimitedTeam> limited;
    if (state_.budget->quota().seconds) limited.emplace(team, *state_.budget);
    state_.team = limited ? &*limited : &team;
    state_.iteration = -1;
    const Block& root = *plan_->root;
    NEO_ASSERT(inputs.size() == root.arguments.size());
    if (kHasDevices && state_.device) state_.device->start(state_.trace != nullptr);
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_value(inputs[i], root.slots[static_cast<size_t>(root.arguments[i])].type, plan_->input_names[i]);
    }
    std::vector<HostValue> results = frame_->call(inputs, {});
    // The caller may write to what it gets: nothing of the plan's or of its own inputs.
    for (size_t i = 0; i < results.size(); ++i) {
      const Slot::Storage storage = plan_->root->slots[static_cast<size_t>(plan_->root->results[i])].storage;
      const bool shared = storage == Slot::Storage::Argument || storage == Slot::Storage::Constant;
      if (shared && results[i].kind == HostValue::Kind::Tensor) results[i].tensor = copy_tensor(results[i].tensor);
    }
    return results;
  }

  void cancel() override { state_.cancelled.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const override { return state_.cancelled.load(std::memory_order_relaxed); }
  void set_trace(std::vector<TraceEvent>* trace) override { state_.trace = trace; }
  void set_observer(const ValueObserver* observer) override {
    state_.observer = observer;
    state_.observed = plan_->root.get();
  }
  int64_t arena_bytes() const override { return frame_->arena_bytes(); }

 private:
  std::shared_ptr<const Plan> plan_;
  RunState state_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace

std::unique_ptr<Run> make_run(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings,
                              const Quota& quota, std::shared_ptr<PlanDevice> device) {
  return std::make_unique<PlanRun>(std::move(plan), std::move(bindings), quota, std::move(device));
}

}  // namespace neo
