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

  std::vector<HostValue> call(std::span<const HostValue> inputs, Team& team) override {
    state_.team = &team;
    std::vector<HostValue> results = frame_->call(inputs, {});
    return results;
  }

  void cancel() override { state_.cancelled.store(true, std::memory_order_relaxed); }
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
