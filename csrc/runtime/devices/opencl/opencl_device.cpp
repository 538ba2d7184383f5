#include "runtime/devices/opencl/opencl_device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"
#include "runtime/devices/check_launch.h"
#include "runtime/devices/opencl/opencl_api.h"
#include "runtime/devices/program_cache.h"

namespace neo {
namespace {

constexpr int kOldestVersion = 120;
constexpr int64_t kTexelBytes = 16;
constexpr int64_t kMinAlignment = 256;  // of a BufferArgument

// The state that all objects of one device share.
struct OpenClState {
  opencl::DeviceId id = nullptr;
  opencl::Context context = nullptr;
  DeviceInfo info;
  int64_t alignment = 1;  // bytes, of a part of a buffer

  OpenClState() = default;
  OpenClState(const OpenClState&) = delete;
  OpenClState& operator=(const OpenClState&) = delete;
  ~OpenClState() {
    if (context != nullptr) opencl::api().release_context(context);
  }
};

class OpenClBuffer final : public DeviceBuffer {
 public:
  OpenClBuffer(std::shared_ptr<const OpenClState> device, opencl::Mem mem, int64_t bytes, std::byte* host)
      : device_(std::move(device)), mem_(mem), bytes_(bytes), host_(host) {}
  OpenClBuffer(const OpenClBuffer&) = delete;
  OpenClBuffer& operator=(const OpenClBuffer&) = delete;
  ~OpenClBuffer() override {
    for (const auto& [place, image] : images_) image.release();
    for (const auto& [offset, part] : parts_) opencl::api().release_mem_object(part);
    opencl::api().release_mem_object(mem_);
  }
  int64_t bytes() const override { return bytes_; }
  opencl::Mem mem() const { return mem_; }
  std::byte* host() const { return host_; }  // the host's memory that this is; null: the device's own

  // Texels, of which `first` lies at the offset; kept with the buffer.
  struct Image {
    opencl::Mem mem = nullptr;
    opencl::Mem part = nullptr;  // that it is made of; null: the buffer
    int32_t first = 0;

    void release() const {
      for (const opencl::Mem m : {mem, part}) {
        if (m != nullptr) opencl::api().release_mem_object(m);
      }
    }
  };
  const Image& image(int64_t offset, int64_t texels) const {
    const auto place = std::pair(offset, texels);
    if (const auto found = images_.find(place); found != images_.end()) return found->second;
    return images_.emplace(place, make_image(offset, texels)).first->second;
  }

  // From an offset on.
  opencl::Mem part(int64_t offset) const {
    if (offset == 0) return mem_;
    NEO_ASSERT(offset > 0 && offset < bytes_, "Got ", offset, " of ", bytes_);
    opencl::Mem& made = parts_[offset];
    if (made == nullptr) {
      const opencl::BufferRegion region{static_cast<size_t>(offset), static_cast<size_t>(bytes_ - offset)};
      int32_t code = 0;
      made =
          opencl::api().create_sub_buffer(mem_, opencl::kMemReadWrite, opencl::kBufferCreateTypeRegion, &region, &code);
      opencl::check(code, "use a part of a buffer", device_->info.name);
    }
    return made;
  }

 private:
  // An image of as little of the buffer as the driver allows: a part begins at a multiple of its alignment, and drivers
  // (PoCL) refuse images of parts.
  Image make_image(int64_t offset, int64_t texels) const {
    NEO_ASSERT(offset % kTexelBytes == 0 && offset + texels * kTexelBytes <= bytes_, "Got ", texels, " texels at ",
               offset, " of ", bytes_, " bytes");
    const int64_t begin = offset / device_->alignment * device_->alignment, end = offset + texels * kTexelBytes;
    const opencl::BufferRegion region{static_cast<size_t>(begin), static_cast<size_t>(end - begin)};
    int32_t code = 0;
    Image made;
    made.part =
        opencl::api().create_sub_buffer(mem_, opencl::kMemReadWrite, opencl::kBufferCreateTypeRegion, &region, &code);
    opencl::check(code, "use a part of a buffer", device_->info.name);
    made.first = static_cast<int32_t>((offset - begin) / kTexelBytes);
    made.mem = image_of(made.part, end - begin, &code);
    if (code == 0) return made;
    made.release();
    made.part = nullptr;
    made.first = static_cast<int32_t>(offset / kTexelBytes);
    made.mem = image_of(mem_, end, &code);
    opencl::check(code, "make an image of a buffer", device_->info.name);
    return made;
  }

