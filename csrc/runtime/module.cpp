#include "runtime/module.h"

#include <algorithm>
#include <cstring>

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

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  return begin(a) < begin(b) + static_cast<uintptr_t>(b.bytes()) &&
         begin(b) < begin(a) + static_cast<uintptr_t>(a.bytes());
}

bool overlaps(const Tensor& memory, const HostValue& value) {
  if (value.kind == HostValue::Kind::Tensor) return overlap(memory, value.tensor);
  return std::any_of(value.items.begin(), value.items.end(),
                     [&](const HostValue& item) { return overlaps(memory, item); });
}

// The memory that results may be computed in: what overlaps with an input is written when the call is done.
std::vector<Tensor> writable_at_once(std::span<const Tensor> outputs, std::span<const HostValue> inputs) {
  std::vector<Tensor> memory(outputs.begin(), outputs.end());
  for (Tensor& t : memory) {
    const bool is_read = t.defined() && std::any_of(inputs.begin(), inputs.end(),
                                                    [&](const HostValue& input) { return overlaps(t, input); });
    if (is_read) t = {};
  }
  return memory;
}

void check_outputs(std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      NEO_CHECK(!outputs[i].defined() || !outputs[j].defined() || !overlap(outputs[i], outputs[j]), Model, "run",
                "outputs must not share memory. Got one memory for outputs ", j, " and ", i);
    }
  }
}

// Results that a call had to compute elsewhere.
void write_outputs(std::span<const Tensor> outputs, std::vector<HostValue>& results, const Plan& plan) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& to = outputs[i];
    if (!to.defined()) continue;
    const std::string place = str("output '", plan.output_names[i], "'");
    NEO_CHECK(results[i].kind == HostValue::Kind::Tensor, Type, "run",
              "memory for an output must be given for tensors only. Got some - at ", place);
    Tensor& from = results[i].tensor;
    NEO_CHECK(from.dtype() == to.dtype(), Type, "run", "memory for an output must have its dtype. Got ",
              name(to.dtype()), ", expected ", name(from.dtype()), " - at ", place);
    NEO_CHECK(from.dims() == to.dims(), Shape, "run", "memory for an output must have its shape. Got ",
              to_string(to.dims()), ", expected ", to_string(from.dims()), " - at ", place);
    if (from.data() == to.data()) continue;
    if (from.bytes() > 0) std::memcpy(to.data(), from.data(), static_cast<size_t>(from.bytes()));
    from = to;
  }
}

}  // namespace

Module::Module(std::shared_ptr<const Plan> plan, const Configuration& configuration, bool oversubscribe,
               const Quota& quota)
    : plan_(std::move(plan)),
      bindings_(std::make_shared<BindingCache>()),
      device_(kHasDevices ? PlanDevice::of(plan_) : nullptr),
      configuration_(configuration),
      oversubscribe_(oversubscribe),
      quota_(quota) {
  const auto& [executors, threads] = configuration;
  NEO_CHECK(executors >= 1 && threads >= 1, Model, "compile", "executors and threads must be positive. Got ", executors,
            " of ", threads, ", expected 1 or more");
  if (plan_->device != DeviceKind::Cpu) configuration_ = {1, configuration.all_threads()};
}

std::unique_ptr<Module> Module::with(const Configuration& configuration, bool oversubscribe) const {
  auto other = std::make_unique<Module>(plan_, configuration, oversubscribe, quota_);
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
  return std::make_shared<Run>(plan_, bindings_, quota_, device_);
}

void Module::prepare_device() {
  if (kHasDevices && device_) device_->prepare();
}

void Module::give_back(std::shared_ptr<Run> run) {
  run->set_outputs({});
  run->set_trace(nullptr);
  run->set_observer(nullptr);
  run->set_shuffle({});
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
  check_outputs(options.outputs);
  const std::vector<Tensor> memory = writable_at_once(options.outputs, inputs);
  // A run that was cancelled or threw is not used again.
  std::shared_ptr<Run> run = take_run();
  run->set_outputs(memory);
  run->set_trace(options.trace);
  run->set_observer(options.observer);
  run->set_shuffle(options.shuffle);
  const auto running = std::make_shared<RunningCall>(run.get());
  const RunningCall::End end{*running};
  if (options.started) options.started([running] { running->cancel(); });
  const auto kind = oversubscribe_ ? Oversubscribe::Yes : Oversubscribe::No;
  const auto call = [&](Executors& executors) {
    if (!options.spans) return run->call(inputs, executors, options.poll);
    RecordingExecutors recording(executors);
    std::vector<HostValue> results = run->call(inputs, recording, options.poll);
    *options.spans = recording.take_spans();
    return results;
  };
  std::vector<HostValue> results;
  if (configuration_.executors > 1) {
    results = call(*process_thread_pool().lease_executors(configuration_.executors, configuration_.threads, kind));
  } else {
    const auto team = process_thread_pool().lease(configuration_.threads, kind);
    OneExecutor executor(*team);
    results = call(executor);
  }
  running->finish();
  if (!run->is_cancelled()) give_back(std::move(run));
  write_outputs(options.outputs, results, *plan_);
  return results;
}

}  // namespace neo
