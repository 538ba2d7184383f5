#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/budget.h"
#include "exec/executors.h"
#include "exec/trace.h"
#include "runtime/device_frame.h"
#include "runtime/growing_values.h"
#include "runtime/scheduler.h"

namespace neo {

// The state that the frames of one run share. Executors other than the caller's run items of the outermost block only.
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

// The memory of one block inside one run.
class Frame {
 public:
  Frame(const Block& block, RunState& run);

  // Results in the block's order. A tensor that this frame's memory would not outlive is copied.
  std::vector<HostValue> call(std::span<const HostValue> arguments, const SymbolValues& outer);
  int64_t arena_bytes() const;

 private:
  friend class SteadyLoop;

  void take_arguments(std::span<const HostValue> arguments, const SymbolValues& outer);
  // The memory of one executor beside the values'.
  struct Lane {
    Arena scratch;
    std::vector<std::byte*> pointers;
  };

  void enter_region(size_t index);
  void place_growths();
  bool gather_grown(const StepItem& call, size_t item);
  void run_region(const Region& region);
  bool has_executors(const Region& region) const;
  void run_together(const Region& region);
  void run_shuffled(const Region& region);
  void execute(const Item& item, size_t index);
  bool execute_beside(const Item& item, size_t index, int executor);
  void record(const Item& item, int64_t start_ns, int executor, std::vector<TraceEvent>& events);
  void observe(const Item& item) const;
  void run_step(const StepItem& call, size_t item);
  void run_kernel(const StepItem& call, size_t item, int executor);
  void run_copy(const StepItem& call);
  const Dims& dims_of(size_t slot) const;  // of a slot that exists
  std::byte* address_of(int slot) const;
  void run_dims(const DimsItem& item);
  void run_if(const IfItem& item);
  void run_loop(const LoopItem& item);
  void store_owned(int slot, HostValue value);
  HostValue read(int slot) const;
  size_t memory_of(size_t slot) const;
  // Fails unless caller-owned memory holds the view, where binding could not tell.
  void check_late(int view, size_t memory) const;
  Frame& child(const Block& block);
  Tensor result_memory(size_t result, DType dtype, const Dims& dims);

  const Block& block_;
  RunState& run_;
  SymbolValues symbols_;
  std::vector<std::byte*> data_;
  std::vector<HostValue> host_;                        // arguments and owned values
  std::vector<std::shared_ptr<const Binding>> bound_;  // by region
  const Binding* binding_ = nullptr;                   // of the region that runs
  size_t region_ = 0;                                  // that region
  Arena passing_;                                      // what no later region reads
  std::vector<Arena> kept_;                            // by Region::place
  std::vector<Lane> lanes_;                            // by executor
  std::vector<std::vector<Tensor>> spare_;  // by result: memory given out before, reused once nobody holds it
  std::map<const Block*, std::unique_ptr<Frame>> children_;
  GrowingValues growing_;  // of the loop whose body this is
  // Null: no slot of this block is on a device. Shared, so that a program without devices links no destructor.
  std::shared_ptr<DeviceFrame> device_;
};

}  // namespace neo
