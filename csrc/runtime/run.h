#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "exec/executors.h"
#include "exec/trace.h"

namespace neo {

class Interpreter;
class PlanDevice;
struct RunState;

// Everything one call owns: memory, cancel flag, trace. Used by one call at a time; kept and reused between calls.
class Run {
 public:
  // A fresh run over a plan; all are kept alive by it. A call beyond the quota ends in a Memory or a Cancelled error.
  // `device`, kernels and constants that the runs of a plan share, is needed where steps of the plan run on one.
  Run(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings, const Quota& quota = {},
      std::shared_ptr<PlanDevice> device = nullptr);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  // Runs the plan. `inputs` in the plan's order, dense row-major; results are fresh tensors (or the caller's, see
  // outputs). Throws Cancelled when cancel() was called from another thread. `poll`, if any, is called every 50 ms or
  // so between items; what it throws ends the call.
  std::vector<HostValue> call(std::span<const HostValue> inputs, Executors& executors,
                              const std::function<void()>* poll = nullptr);
  void cancel();
  bool is_cancelled() const;
  // Set before a call to record it; null: no cost but one test per item.
  void set_trace(std::vector<TraceEvent>* trace);
  // The same for what items write; null: no cost but one test per item.
  void set_observer(const ValueObserver* observer);
  // Set before a call: the caller's dense memory for each result, undefined or absent where there is none. A result of
  // these dtype and dims is computed there; others are elsewhere. It must not overlap with inputs.
  void set_outputs(std::span<const Tensor> outputs);
  // Has calls run the items of every region one by one in another order that the dependencies allow, over memory whose
  // former contents are gone; one of many by the seed. For tests.
  void set_shuffle(std::optional<uint64_t> seed);
  int64_t arena_bytes() const;

 private:
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<RunState> state_;
  std::unique_ptr<Interpreter> interpreter_;
};

}  // namespace neo
