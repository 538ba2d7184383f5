// A device that neo does not come with: the host, which takes kernels in plain C and compiles them with its C compiler.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "exec/device_registry.h"

namespace {

neo::DeviceKind kind;

[[noreturn]] void fail(const std::string& text) {
  throw neo::Error(neo::ErrorKind::Internal, "[fake] " + text);
}

class Program final : public neo::DeviceProgram {
 public:
  explicit Program(const std::string& text) {
    std::string at = std::filesystem::temp_directory_path() / "neo-fake-XXXXXX";
    if (mkdtemp(at.data()) == nullptr) fail("a folder must be made. Got none");
    std::ofstream(at + "/kernel.c") << text;
    const std::string command = "cc -std=gnu11 -O1 -w -shared -fPIC -o " + at + "/kernel.so " + at + "/kernel.c -lm";
    const bool is_built = std::system(command.c_str()) == 0;
    if (is_built) library_ = dlopen((at + "/kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove_all(at);
    if (library_ == nullptr) fail("the C compiler must take the kernel. Got an error");
  }
  ~Program() override { dlclose(library_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  using Kernel = void(void* const*);
  Kernel* find(const std::string& name) const { return reinterpret_cast<Kernel*>(dlsym(library_, name.c_str())); }

 private:
  void* library_ = nullptr;
};

class Buffer final : public neo::DeviceBuffer {
 public:
  explicit Buffer(int64_t bytes) : memory_(std::aligned_alloc(256, (bytes + 255) / 256 * 256)), bytes_(bytes) {}
  ~Buffer() override { std::free(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  void* memory_;
  int64_t bytes_;
};

std::byte* at(const neo::DeviceBuffer& buffer, int64_t offset) {
  return static_cast<const Buffer&>(buffer).at(offset);
}

// Everything is done at once; there is no clock.
class Queue final : public neo::DeviceQueue {
 public:
  void write(neo::DeviceBuffer& to, int64_t offset, std::span<const std::byte> from) override {
    std::memcpy(at(to, offset), from.data(), from.size());
  }
  void read(const neo::DeviceBuffer& from, int64_t offset, std::span<std::byte> to) override {
    std::memcpy(to.data(), at(from, offset), to.size());
  }
  void copy(const neo::DeviceBuffer& from, int64_t from_offset, neo::DeviceBuffer& to, int64_t to_offset,
            int64_t bytes) override {
    std::memcpy(at(to, to_offset), at(from, from_offset), static_cast<size_t>(bytes));
  }
  void launch(const neo::Launch& launch) override {
    auto* run = static_cast<const Program&>(*launch.program).find(launch.kernel);
    if (run == nullptr) fail("the program must have " + launch.kernel + ". Got none");
    std::vector<void*> arguments;
    for (const neo::KernelArgument& argument : launch.arguments) {
      if (const auto* number = std::get_if<neo::NumberArgument>(&argument)) {
        arguments.push_back(const_cast<std::byte*>(number->bytes.data()));
      } else {
        const auto& memory = std::get<neo::BufferArgument>(argument);
        arguments.push_back(at(*memory.buffer, memory.offset));
      }
    }
    run(arguments.data());
  }
  std::unique_ptr<neo::LaunchSequence> prepare(std::vector<neo::Launch> launches) override {
    return std::make_unique<neo::LaunchList>(std::move(launches));
  }
  void launch(const neo::LaunchSequence& sequence) override {
    for (const neo::Launch& l : static_cast<const neo::LaunchList&>(sequence).launches()) launch(l);
  }
  void finish() override {}
  std::vector<neo::LaunchTime> take_times() override { return {}; }
};

class Fake final : public neo::Device {
 public:
  Fake() {
    info_.kind = kind;
    info_.name = "fake";
    info_.vendor = "a test";
    info_.platform = "plain C";
    info_.compute_units = 1;
    info_.memory_bytes = info_.largest_buffer_bytes = int64_t{1} << 32;
    info_.local_bytes = 32 << 10;
    info_.group_threads = 256;
    info_.local_extents = {256, 256, 256};
    info_.has_float64 = info_.is_host_unified = true;
    info_.language = "c";
  }
  const neo::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<neo::DeviceBuffer> allocate(int64_t bytes) override { return std::make_unique<Buffer>(bytes); }
  std::unique_ptr<neo::DeviceBuffer> adopt(std::span<std::byte>) override { return nullptr; }
  std::shared_ptr<const neo::DeviceProgram> compile(const neo::ProgramSource& source) override {
    return std::make_shared<Program>(source.text);
  }
  std::unique_ptr<neo::DeviceQueue> make_queue(bool) override { return std::make_unique<Queue>(); }

 private:
  neo::DeviceInfo info_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void neo_register_devices(neo::DeviceRegistry& registry) {
  neo::DeviceFigures figures;
  figures.gflops = 20;
  figures.gbps = 10;
  figures.launch_us = figures.copy_us = 1;
  figures.copy_gbps = 5;
  figures.language = "c";
  const auto open = []() -> std::vector<std::shared_ptr<neo::Device>> { return {std::make_shared<Fake>()}; };
  kind = registry.add("fake", "plain C on the host", open, figures);
}
