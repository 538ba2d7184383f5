#pragma once

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "runtime/frame.h"
#include "runtime/run_state.h"

namespace neo {

// How often a loop's body may run.
struct LoopBounds {
  int64_t trips = std::numeric_limits<int64_t>::max();
  bool ends = false;   // a false condition ends the loop: a Loop that was given a condition, or no bound
  bool starts = true;  // the condition before the first iteration
};

// Runs the items of one block over its memory.
class Interpreter {
 public:
  Interpreter(const Block& block, RunState& run);

  // Results in the block's order, see Frame::take_results().
  std::vector<HostValue> call(std::span<const HostValue> arguments, const SymbolValues& outer);
  int64_t arena_bytes() const;

 private:
  friend class SteadyLoop;

  // The memory of one executor beside the values'.
  struct Lane {
    Arena scratch;
    std::vector<std::byte*> pointers;
  };

  void enter_region(size_t index);
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
  void run_dims(const DimsItem& item);
  void run_if(const IfItem& item);
  void run_loop(const LoopItem& item);
  LoopBounds loop_bounds(const LoopItem& item, std::span<const HostValue> scanned) const;
  Interpreter& child(const Block& block);

  const Block& block_;
  RunState& run_;
  Frame frame_;
  std::vector<Lane> lanes_;  // by executor
  std::map<const Block*, std::unique_ptr<Interpreter>> children_;
};

}  // namespace neo
