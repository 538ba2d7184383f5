#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/budget.h"
#include "exec/binding.h"
#include "exec/executors.h"

namespace neo {

// One record per executed item, in order of end.
struct TraceEvent {
  const Item* item = nullptr;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int iteration = -1;                      // of the innermost loop
  int executor = 0;                        // that ran it
  std::shared_ptr<const Binding> binding;  // of the item's region
};

// Told of every value that an item of the outermost block has just written: a copy on the host, row-major, whatever the
// plan's layout.
using ValueObserver = std::function<void(const Item& item, const std::string& value, HostValue copy)>;

// Everything one call owns: memory, cancel flag, trace. Used by one call at a time; kept and reused between calls.
class Run {
 public:
  virtual ~Run() = default;
  // Runs the plan. `inputs` in the plan's order, dense row-major; results are fresh tensors (or the caller's, see
  // outputs). Throws Cancelled when cancel() was called from another thread. `poll`, if any, is called every 50 ms or
  // so between items; what it throws ends the call.
  virtual std::vector<HostValue> call(std::span<const HostValue> inputs, Executors& executors,
                                      const std::function<void()>* poll = nullptr) = 0;
  virtual void cancel() = 0;
  virtual bool is_cancelled() const = 0;
  // Set before a call to record it; null: no cost but one test per item.
  virtual void set_trace(std::vector<TraceEvent>* trace) = 0;
  // The same for what items write; null: no cost but one test per item.
  virtual void set_observer(const ValueObserver* observer) = 0;
  // Set before a call: the caller's dense memory for each result, undefined or absent where there is none. A result of
  // these dtype and dims is computed there; others are elsewhere. It must not overlap with inputs.
  virtual void set_outputs(std::span<const Tensor> outputs) = 0;
  // Has calls run the items of every region one by one in another order that the dependencies allow, over memory whose
  // former contents are gone; one of many by the seed. For tests.
  virtual void set_shuffle(std::optional<uint64_t> seed) = 0;
  virtual int64_t arena_bytes() const = 0;
};

// Kernels and constants that the runs of a plan share on its device (runtime/plan_device.h).
class PlanDevice;

// A fresh run over a plan; all are kept alive by it. A call beyond the quota ends in a Memory or a Cancelled error.
// `device` is needed where steps of the plan run on one.
std::unique_ptr<Run> make_run(std::shared_ptr<const Plan> plan, std::shared_ptr<BindingCache> bindings,
                              const Quota& quota = {}, std::shared_ptr<PlanDevice> device = nullptr);

}  // namespace neo
