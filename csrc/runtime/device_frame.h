#pragma once

#include <memory>
#include <span>
#include <vector>

#include "exec/binding.h"
#include "runtime/plan_device.h"

namespace neo {

// The memory of one block on the device inside one run: an arena for each region, memory of counted values, and its
// launches with their arguments, kept while nothing moves.
class DeviceFrame {
 public:
  DeviceFrame(const Block& block, DeviceRun& run);
  DeviceFrame(const DeviceFrame&) = delete;
  DeviceFrame& operator=(const DeviceFrame&) = delete;
  ~DeviceFrame();

  void enter_region(size_t index, const std::shared_ptr<const Binding>& binding);
  void run(const StepItem& call, size_t item);
  // Runs the device's steps from an item of the region on at once, where they follow one another and have run before
  // with the same memory. How many items that were; 0: none, run() does it.
  size_t run_together(size_t item);
  void write(size_t slot, std::span<const std::byte> from);
  void read(size_t slot, std::span<std::byte> to) const;
  Tensor read(size_t slot) const;
  const Dims& dims_of(size_t slot) const;

 private:
  struct Owned {
    std::unique_ptr<DeviceBuffer> buffer;
    Dims dims;
  };
  struct Ready {
    int64_t generation = -1;
    std::vector<Launch> launches;
  };
  // Items of a region, one after the other, all of them steps of the device that need no counts.
  struct Sequence {
    size_t first = 0;
    size_t count = 0;
    int64_t generation = -1;
    std::unique_ptr<LaunchSequence> launches;
  };
  BufferArgument place_of(size_t slot) const;
  std::vector<Launch> resolve(const StepItem& call, const StepLaunches& launches) const;
  void run_counted(const StepItem& call, const DeviceStep& step, const StepLaunches& count);
  void launch(const std::vector<Launch>& launches) const;
  // The number of everything that launches refer to: another one after any of it moved.
  int64_t generation() const { return generation_ + run_.changes(); }

  const Block& block_;
  DeviceRun& run_;
  std::vector<std::unique_ptr<DeviceBuffer>> arenas_;  // by region
  std::vector<std::shared_ptr<const Binding>> bound_;  // by region
  std::vector<std::vector<Ready>> ready_;              // by region and item
  std::vector<std::vector<Sequence>> sequences_;       // by region, in order
  std::vector<BufferArgument> places_;                 // by slot that has memory of its own
  std::map<size_t, Owned> owned_;
  const Binding* binding_ = nullptr;  // of the region that runs
  size_t region_ = 0;
  int64_t generation_ = 0;  // of this frame's memory
};

}  // namespace neo
