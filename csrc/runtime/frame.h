#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "runtime/device_frame.h"
#include "runtime/growing_values.h"
#include "runtime/run_state.h"

namespace neo {

// The memory of one block inside one run: where the value of each slot lies and how large it is.
class Frame {
 public:
  Frame(const Block& block, RunState& run);

  void take_arguments(std::span<const HostValue> arguments, const SymbolValues& outer);
  // Binds the region's sizes and gives its values their places; what follows is about this region.
  void enter_region(size_t index);
  // Lets go of values that no later region reads.
  void release(std::span<const int> slots);
  // The block's results, in its order; a tensor that this memory would not outlive is copied. Lets go of all values.
  std::vector<HostValue> take_results();
  void clear();

  HostValue read(int slot) const;
  // The address of a slot's value; null for -1.
  std::byte* address_of(int slot) const;
  // Takes over what a host step made, checked against the slot's type.
  void store(int slot, HostValue value);
  // The part of a growing value that this step gathers. False: it gathers none, or finds an index outside, which it
  // says.
  bool gather_grown(const StepItem& call, size_t item);
  // Fails unless the arguments hold their views, where binding could not tell.
  void check_arguments() const;
  int64_t arena_bytes() const;

  const Binding& binding() const { return *binding_; }
  const std::shared_ptr<const Binding>& bound() const { return bound_[region_]; }
  const SymbolValues& symbols() const { return symbols_; }
  GrowingValues& growing() { return growing_; }  // of the loop whose body this is
  DeviceFrame* device() const { return device_.get(); }
  // The memory of a slot that is no view, and the values of arguments and of slots that own theirs.
  std::byte*& data(size_t slot) { return data_[slot]; }
  std::vector<HostValue>& host() { return host_; }
  const std::vector<HostValue>& host() const { return host_; }

 private:
  void place_growths();
  const Dims& dims_of(size_t slot) const;  // of a slot that exists
  size_t memory_of(size_t slot) const;
  // Fails unless caller-owned memory holds the view, where binding could not tell.
  void check_late(int view, size_t memory) const {
    if (!binding_->late_bytes.empty()) check_held(view, memory);
  }
  void check_held(int view, size_t memory) const;
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
  std::vector<std::vector<Tensor>> spare_;  // by result: memory given out before, reused once nobody holds it
  GrowingValues growing_;
  // Null: no slot of this block is on a device. Shared, so that a program without devices links no destructor.
  std::shared_ptr<DeviceFrame> device_;
};

inline std::byte* Frame::address_of(int slot) const {
  if (slot < 0) return nullptr;
  int64_t bytes = 0;
  auto i = static_cast<size_t>(slot);
  while (block_.slots[i].storage == Slot::Storage::View) {
    bytes += binding_->view_bytes[i];
    i = static_cast<size_t>(block_.slots[i].base);
  }
  check_late(slot, i);
  return data_[i] + bytes;
}

}  // namespace neo
