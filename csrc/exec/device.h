#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/schema.h"

namespace neo {

// Off in an exported program, and in a libneo of NEO_DEVICES=OFF: plans of the CPU alone, a third of the size.
#ifdef NEO_WITHOUT_DEVICES
inline constexpr bool kHasDevices = false;
#else
inline constexpr bool kHasDevices = true;
#endif

// A device's name and properties, as its driver gives them.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::Null;
  std::string name;
  std::string vendor;
  std::string driver;    // its version, part of the program cache's key
  std::string platform;  // "OpenCL 3.0 PoCL 5.0", "CUDA 12.4"
  int version = 0;       // of the interface: 120 is OpenCL 1.2; CUDA's compute capability, 87 is 8.7
  int compute_units = 0;
  int64_t memory_bytes = 0;
  int64_t largest_buffer_bytes = 0;
  int64_t local_bytes = 0;  // of one group
  int64_t group_threads = 0;
  std::array<int64_t, 3> local_extents{};
  bool has_float16 = false;
  bool has_float64 = false;
  bool has_subgroups = false;    // shuffles
  bool has_block_reads = false;  // of Intel's subgroups
  bool has_matrices = false;     // CUDA's matrix instructions on tf32
  bool has_dots = false;         // instructions for products of four bytes and their sum
  bool has_arm_dots = false;     // the same, by Arm's extension alone
  int64_t image_texels = 0;      // float32x4, of an image of a buffer at most; 0: no images
  bool is_host_unified = false;  // shares the host's memory
  bool computes = true;          // launches do what their kernels say
  std::string language;          // that compile() takes, by its name in kernel_ir: "opencl", "cuda", "c"

  // The features that the device lacks, in words: "float16", "subgroups", ...
  std::vector<std::string> lacks() const;
};

// A program's source and what it asks of the device, checked before the driver sees it.
struct ProgramSource {
  std::string text;
  std::string options;  // the driver's
  bool needs_float16 = false;
  bool needs_float64 = false;
  bool needs_subgroups = false;
  bool needs_images = false;
};

class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
};

// Memory of a device.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual int64_t bytes() const = 0;
};

// One argument: a place in a buffer, or the bytes of a number.
struct BufferArgument {
  const DeviceBuffer* buffer = nullptr;
  int64_t offset = 0;             // bytes; a multiple of 256
  std::optional<int64_t> texels;  // the texels of an image; none: the parameter is memory
};
struct NumberArgument {
  std::array<std::byte, 8> bytes{};
  int size = 0;

  template <class T>
  static NumberArgument of(T value) {
    NumberArgument out;
    static_assert(sizeof(T) <= sizeof out.bytes);
    __builtin_memcpy(out.bytes.data(), &value, sizeof value);
    out.size = sizeof value;
    return out;
  }
};
using KernelArgument = std::variant<BufferArgument, NumberArgument>;

// A launch is data.
struct Launch {
  std::shared_ptr<const DeviceProgram> program;
  std::string kernel;
  std::array<int64_t, 3> groups{1, 1, 1};
  std::array<int64_t, 3> locals{1, 1, 1};
  int64_t local_bytes = 0;
  std::vector<KernelArgument> arguments;
};

struct LaunchTime {
  std::string kernel;
  int64_t start_ns = 0;  // on the device's clock
  int64_t end_ns = 0;
};

// Launches that a queue runs at once, time and again: a graph where the driver has them.
class LaunchSequence {
 public:
  virtual ~LaunchSequence() = default;
};

// Without graphs: one launch after the other.
class LaunchList final : public LaunchSequence {
 public:
  explicit LaunchList(std::vector<Launch> launches) : launches_(std::move(launches)) {}
  const std::vector<Launch>& launches() const { return launches_; }

 private:
  std::vector<Launch> launches_;
};

// Work in order. Enqueued work runs when the device comes to it; finish() waits for all of it and raises its errors.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  virtual void write(DeviceBuffer& to, int64_t offset, std::span<const std::byte> from) = 0;  // `from` may go at once
  virtual void read(const DeviceBuffer& from, int64_t offset, std::span<std::byte> to) = 0;   // waits
  virtual void copy(const DeviceBuffer& from, int64_t from_offset, DeviceBuffer& to, int64_t to_offset,
                    int64_t bytes) = 0;
  virtual void launch(const Launch& launch) = 0;
  // The buffers of the launches outlive the sequence, which belongs to this queue.
  virtual std::unique_ptr<LaunchSequence> prepare(std::vector<Launch> launches) = 0;
  virtual void launch(const LaunchSequence& sequence) = 0;
  virtual void finish() = 0;
  // The times of the launches since the last call, in order; waits for them. Empty unless the queue measures.
  virtual std::vector<LaunchTime> take_times() = 0;
};

// Allocator, queue, compiler, copies. Thread-safe; a queue and a buffer are used by one thread at a time. Buffers,
// programs and queues keep their device alive.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // At least one byte. No memory is a Memory error.
  virtual std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) = 0;
  // Memory of the host that the device reads and writes in place; null where it cannot. `memory` starts on a page,
  // fills whole pages and outlives the buffer. The host sees the device's writes after read() of a queue, which copies
  // nothing where `to` is that memory; the device sees the host's after write() alike.
  virtual std::unique_ptr<DeviceBuffer> adopt(std::span<std::byte> memory) = 0;
  // Takes the program from the cache where it is there. The compiler's message is in the error, with its line.
  virtual std::shared_ptr<const DeviceProgram> compile(const ProgramSource& source) = 0;
  virtual std::unique_ptr<DeviceQueue> make_queue(bool measures) = 0;
};

}  // namespace neo
