#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "runtime/recording_team.h"
#include "runtime/run.h"

namespace neo {

// A plan ready to be called, from any number of threads at once.
class Module {
 public:
  // `oversubscribe`: teams have their threads even where fewer cores are free. `quota` holds for each call. A plan with
  // steps on a device has one executor of all threads.
  Module(std::shared_ptr<const Plan> plan, const Configuration& configuration, bool oversubscribe = false,
         const Quota& quota = {});

  const Plan& plan() const { return *plan_; }
  const Configuration& configuration() const { return configuration_; }
  const Quota& quota() const { return quota_; }
  // Limits every call; set before the first.
  void limit_calls(const Quota& quota) { quota_ = quota; }

  struct CallOptions {
    std::vector<TraceEvent>* trace = nullptr;
    std::vector<TeamSpan>* spans = nullptr;  // when each thread works
    const ValueObserver* observer = nullptr;
    // The caller's memory for each result, undefined where there is none; empty: no result has any. A call writes its
    // results there: a Type or a Shape error where one does not fit.
    std::span<const Tensor> outputs;
    std::optional<uint64_t> shuffle;  // Run::set_shuffle()
    const std::function<void()>* poll = nullptr;
    std::function<void(std::function<void()> cancel)> started;  // told how to cancel this call
  };
  std::vector<HostValue> call(std::span<const HostValue> inputs, const CallOptions& options);

  // The same plan and bindings on other threads.
  std::unique_ptr<Module> with(const Configuration& configuration, bool oversubscribe) const;

  // Opens the device, compiles its kernels and sends it the constants, which the first call does otherwise. Nothing
  // where no step needs a device; a Resource error where there is none.
  void prepare_device();

  // Memory that idle runs keep for the next call.
  int64_t kept_bytes() const;
  size_t binding_count() const { return bindings_->size(); }

 private:
  std::shared_ptr<Run> take_run();
  void give_back(std::shared_ptr<Run> run);

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<BindingCache> bindings_;
  std::shared_ptr<PlanDevice> device_;  // null: no step needs one
  Configuration configuration_;
  bool oversubscribe_;
  Quota quota_;
  mutable ForkSafeMutex mutex_;
  std::vector<std::shared_ptr<Run>> idle_;
};

}  // namespace neo