  opencl::Mem image_of(opencl::Mem memory, int64_t bytes, int32_t* code) const {
    const opencl::ImageFormat format{opencl::kRgba, opencl::kFloat};
    opencl::ImageDescription description{};
    description.type = opencl::kMemObjectImage1dBuffer;
    description.width = static_cast<size_t>(bytes / kTexelBytes);
    description.buffer = memory;
    return opencl::api().create_image(device_->context, opencl::kMemReadOnly, &format, &description, nullptr, code);
  }

  std::shared_ptr<const OpenClState> device_;
  opencl::Mem mem_;
  int64_t bytes_;
  std::byte* host_;
  mutable std::map<int64_t, opencl::Mem> parts_;
  mutable std::map<std::pair<int64_t, int64_t>, Image> images_;
};

class OpenClProgram final : public DeviceProgram {
 public:
  OpenClProgram(std::shared_ptr<const OpenClState> device, opencl::Program program)
      : device_(std::move(device)), program_(program) {}
  OpenClProgram(const OpenClProgram&) = delete;
  OpenClProgram& operator=(const OpenClProgram&) = delete;
  ~OpenClProgram() override { opencl::api().release_program(program_); }
  opencl::Program program() const { return program_; }

 private:
  std::shared_ptr<const OpenClState> device_;
  opencl::Program program_;
};

class OpenClQueue final : public DeviceQueue {
 public:
  OpenClQueue(std::shared_ptr<const OpenClState> device, bool measures)
      : device_(std::move(device)), measures_(measures) {
    int32_t code = 0;
    queue_ = opencl::api().create_command_queue(device_->context, device_->id,
                                                measures ? opencl::kQueueProfilingEnable : 0, &code);
    opencl::check(code, "open a queue", name());
  }
  OpenClQueue(const OpenClQueue&) = delete;
  OpenClQueue& operator=(const OpenClQueue&) = delete;
  ~OpenClQueue() override {
    opencl::api().finish(queue_);
    for (const auto& [kernel, event] : events_) opencl::api().release_event(event);
    for (const auto& [key, kernel] : kernels_) opencl::api().release_kernel(kernel.first);
    opencl::api().release_command_queue(queue_);
  }

  void write(DeviceBuffer& to, int64_t offset, std::span<const std::byte> from) override {
    const auto& buffer = static_cast<const OpenClBuffer&>(to);
    in_range(buffer, offset, from.size());
    if (from.empty()) return;
    if (buffer.host() != nullptr && from.data() == buffer.host() + offset) return touch(buffer, offset, from.size());
    opencl::check(opencl::api().enqueue_write_buffer(queue_, buffer.mem(), 1, static_cast<size_t>(offset), from.size(),
                                                     from.data(), 0, nullptr, nullptr),
                  "take data", name());
  }

  void read(const DeviceBuffer& from, int64_t offset, std::span<std::byte> to) override {
    const auto& buffer = static_cast<const OpenClBuffer&>(from);
    in_range(buffer, offset, to.size());
    if (to.empty()) return;
    if (buffer.host() != nullptr && to.data() == buffer.host() + offset) return touch(buffer, offset, to.size());
    opencl::check(opencl::api().enqueue_read_buffer(queue_, buffer.mem(), 1, static_cast<size_t>(offset), to.size(),
                                                    to.data(), 0, nullptr, nullptr),
                  "give data back", name());
  }

