#include "runtime/devices/cuda/cuda_device.h"

#include <map>
#include <mutex>

#include "base/check.h"
#include "runtime/devices/check_launch.h"
#include "runtime/devices/cuda/cuda_api.h"
#include "runtime/devices/cuda/cuda_compile.h"
#include "runtime/devices/cuda/cuda_staging.h"
#include "runtime/devices/program_cache.h"

namespace neo {
namespace {

constexpr unsigned kNonBlockingStream = 1;
constexpr int kThreadLocalCapture = 1;
constexpr unsigned kDeviceMapped = 2;
constexpr unsigned kTimedEvent = 0;
// The groups of a launch that CUDA takes along x, and along y and z.
constexpr int64_t kMaxGroups = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxGroupsAcross = 65535;

struct CudaState {
  int number = 0;
  DeviceInfo info;

  // Calls of this thread go to this device.
  void enter() const {
    std::call_once(opened_,
                   [&] { cuda::check(cuda::api().primary_ctx_retain(&context_, number), "be opened", info.name); });
    cuda::check(cuda::api().ctx_set_current(context_), "be used", info.name);
  }
  // The same where something of the device is taken down.
  void leave() const { cuda::api().ctx_set_current(context_); }

 private:
  mutable std::once_flag opened_;
  mutable cuda::Context context_ = nullptr;  // the primary one, kept for the life of the process
};

class CudaBuffer final : public DeviceBuffer {
 public:
  CudaBuffer(std::shared_ptr<const CudaState> device, cuda::Pointer pointer, int64_t bytes, std::byte* host)
      : device_(std::move(device)), pointer_(pointer), bytes_(bytes), host_(host) {}
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  ~CudaBuffer() override {
    device_->leave();
    host_ != nullptr ? cuda::api().mem_host_unregister(host_) : cuda::api().mem_free(pointer_);
  }
  int64_t bytes() const override { return bytes_; }
  cuda::Pointer at(int64_t offset, int64_t bytes) const {
    NEO_ASSERT(offset >= 0 && offset <= bytes_ && bytes <= bytes_ - offset, "Got ", offset, " and ", bytes,
               " bytes of ", bytes_);
    return pointer_ + static_cast<uint64_t>(offset);
  }
  std::byte* host() const { return host_; }

 private:
  std::shared_ptr<const CudaState> device_;
  cuda::Pointer pointer_;
  int64_t bytes_;
  std::byte* host_;
};

class CudaProgram final : public DeviceProgram {
 public:
  CudaProgram(std::shared_ptr<const CudaState> device, cuda::Module module)
      : device_(std::move(device)), module_(module) {}
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;
  ~CudaProgram() override {
    device_->leave();
    cuda::api().module_unload(module_);
  }
  cuda::Function function(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    cuda::Function& found = functions_[name];
    if (found == nullptr) {
      cuda::check(cuda::api().module_get_function(&found, module_, name.c_str()), "find the kernel " + name,
                  device_->info.name);
    }
    return found;
  }

 private:
  std::shared_ptr<const CudaState> device_;
  cuda::Module module_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, cuda::Function> functions_;
};

// A graph of launches; the programs stay loaded with it.
class CudaGraph final : public LaunchSequence {
 public:
  CudaGraph(std::shared_ptr<const CudaState> device, cuda::GraphExec graph, std::vector<Launch> launches)
      : device_(std::move(device)), graph_(graph), launches_(std::move(launches)) {}
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override {
    device_->leave();
    cuda::api().graph_exec_destroy(graph_);
  }
  cuda::GraphExec graph() const { return graph_; }
  const std::vector<Launch>& launches() const { return launches_; }

