#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/launches.h"
#include "ir/tensor.h"

namespace neo {

// A device with a queue that measures where it can, and what all trials of a workload share there.
class DeviceStage {
 public:
  explicit DeviceStage(std::shared_ptr<Device> device);

  Device& device() const { return *device_; }
  DeviceQueue& queue() const { return *queue_; }
  // The device's copy of a tensor, made once.
  const DeviceBuffer* upload(const Tensor& tensor);
  // Memory that every candidate writes; it moves while candidates are made.
  void reserve_outputs(int64_t bytes) { output_bytes_ = std::max(output_bytes_, bytes); }
  void reserve_scratch(int64_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }
  void place();
  DeviceBuffer* outputs() const { return outputs_.get(); }
  DeviceBuffer* scratch() const { return scratch_.get(); }
  // Reads and writes again what a step found and left: in a cache that device and host share it lies as though it had
  // just been made.
  void warm(const Tensor& input);
  void warm_outputs(int64_t bytes);

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceQueue> queue_;
  // By place and size: synthetic constants begin at one place.
  std::map<std::pair<const void*, int64_t>, std::pair<Tensor, std::unique_ptr<DeviceBuffer>>> uploads_;
  int64_t output_bytes_ = 1;
  int64_t scratch_bytes_ = 1;
  std::unique_ptr<DeviceBuffer> outputs_;
  std::unique_ptr<DeviceBuffer> scratch_;
  std::vector<std::byte> read_;
};

// One trial on a device: a step's launches, with a copy from or to the host before or behind them where a conversion
// has one, or a copy alone.
class TimedDeviceCandidate {
 public:
  // `inputs` as the step takes them, on the host; `args` of these and of the outputs. Compiles the step's kernels.
  // `step` may be null: then only the copies are timed. `copies_in`: the input comes from the host every time;
  // `copies_out`: the output goes there.
  TimedDeviceCandidate(DeviceStage& stage, const DeviceStep* step, std::vector<Tensor> inputs,
                       std::vector<bool> is_constant, std::vector<Arg> args, bool copies_in, bool copies_out);

  // After every candidate was made. Runs a few times: what a driver does with the first launch is no part of a call.
  void place();
  // The time of one run by the device's clock: from the start of its first launch to the end of its last, and the pause
  // before it; the host's waiting time where the queue has no clock, or where bytes are copied.
  int64_t time_ns();
  // Fills the caches as they are when a model comes to the step.
  void warm();

 private:
  void run();
  int64_t warm_up(int runs);

  DeviceStage& stage_;
  const DeviceStep* step_;
  std::vector<Tensor> inputs_;
  std::vector<bool> is_constant_;
  std::vector<Arg> args_;
  bool copies_in_;
  bool copies_out_;
  StepLaunches launches_;
  StepKernels kernels_;
  std::vector<const DeviceBuffer*> operands_;
  std::vector<int64_t> offsets_;  // of the outputs
  int64_t output_bytes_ = 0;
  std::vector<Launch> resolved_;
  std::vector<std::byte> host_;  // what is copied out
  int64_t pause_ns_ = -1;        // between two runs
};

}  // namespace neo