  void copy(const DeviceBuffer& from, int64_t from_offset, DeviceBuffer& to, int64_t to_offset,
            int64_t bytes) override {
    const auto& source = static_cast<const OpenClBuffer&>(from);
    const auto& destination = static_cast<const OpenClBuffer&>(to);
    in_range(source, from_offset, static_cast<size_t>(bytes));
    in_range(destination, to_offset, static_cast<size_t>(bytes));
    if (bytes == 0) return;
    opencl::check(opencl::api().enqueue_copy_buffer(queue_, source.mem(), destination.mem(),
                                                    static_cast<size_t>(from_offset), static_cast<size_t>(to_offset),
                                                    static_cast<size_t>(bytes), 0, nullptr, nullptr),
                  "copy", name());
  }

  void launch(const Launch& l) override {
    check_launch(device_->info, "opencl", l);
    size_t global[3], local[3];
    for (int i = 0; i < 3; ++i) {
      if (l.groups[i] == 0) return;
      local[i] = static_cast<size_t>(l.locals[i]);
      global[i] = static_cast<size_t>(l.groups[i]) * local[i];
    }
    const opencl::Kernel kernel = kernel_of(l);
    uint32_t next = 0;  // an image takes two places
    for (size_t i = 0; i < l.arguments.size(); ++i) {
      const auto set = [&](size_t bytes, const void* value) {
        opencl::check(opencl::api().set_kernel_arg(kernel, next++, bytes, value),
                      str("take argument ", i, " of ", l.kernel), name());
      };
      if (const auto* number = std::get_if<NumberArgument>(&l.arguments[i])) {
        set(static_cast<size_t>(number->size), number->bytes.data());
        continue;
      }
      const auto& argument = std::get<BufferArgument>(l.arguments[i]);
      const auto& buffer = static_cast<const OpenClBuffer&>(*argument.buffer);
      if (argument.texels) {
        NEO_CHECK(*argument.texels <= device_->info.image_texels, Unsupported, "opencl",
                  "an image must fit the device. Got ", *argument.texels, " texels in ", l.kernel, ", ", name(),
                  " takes ", device_->info.image_texels);
        const OpenClBuffer::Image& image = buffer.image(argument.offset, *argument.texels);
        set(sizeof image.mem, &image.mem);
        set(sizeof image.first, &image.first);
      } else {
        const opencl::Mem mem = buffer.part(argument.offset);
        set(sizeof mem, &mem);
      }
    }
    opencl::Event event = nullptr;
    opencl::check(opencl::api().enqueue_nd_range_kernel(queue_, kernel, 3, nullptr, global, local, 0, nullptr,
                                                        measures_ ? &event : nullptr),
                  "launch " + l.kernel, name());
    if (measures_) events_.emplace_back(l.kernel, event);
  }

  std::unique_ptr<LaunchSequence> prepare(std::vector<Launch> launches) override {
    return std::make_unique<LaunchList>(std::move(launches));
  }
  void launch(const LaunchSequence& sequence) override {
    for (const Launch& l : static_cast<const LaunchList&>(sequence).launches()) launch(l);
  }

  void finish() override { opencl::check(opencl::api().finish(queue_), "finish its work", name()); }

  std::vector<LaunchTime> take_times() override {
    finish();
    std::vector<LaunchTime> times;
    for (const auto& [kernel, event] : events_) {
      uint64_t start = 0, end = 0;
      const int32_t first =
          opencl::api().get_event_profiling_info(event, opencl::kProfilingCommandStart, sizeof start, &start, nullptr);
      const int32_t second =
          opencl::api().get_event_profiling_info(event, opencl::kProfilingCommandEnd, sizeof end, &end, nullptr);
      opencl::api().release_event(event);
      if (first == 0 && second == 0) times.push_back({kernel, static_cast<int64_t>(start), static_cast<int64_t>(end)});
    }
    events_.clear();
    return times;
  }

 private:
  const std::string& name() const { return device_->info.name; }

  static void in_range(const OpenClBuffer& buffer, int64_t offset, size_t bytes) {
    NEO_ASSERT(offset >= 0 && offset <= buffer.bytes() && static_cast<int64_t>(bytes) <= buffer.bytes() - offset,
               "Got ", offset, " and ", bytes, " bytes of ", buffer.bytes());
  }