 private:
  std::shared_ptr<const CudaState> device_;
  cuda::GraphExec graph_;
  std::vector<Launch> launches_;
};

class CudaQueue final : public DeviceQueue {
 public:
  CudaQueue(std::shared_ptr<const CudaState> device, bool measures) : device_(std::move(device)), measures_(measures) {
    device_->enter();
    cuda::check(cuda::api().stream_create(&stream_, kNonBlockingStream), "open a stream", name());
    staging_ = std::make_unique<cuda::Staging>(stream_, name());
    if (measures_) origin_ = mark();
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;
  ~CudaQueue() override {
    device_->leave();
    cuda::api().stream_synchronize(stream_);
    for (const Timed& t : timed_) {
      cuda::api().event_destroy(t.start);
      cuda::api().event_destroy(t.end);
    }
    if (origin_ != nullptr) cuda::api().event_destroy(origin_);
    staging_.reset();
    cuda::api().stream_destroy(stream_);
  }

  void write(DeviceBuffer& to, int64_t offset, std::span<const std::byte> from) override {
    device_->enter();
    const auto& buffer = static_cast<const CudaBuffer&>(to);
    const cuda::Pointer place = buffer.at(offset, static_cast<int64_t>(from.size()));
    if (from.empty() || (buffer.host() != nullptr && from.data() == buffer.host() + offset)) return;
    staging_->write(place, from);
  }
  void read(const DeviceBuffer& from, int64_t offset, std::span<std::byte> to) override {
    device_->enter();
    const auto& buffer = static_cast<const CudaBuffer&>(from);
    const cuda::Pointer place = buffer.at(offset, static_cast<int64_t>(to.size()));
    if (to.empty() || (buffer.host() != nullptr && to.data() == buffer.host() + offset)) return finish();
    staging_->read(place, to);
    programs_.clear();
  }
  void copy(const DeviceBuffer& from, int64_t from_offset, DeviceBuffer& to, int64_t to_offset,
            int64_t bytes) override {
    device_->enter();
    if (bytes == 0) return;
    cuda::check(cuda::api().memcpy_dtod(static_cast<const CudaBuffer&>(to).at(to_offset, bytes),
                                        static_cast<const CudaBuffer&>(from).at(from_offset, bytes),
                                        static_cast<size_t>(bytes), stream_),
                "copy", name());
  }

  void launch(const Launch& l) override {
    device_->enter();
    const cuda::Event start = measures_ ? mark() : nullptr;
    enqueue(l);
    if (measures_) timed_.push_back({l.kernel, start, mark()});
    if (programs_.size() > kKeptPrograms) finish();
    programs_.push_back(l.program);
  }

  std::unique_ptr<LaunchSequence> prepare(std::vector<Launch> launches) override {
    device_->enter();
    // A kernel may be loaded when it is first asked for, which a stream that records does not allow.
    for (const Launch& l : launches) static_cast<const CudaProgram&>(*l.program).function(l.kernel);
    cuda::check(cuda::api().stream_begin_capture(stream_, kThreadLocalCapture), "record launches", name());
    cuda::Graph graph = nullptr;
    try {
      for (const Launch& l : launches) enqueue(l);
    } catch (const Error&) {
      cuda::api().stream_end_capture(stream_, &graph);
      if (graph != nullptr) cuda::api().graph_destroy(graph);
      throw;
    }
    cuda::check(cuda::api().stream_end_capture(stream_, &graph), "record launches", name());
    cuda::GraphExec made = nullptr;
    const int code = cuda::api().graph_instantiate(&made, graph, 0);
    cuda::api().graph_destroy(graph);
    cuda::check(code, "make a graph", name());
    return std::make_unique<CudaGraph>(device_, made, std::move(launches));
  }
  void launch(const LaunchSequence& sequence) override {
    device_->enter();
    const auto& graph = static_cast<const CudaGraph&>(sequence);
    const cuda::Event start = measures_ ? mark() : nullptr;
    cuda::check(cuda::api().graph_launch(graph.graph(), stream_), "launch a graph", name());
    if (measures_) timed_.push_back({"graph", start, mark()});
  }

  void finish() override {
    device_->enter();
    cuda::check(cuda::api().stream_synchronize(stream_), "finish its work", name());
    programs_.clear();
  }

  std::vector<LaunchTime> take_times() override {
    finish();
    std::vector<LaunchTime> times;
    if (timed_.empty()) return times;
    // The driver gives a difference as float32 milliseconds, which after a minute are steps of 4 us: only differences
    // of events that lie close together are exact.
    const cuda::Event first = timed_.front().start;
    origin_ns_ += between_ns(origin_, first);
    cuda::api().event_destroy(origin_);
    origin_ = first;
    for (const Timed& t : timed_) {
      const int64_t start_ns = origin_ns_ + between_ns(first, t.start);
      times.push_back({t.kernel, start_ns, start_ns + between_ns(t.start, t.end)});
      if (t.start != first) cuda::api().event_destroy(t.start);
      cuda::api().event_destroy(t.end);
    }
    timed_.clear();
    return times;
  }

 private:
  static constexpr size_t kKeptPrograms = 4096;
  struct Timed {
    std::string kernel;
    cuda::Event start;
    cuda::Event end;
  };

  const std::string& name() const { return device_->info.name; }

  cuda::Event mark() {
    cuda::Event event = nullptr;
    cuda::check(cuda::api().event_create(&event, kTimedEvent), "make an event", name());
    cuda::check(cuda::api().event_record(event, stream_), "record an event", name());
    return event;
  }

  int64_t between_ns(cuda::Event from, cuda::Event to) const {
    float ms = 0;
    cuda::check(cuda::api().event_elapsed_time(&ms, from, to), "tell the time", name());
    return static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  }

  void enqueue(const Launch& l) {
    check_launch(device_->info, "cuda", l);
    if (l.groups[0] == 0 || l.groups[1] == 0 || l.groups[2] == 0) return;
    std::array<int64_t, 3> groups = l.groups;
    if (groups[1] > kMaxGroupsAcross || groups[2] > kMaxGroupsAcross) {
      groups = {groups[0] * groups[1] * groups[2], 1, 1};  // kernels know their groups by number as well
    }
    NEO_CHECK(groups[0] <= kMaxGroups, Unsupported, "cuda", "the groups of a launch must fit the device. Got ",
              groups[0], " in ", l.kernel, ", ", name(), " takes ", kMaxGroups);
    std::vector<cuda::Pointer> pointers;
    pointers.reserve(l.arguments.size());
    std::vector<void*> arguments;
    for (const KernelArgument& a : l.arguments) {
      if (const auto* number = std::get_if<NumberArgument>(&a)) {
        arguments.push_back(const_cast<std::byte*>(number->bytes.data()));
      } else {
        const auto& b = std::get<BufferArgument>(a);
        pointers.push_back(static_cast<const CudaBuffer*>(b.buffer)->at(b.offset, 0));
        arguments.push_back(&pointers.back());
      }
    }
    const auto size = [](int64_t x) { return static_cast<unsigned>(x); };
    cuda::check(cuda::api().launch_kernel(static_cast<const CudaProgram&>(*l.program).function(l.kernel),
                                          size(groups[0]), size(groups[1]), size(groups[2]), size(l.locals[0]),
                                          size(l.locals[1]), size(l.locals[2]), 0, stream_, arguments.data(), nullptr),
                "launch " + l.kernel, name());
  }

  std::shared_ptr<const CudaState> device_;
  bool measures_;
  cuda::Stream stream_ = nullptr;
  std::unique_ptr<cuda::Staging> staging_;
  cuda::Event origin_ = nullptr;
  int64_t origin_ns_ = 0;
  std::vector<Timed> timed_;
  std::vector<std::shared_ptr<const DeviceProgram>> programs_;  // of launches that may still run
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::shared_ptr<const CudaState> device) : device_(std::move(device)) {}

