#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "exec/launches.h"
#include "exec/plan.h"

namespace neo {

// Compiled kernels and constants that the runs of a plan share on its device. The device is opened when a run first
// needs it.
class PlanDevice {
 public:
  explicit PlanDevice(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  // Null for a plan all of whose values are on the host.
  static std::shared_ptr<PlanDevice> of(const std::shared_ptr<const Plan>& plan);

  // Compiles once; thread-safe. After a failure the next call tries again.
  void prepare();

  // The rest after prepare().
  Device& device() const { return *device_; }
  const StepKernels& kernels(const Step& step) const { return kernels_.at(&step); }
  const DeviceBuffer* constant(const Tensor& tensor) const { return constants_.at(tensor.data()).get(); }

 private:
  void prepare_block(const Block& block, DeviceQueue& queue);
  const DeviceBuffer* upload(const Tensor& tensor, DeviceQueue& queue);

  std::shared_ptr<const Plan> plan_;
  ForkSafeMutex mutex_;
  bool is_ready_ = false;
  std::shared_ptr<Device> device_;
  std::map<const Step*, StepKernels> kernels_;
  std::map<std::string, std::shared_ptr<const DeviceProgram>> programs_;  // by text
  std::map<const void*, std::unique_ptr<DeviceBuffer>> constants_;
};

// How devices are opened; a program that only runs plans of the CPU does not say, and links no drivers.
using OpenDevice = std::shared_ptr<Device> (*)(DeviceKind kind);
void open_devices_with(OpenDevice open);

// A run's share of a device: a queue, where all its work goes in order, and scratch memory.
class DeviceRun {
 public:
  explicit DeviceRun(std::shared_ptr<PlanDevice> device) : plan_(std::move(device)) {}
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun();

  // Before a call; `measures`: take_ns() will be asked.
  void start(bool measures);
  const PlanDevice& plan() const { return *plan_; }
  DeviceQueue& queue() const { return *queue_; }
  // Temporaries of one step at a time.
  void reserve_scratch(int64_t bytes);
  const DeviceBuffer* scratch() const { return scratch_.get(); }
  // How often the queue or the scratch memory became another: launches of all frames refer to both.
  int64_t changes() const { return changes_; }
  // Waits; how long the launches since the last time took, from the start of the first to the end of the last.
  int64_t take_ns();

 private:
  std::shared_ptr<PlanDevice> plan_;
  std::unique_ptr<DeviceQueue> queue_;
  bool measures_ = false;
  std::unique_ptr<DeviceBuffer> scratch_;
  int64_t changes_ = 0;
};

// Grows a buffer to at least `bytes`; its contents are lost then. True where it did.
bool grow(std::unique_ptr<DeviceBuffer>& buffer, int64_t bytes, Device& device);

}  // namespace neo
