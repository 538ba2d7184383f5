#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "exec/binding.h"
#include "exec/executors.h"
#include "exec/trace.h"
#include "runtime/plan_device.h"
#include "runtime/scheduler.h"

namespace neo {

// The state that all blocks of one run share. Executors other than the caller's run items of the outermost block only.
struct RunState {
  std::shared_ptr<BindingCache> bindings;
  std::shared_ptr<Budget> budget;  // of the call
  std::atomic<bool> cancelled{false};
  std::vector<TraceEvent>* trace = nullptr;
  const ValueObserver* observer = nullptr;
  const Block* root = nullptr;  // the block whose values it is told of, and whose items several executors run
  Executors* executors = nullptr;
  std::vector<Team*> teams;  // by executor
  // By executor: what it records for the trace, while several run.
  std::vector<std::vector<TraceEvent>> records;
  std::unique_ptr<Scheduler<CriticalPathFirst>> scheduler;  // null until a region needs it
  std::optional<uint64_t> shuffle;                          // Run::set_shuffle()
  int iteration = -1;
  std::span<const Tensor> outputs;    // the caller's memory for the outermost block's results
  const Block* outermost = nullptr;   // the block whose results go there
  std::shared_ptr<DeviceRun> device;  // null: no step needs one
};

}  // namespace neo