  const DeviceInfo& info() const override { return device_->info; }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    check_allocation(info(), "cuda", bytes);
    device_->enter();
    cuda::Pointer pointer = 0;
    cuda::check(cuda::api().mem_alloc(&pointer, static_cast<size_t>(bytes)), str("allocate ", bytes, " bytes"),
                info().name);
    return std::make_unique<CudaBuffer>(device_, pointer, bytes, nullptr);
  }

  std::unique_ptr<DeviceBuffer> adopt(std::span<std::byte> memory) override {
    if (!info().is_host_unified) return nullptr;
    device_->enter();
    cuda::Pointer pointer = 0;
    if (cuda::api().mem_host_register(memory.data(), memory.size(), kDeviceMapped) != cuda::kSuccess) return nullptr;
    cuda::check(cuda::api().mem_host_get_device_pointer(&pointer, memory.data(), 0), "share memory", info().name);
    return std::make_unique<CudaBuffer>(device_, pointer, static_cast<int64_t>(memory.size()), memory.data());
  }

  std::shared_ptr<const DeviceProgram> compile(const ProgramSource& source) override {
    check_program(info(), "cuda", source);
    std::string key = str("cuda\n", info().version, "\n", info().driver, "\n");
    for (const char* option : kCudaOptions) key += str(option, "\n");
    key += source.text;
    const std::lock_guard lock(mutex_);
    if (auto kept = programs_[key].lock()) return kept;
    device_->enter();
    cuda::Module module = nullptr;
    const auto cached = ProgramCache::load(key);
    if (!cached || cuda::api().module_load_data(&module, cached->data()) != cuda::kSuccess) {
      const std::string binary = compile_cuda(source.text, info().version);
      cuda::check(cuda::api().module_load_data(&module, binary.data()), "load a program", info().name);
      ProgramCache::store(key, binary);
    }
    auto made = std::make_shared<const CudaProgram>(device_, module);
    programs_[key] = made;
    return made;
  }

