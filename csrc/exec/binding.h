#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "exec/device_step.h"
#include "exec/growth.h"
#include "exec/plan.h"

namespace neo {

// A region with its symbols bound: every size and offset, and what prepare() returned. Immutable.
struct Binding {
  SymbolValues symbols;
  std::vector<bool> sized;          // by slot: its dims are known
  std::vector<Dims> dims;           // by slot
  std::vector<int64_t> offset;      // by slot, bytes into the arena that holds it; -1 where not planned
  std::vector<int64_t> view_bytes;  // by slot, bytes from the base; views only
  std::vector<int> caller_owned;    // sized slots whose memory is the caller's or a step's own: their dims are checked
  std::vector<int64_t> late_bytes;  // by slot: what memory of unknown size must hold for the view; empty: no such view
  int64_t passing_bytes = 0;        // of the arena whose contents end with the region
  int64_t kept_bytes = 0;           // of the arena at the region's place
  int64_t scratch_bytes = 0;
  std::vector<Prepared> prepared;     // by item; empty for items that need none
  std::vector<Growth> growths;        // values of the block that grow in place
  std::vector<int64_t> append_bytes;  // by item, bytes into its last output where it writes; empty: 0 for all
  // The members below serve regions with device steps.
  int64_t device_arena_bytes = 0;      // offsets of slots of a device lie in an arena of its own
  int64_t device_scratch_bytes = 0;    // temporaries of the step that wants most
  std::vector<StepLaunches> launches;  // by item; of a step that counts, those of count()
};

// The offset of each temporary of a step in its scratch memory, and behind the last one the end.
std::vector<int64_t> temporary_offsets(const StepLaunches& launches, int counts);
// One argument of a kernel or device step.
Arg describe_slot(const Block& block, const Binding& binding, int slot);

// Checks guards, evaluates every formula, plans the arenas (greedy by size over may_share) and prepares kernel steps,
// but for those with the arguments of another binding of the region, `before`.
std::shared_ptr<const Binding> bind_region(const Block& block, const Region& region, const SymbolValues& symbols,
                                           std::span<const Growth> growths = {}, const Binding* before = nullptr);

// Bindings by symbol values. A region keeps `capacity` of them, or 256 while all regions' together are small; the least
// recently used are dropped. Thread-safe.
class BindingCache {
 public:
  explicit BindingCache(size_t capacity = 32) : capacity_(capacity) {}
  std::shared_ptr<const Binding> get(const Block& block, const Region& region, const SymbolValues& symbols,
                                     const std::vector<Growth>& growths);
  size_t size() const;

 private:
  struct Entry {
    const Region* region;
    std::shared_ptr<const Binding> binding;
  };
  mutable ForkSafeMutex mutex_;
  std::list<Entry> entries_;
  size_t capacity_;
};

}  // namespace neo
