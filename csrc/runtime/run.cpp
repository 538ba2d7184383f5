#include "exec/run.h"

#include "base/check.h"
#include "runtime/frame.h"

namespace neo {
namespace {

class PlanRun final : public Run {
 public:
  PlanRun(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings) : plan_(std::move(plan)) {
    state_.bindings = std::move(bindings);
    frame_ = std::make_unique<Frame>(*plan_->root, state_);
  }

  std::vector<HostValue> call(std::span<const HostValue> inputs, Team& team, const std::function<void()>* poll) override {
    state_.team = &team;
    state_.poll = poll;
    state_.iteration = -1;
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
  int64_t arena_bytes() const override { return frame_->arena_bytes(); }

 private:
  std::shared_ptr<const Plan> plan_;
  RunState state_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace

std::unique_ptr<Run> make_run(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings) {
  return std::make_unique<PlanRun>(std::move(plan), std::move(bindings));
}

}  // namespace neo