  std::unique_ptr<DeviceQueue> make_queue(bool measures) override {
    return std::make_unique<CudaQueue>(device_, measures);
  }

 private:
  std::shared_ptr<const CudaState> device_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const DeviceProgram>> programs_;
};

DeviceInfo cuda_info(int device) {
  const auto attribute = [&](int what) {
    int value = 0;
    cuda::check(cuda::api().device_get_attribute(&value, what, device), "be described", "a CUDA device");
    return value;
  };
  DeviceInfo info;
  info.kind = DeviceKind::Cuda;
  info.language = "cuda";
  char name[256] = {};
  cuda::check(cuda::api().device_get_name(name, sizeof name - 1, device), "be described", "a CUDA device");
  info.name = name;
  info.vendor = "NVIDIA";
  int driver = 0;
  cuda::check(cuda::api().driver_get_version(&driver), "be described", info.name);
  info.driver = std::to_string(driver);
  info.platform = str("CUDA ", driver / 1000, ".", driver % 1000 / 10);
  info.version = 10 * attribute(cuda::kComputeCapabilityMajor) + attribute(cuda::kComputeCapabilityMinor);
  info.compute_units = attribute(cuda::kMultiprocessorCount);
  size_t bytes = 0;
  cuda::check(cuda::api().device_total_mem(&bytes, device), "be described", info.name);
  info.memory_bytes = info.largest_buffer_bytes = static_cast<int64_t>(bytes);
  info.local_bytes = attribute(cuda::kMaxSharedMemoryPerBlock);
  info.group_threads = attribute(cuda::kMaxThreadsPerBlock);
  for (int i = 0; i < 3; ++i) info.local_extents[i] = attribute(cuda::kMaxBlockDimX + i);
  info.has_float16 = info.version >= 53;
  info.has_float64 = true;
  info.has_subgroups = true;
  info.has_matrices = info.version >= 80;
  info.has_dots = info.version >= 61;
  info.is_host_unified = attribute(cuda::kIntegrated) != 0;
  return info;
}

std::vector<std::shared_ptr<Device>> every_cuda_device() {
  const int code = cuda::api().init(0);
  int count = 0;
  if (code == cuda::kSuccess) cuda::check(cuda::api().device_get_count(&count), "be listed", "the CUDA driver");
  NEO_CHECK((code == cuda::kSuccess && count > 0) || (code != cuda::kSuccess && code != cuda::kNoDevice), Resource,
            "cuda", "there must be an NVIDIA GPU. Got a driver without one");
  cuda::check(code, "start", "the CUDA driver");
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    cuda::check(cuda::api().device_get(&device, i), "be opened", "the CUDA driver");
    auto shared = std::make_shared<CudaState>();
    shared->number = device;
    shared->info = cuda_info(device);
    devices.push_back(std::make_shared<CudaDevice>(std::move(shared)));
  }
  return devices;
}

}  // namespace

std::vector<std::shared_ptr<Device>> open_cuda_devices() {
  // The driver takes its state down when the process ends; the devices are not closed behind it.
  static const auto* const devices = new std::vector<std::shared_ptr<Device>>(every_cuda_device());
  return *devices;
}

}  // namespace neo
