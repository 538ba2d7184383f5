#include "runtime/devices/null/null_device.h"

#include <cstring>
#include <mutex>

#include "base/check.h"

namespace neo {
namespace {

struct Log {
  std::mutex mutex;
  std::vector<std::string> sources;
  std::vector<std::string> lines;

  void add(std::string line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
  }
};

class NullBuffer final : public DeviceBuffer {
 public:
  explicit NullBuffer(int64_t bytes) : bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
};

class NullProgram final : public DeviceProgram {};

class NullQueue final : public DeviceQueue {
 public:
  explicit NullQueue(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  void write(DeviceBuffer&, int64_t, std::span<const std::byte> from) override {
    log_->add(str("write ", from.size()));
  }
  void read(const DeviceBuffer&, int64_t, std::span<std::byte> to) override {
    std::memset(to.data(), 0, to.size());
    log_->add(str("read ", to.size()));
  }
  void copy(const DeviceBuffer&, int64_t, DeviceBuffer&, int64_t, int64_t bytes) override {
    log_->add(str("copy ", bytes));
  }
  void launch(const Launch& l) override {
    std::string line = str("launch ", l.kernel, " ", l.groups[0], " ", l.groups[1], " ", l.groups[2], " x ",
                           l.locals[0], " ", l.locals[1], " ", l.locals[2]);
    for (size_t i = 0; i < l.arguments.size(); ++i) {
      const auto* memory = std::get_if<BufferArgument>(&l.arguments[i]);
      if (memory != nullptr && memory->texels) line += str(", argument ", i, " an image of ", *memory->texels);
    }
    log_->add(std::move(line));
  }
  std::unique_ptr<LaunchSequence> prepare(std::vector<Launch> launches) override {
    return std::make_unique<LaunchList>(std::move(launches));
  }
  void launch(const LaunchSequence& sequence) override {
    for (const Launch& l : static_cast<const LaunchList&>(sequence).launches()) launch(l);
  }
  void finish() override {}
  std::vector<LaunchTime> take_times() override { return {}; }

 private:
  std::shared_ptr<Log> log_;
};

class RecordingDevice final : public NullDevice {
 public:
  RecordingDevice() {
    info_.kind = DeviceKind::Null;
    info_.computes = false;
    info_.language = "opencl";
    info_.name = "null";
    info_.vendor = "neo";
    info_.platform = "records, computes nothing";
    info_.compute_units = 1;
    info_.memory_bytes = info_.largest_buffer_bytes = int64_t{1} << 46;
    info_.local_bytes = 32 << 10;
    info_.group_threads = 1024;
    info_.local_extents = {1024, 1024, 1024};
    info_.has_float16 = info_.has_float64 = info_.has_subgroups = info_.has_block_reads = true;
    info_.image_texels = 1 << 16;
    info_.is_host_unified = true;
  }
  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    NEO_CHECK(bytes >= 1 && bytes <= info_.largest_buffer_bytes, Memory, "null",
              "a buffer must fit in the device's memory. Got ", bytes, " bytes, expected 1 ... ",
              info_.largest_buffer_bytes);
    return std::make_unique<NullBuffer>(bytes);
  }
  std::unique_ptr<DeviceBuffer> adopt(std::span<std::byte> memory) override {
    return allocate(static_cast<int64_t>(memory.size()));
  }
  std::shared_ptr<const DeviceProgram> compile(const ProgramSource& source) override {
    const std::lock_guard lock(log_->mutex);
    log_->sources.push_back(source.text);
    return std::make_shared<NullProgram>();
  }
  std::unique_ptr<DeviceQueue> make_queue(bool) override { return std::make_unique<NullQueue>(log_); }

  std::vector<std::string> sources() const override {
    const std::lock_guard lock(log_->mutex);
    return log_->sources;
  }
  std::vector<std::string> record() const override {
    const std::lock_guard lock(log_->mutex);
    return log_->lines;
  }

 private:
  DeviceInfo info_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

}  // namespace

std::vector<std::shared_ptr<Device>> open_null_devices() {
  return {std::make_shared<RecordingDevice>()};
}

}  // namespace neo
