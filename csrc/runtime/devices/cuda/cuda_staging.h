#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "runtime/devices/cuda/cuda_api.h"

namespace neo::cuda {

// Copies between a device and the host's ordinary memory, in parts through pinned memory: the device moves one part
// while the processor moves another, and a write does not wait for the device.
class Staging {
 public:
  Staging(Stream stream, std::string device) : stream_(stream), device_(std::move(device)) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();  // The stream is idle.

  void write(Pointer to, std::span<const std::byte> from);  // `from` may go at once
  void read(Pointer from, std::span<std::byte> to);         // waits for this and for what the stream had to do before

 private:
  static constexpr size_t kPartBytes = size_t{256} << 10;
  static constexpr size_t kParts = 8;
  std::byte* part(size_t number);  // of a copy, where the device does not use it any more
  void record(size_t number);
  void await(size_t number);

  Stream stream_;
  std::string device_;
  std::byte* memory_ = nullptr;
  std::array<Event, kParts> moved_{};  // when the device has moved the part
  size_t next_ = 0;                    // the number of the next part of all copies
};

}  // namespace neo::cuda