  // Makes writes to shared memory seen on the other side.
  void touch(const OpenClBuffer& buffer, int64_t offset, size_t bytes) {
    int32_t code = 0;
    void* mapped = opencl::api().enqueue_map_buffer(queue_, buffer.mem(), 1, opencl::kMapRead | opencl::kMapWrite,
                                                    static_cast<size_t>(offset), bytes, 0, nullptr, nullptr, &code);
    opencl::check(code, "share memory", name());
    opencl::check(opencl::api().enqueue_unmap_mem_object(queue_, buffer.mem(), mapped, 0, nullptr, nullptr),
                  "share memory", name());
    finish();
  }

  // A kernel object keeps its arguments, so each queue has its own; the program is kept with it.
  opencl::Kernel kernel_of(const Launch& l) {
    auto& [kernel, program] = kernels_[{l.program.get(), l.kernel}];
    if (kernel == nullptr) {
      int32_t code = 0;
      kernel =
          opencl::api().create_kernel(static_cast<const OpenClProgram&>(*l.program).program(), l.kernel.c_str(), &code);
      opencl::check(code, "find the kernel " + l.kernel, name());
      program = l.program;
    }
    return kernel;
  }

  std::shared_ptr<const OpenClState> device_;
  bool measures_;
  opencl::CommandQueue queue_ = nullptr;
  std::map<std::pair<const DeviceProgram*, std::string>,
           std::pair<opencl::Kernel, std::shared_ptr<const DeviceProgram>>>
      kernels_;
  std::vector<std::pair<std::string, opencl::Event>> events_;
};

class OpenClDevice final : public Device {
 public:
  explicit OpenClDevice(std::shared_ptr<OpenClState> device) : device_(std::move(device)) {}

  const DeviceInfo& info() const override { return device_->info; }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override { return make_buffer(bytes, nullptr); }

  std::unique_ptr<DeviceBuffer> adopt(std::span<std::byte> memory) override {
    if (!info().is_host_unified) return nullptr;
    return make_buffer(static_cast<int64_t>(memory.size()), memory.data());
  }

  std::shared_ptr<const DeviceProgram> compile(const ProgramSource& source) override {
    check_program(info(), "opencl", source);
    const std::string key = str(info().platform, "\n", info().vendor, "\n", info().name, "\n", info().driver, "\n",
                                source.options, "\n", source.text);
    const std::lock_guard lock(mutex_);
    if (auto kept = programs_[key].lock()) return kept;
    opencl::Program program = from_cache(key, source.options);
    if (program == nullptr) {
      program = from_source(source);
      keep(key, program);
    }
    auto made = std::make_shared<const OpenClProgram>(device_, program);
    programs_[key] = made;
    return made;
  }

  std::unique_ptr<DeviceQueue> make_queue(bool measures) override {
    return std::make_unique<OpenClQueue>(device_, measures);
  }

 private:
  std::unique_ptr<DeviceBuffer> make_buffer(int64_t bytes, std::byte* host) {
    check_allocation(info(), "opencl", bytes);
    int32_t code = 0;
    const opencl::Mem mem = opencl::api().create_buffer(
        device_->context, opencl::kMemReadWrite | (host != nullptr ? opencl::kMemUseHostPtr : 0),
        static_cast<size_t>(bytes), host, &code);
    opencl::check(code, str("allocate ", bytes, " bytes"), info().name);
    return std::make_unique<OpenClBuffer>(device_, mem, bytes, host);
  }

  // Null where it is not there or the driver does not take it any more.
  opencl::Program from_cache(const std::string& key, const std::string& options) {
    const auto binary = ProgramCache::load(key);
    if (!binary) return nullptr;
    const auto* data = reinterpret_cast<const unsigned char*>(binary->data());
    const size_t size = binary->size();
    int32_t status = 0, code = 0;
    const opencl::Program program =
        opencl::api().create_program_with_binary(device_->context, 1, &device_->id, &size, &data, &status, &code);
    if (code == 0 && status == 0 &&
        opencl::api().build_program(program, 1, &device_->id, options.c_str(), nullptr, nullptr) == 0) {
      return program;
    }
    if (program != nullptr) opencl::api().release_program(program);
    ProgramCache::remove(key);
    return nullptr;
  }

