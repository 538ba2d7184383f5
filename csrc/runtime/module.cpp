#include "runtime/module.h"

#include "base/check.h"
#include "runtime/plan_device.h"
#include "runtime/thread_pool.h"

namespace neo {
namespace {

constexpr size_t kIdleRuns = 4;

// Cancels a run while the call that it was taken for lasts, and never the next call's.
class RunningCall {
 public:
  explicit RunningCall(Run* run) : run_(run) {}

  void cancel() {
    std::lock_guard lock(mutex_);
    if (run_) run_->cancel();
  }
  void finish() {
    std::lock_guard lock(mutex_);
    run_ = nullptr;
  }

  struct End {
    RunningCall& call;
    ~End() { call.finish(); }
  };

 private:
  std::mutex mutex_;
  Run* run_;
};

}  // namespace

Module::Module(std::shared_ptr<const Plan> plan, int threads, bool oversubscribe, const Quota& quota)
    : plan_(std::move(plan)),
      bindings_(std::make_shared<BindingCache>()),
      device_(kHasDevices ? PlanDevice::of(plan_) : nullptr),
      threads_(threads),
      oversubscribe_(oversubscribe),
      quota_(quota) {
  NEO_CHECK(threads >= 1, Model, "compile", "threads must be positive. Got ", threads, ", expected 1 or more");
}

std::unique_ptr<Module> Module::with_threads(int threads, bool oversubscribe) const {
  auto other = std::make_unique<Module>(plan_, threads, oversubscribe, quota_);
  other->bindings_ = bindings_;
  other->device_ = device_;
  return other;
}

std::shared_ptr<Run> Module::take_run() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::shared_ptr<Run> run = std::move(idle_.back());
      idle_.pop_back();
      return run;
    }
  }
  return make_run(plan_, bindings_, quota_, device_);
}

void Module::prepare_device() {
  if (kHasDevices && device_) device_->prepare();
}

void Module::give_back(std::shared_ptr<Run> run) {
  run->set_trace(nullptr);
  run->set_observer(nullptr);
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleRuns) idle_.push_back(std::move(run));
}

int64_t Module::kept_bytes() const {
  std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& run : idle_) total += run->arena_bytes();
  return total;
}

std::vector<HostValue> Module::call(std::span<const HostValue> inputs, const CallOptions& options) {
  // A run that was cancelled or threw is not used again.
  std::shared_ptr<Run> run = take_run();
  run->set_trace(options.trace);
  run->set_observer(options.observer);
  const auto running = std::make_shared<RunningCall>(run.get());
  const RunningCall::End end{*running};
  if (options.started) options.started([running] { running->cancel(); });
  const auto team = process_thread_pool().lease(threads_, oversubscribe_ ? Oversubscribe::Yes : Oversubscribe::No);
  std::vector<HostValue> results;
  if (options.spans) {
    RecordingTeam recording(*team);
    results = run->call(inputs, recording, options.poll);
    *options.spans = recording.take_spans();
  } else {
    results = run->call(inputs, *team, options.poll);
  }
  running->finish();
  if (!run->is_cancelled()) give_back(std::move(run));
  return results;
}

}  // namespace neo