  opencl::Program from_source(const ProgramSource& source) {
    const char* text = source.text.c_str();
    const size_t length = source.text.size();
    int32_t code = 0;
    const opencl::Program program =
        opencl::api().create_program_with_source(device_->context, 1, &text, &length, &code);
    opencl::check(code, "take a program", info().name);
    code = opencl::api().build_program(program, 1, &device_->id, source.options.c_str(), nullptr, nullptr);
    if (code == 0) return program;
    size_t bytes = 0;
    opencl::api().get_program_build_info(program, device_->id, opencl::kProgramBuildLog, 0, nullptr, &bytes);
    std::string log(bytes, '\0');
    opencl::api().get_program_build_info(program, device_->id, opencl::kProgramBuildLog, bytes, log.data(), nullptr);
    opencl::api().release_program(program);
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    if (code != opencl::kBuildProgramFailure && log.empty()) opencl::check(code, "compile a program", info().name);
    fail_to_compile("opencl", source.text, log);
  }

  void keep(const std::string& key, opencl::Program program) {
    size_t size = 0;
    if (opencl::api().get_program_info(program, opencl::kProgramBinarySizes, sizeof size, &size, nullptr) != 0 ||
        size == 0)
      return;
    std::string binary(size, '\0');
    char* data = binary.data();
    if (opencl::api().get_program_info(program, opencl::kProgramBinaries, sizeof data, &data, nullptr) != 0) return;
    ProgramCache::store(key, binary);
  }

  std::shared_ptr<OpenClState> device_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const DeviceProgram>> programs_;
};

std::string text_of(opencl::DeviceId id, opencl::Info what) {
  size_t bytes = 0;
  if (opencl::api().get_device_info(id, what, 0, nullptr, &bytes) != 0) return "";
  std::string text(bytes, '\0');
  if (opencl::api().get_device_info(id, what, bytes, text.data(), nullptr) != 0) return "";
  return text.c_str();
}

template <class T>
T number_of(opencl::DeviceId id, opencl::Info what) {
  T value{};
  return opencl::api().get_device_info(id, what, sizeof value, &value, nullptr) == 0 ? value : T{};
}

// "OpenCL 1.2 ..." is 120.
int version_of(const std::string& text) {
  int major = 0, minor = 0;
  return std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) == 2 ? 100 * major + 10 * minor : 0;
}

int64_t alignment_of(opencl::DeviceId id) {
  return std::max<int64_t>(number_of<uint32_t>(id, opencl::kDeviceMemBaseAddrAlign) / 8, kTexelBytes);
}

DeviceInfo opencl_info(opencl::Platform platform, opencl::DeviceId id) {
  DeviceInfo info;
  info.kind = DeviceKind::OpenCl;
  info.language = "opencl";
  info.name = text_of(id, opencl::kDeviceName);
  info.vendor = text_of(id, opencl::kDeviceVendor);
  info.driver = text_of(id, opencl::kDriverVersion);
  char version[256] = {};
  opencl::api().get_platform_info(platform, opencl::kPlatformVersion, sizeof version - 1, version, nullptr);
  info.platform = version;
  while (!info.platform.empty() && info.platform.back() == ' ') info.platform.pop_back();
  info.version = version_of(text_of(id, opencl::kDeviceVersion));
  info.compute_units = static_cast<int>(number_of<uint32_t>(id, opencl::kDeviceMaxComputeUnits));
  info.memory_bytes = static_cast<int64_t>(number_of<uint64_t>(id, opencl::kDeviceGlobalMemSize));
  info.largest_buffer_bytes = static_cast<int64_t>(number_of<uint64_t>(id, opencl::kDeviceMaxMemAllocSize));
  info.local_bytes = static_cast<int64_t>(number_of<uint64_t>(id, opencl::kDeviceLocalMemSize));
  info.group_threads = static_cast<int64_t>(number_of<size_t>(id, opencl::kDeviceMaxWorkGroupSize));
  const auto extents = number_of<std::array<size_t, 3>>(id, opencl::kDeviceMaxWorkItemSizes);
  for (int i = 0; i < 3; ++i) info.local_extents[i] = static_cast<int64_t>(extents[i]);
  const std::string extensions = " " + text_of(id, opencl::kDeviceExtensions) + " ";
  const auto has = [&](const char* extension) {
    return extensions.find(str(" ", extension, " ")) != std::string::npos;
  };
  info.has_float16 = has("cl_khr_fp16");
  info.has_float64 = has("cl_khr_fp64");
  info.has_block_reads = has("cl_intel_subgroups");
  info.has_subgroups = info.has_block_reads || (has("cl_khr_subgroups") && has("cl_khr_subgroup_shuffle"));
  info.has_dots = has("cl_khr_integer_dot_product");
  info.has_arm_dots = has("cl_arm_integer_dot_product_accumulate_int8");
  info.is_host_unified = number_of<uint32_t>(id, opencl::kDeviceHostUnifiedMemory) != 0;
  if (number_of<uint32_t>(id, opencl::kDeviceImageSupport) != 0) {
    // The bytes before an image's first texel count.
    const int64_t before = std::max<int64_t>(alignment_of(id) - kMinAlignment, 0) / kTexelBytes;
    const auto most = static_cast<int64_t>(number_of<size_t>(id, opencl::kDeviceImageMaxBufferSize));
    info.image_texels = std::max<int64_t>(most - before, 0);
  }
  return info;
}

bool usable(opencl::DeviceId id, const DeviceInfo& info) {
  return info.version >= kOldestVersion && number_of<uint32_t>(id, opencl::kDeviceAvailable) != 0 &&
         number_of<uint32_t>(id, opencl::kDeviceCompilerAvailable) != 0;
}

std::vector<std::shared_ptr<Device>> every_opencl_device() {
  uint32_t count = 0;
  const int32_t code = opencl::api().get_platform_ids(0, nullptr, &count);
  const std::string hint = "\nHint: install a driver, for example Debian's pocl-opencl-icd, which runs on the CPU";
  NEO_CHECK(code == 0 && count > 0, Resource, "opencl", "there must be an OpenCL driver. Got none",
            code == 0 ? "" : " (" + opencl::error_name(code) + ")", hint);
  std::vector<opencl::Platform> platforms(count);
  opencl::check(opencl::api().get_platform_ids(count, platforms.data(), nullptr), "list platforms", "the ICD loader");
  std::vector<std::shared_ptr<Device>> devices;
  std::string refused;
  for (const opencl::Platform platform : platforms) {
    uint32_t number = 0;
    if (opencl::api().get_device_ids(platform, opencl::kDeviceTypeAll, 0, nullptr, &number) != 0 || number == 0)
      continue;
    std::vector<opencl::DeviceId> ids(number);
    if (opencl::api().get_device_ids(platform, opencl::kDeviceTypeAll, number, ids.data(), nullptr) != 0) continue;
    for (const opencl::DeviceId id : ids) {
      auto shared = std::make_shared<OpenClState>();
      shared->id = id;
      shared->info = opencl_info(platform, id);
      shared->alignment = alignment_of(id);
      int32_t status = 0;
      const intptr_t properties[] = {0x1084, reinterpret_cast<intptr_t>(platform), 0};  // CL_CONTEXT_PLATFORM
      if (usable(id, shared->info)) {
        shared->context = opencl::api().create_context(properties, 1, &id, nullptr, nullptr, &status);
      }
      if (shared->context == nullptr) {
        refused += (refused.empty() ? "" : ", ") + shared->info.name;
        continue;
      }
      devices.push_back(std::make_shared<OpenClDevice>(std::move(shared)));
    }
  }
  NEO_CHECK(!devices.empty(), Resource, "opencl", "there must be a device of OpenCL 1.2 or later with a compiler. Got ",
            refused.empty() ? "none" : refused, hint);
  return devices;
}

}  // namespace

std::vector<std::shared_ptr<Device>> open_opencl_devices() {
  // Drivers take down their own state when the process ends; the devices are not closed behind it.
  static const auto* const devices = new std::vector<std::shared_ptr<Device>>(every_opencl_device());
  return *devices;
}

}  // namespace neo
