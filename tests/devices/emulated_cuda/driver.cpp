// libcuda.so.1 and libnvrtc.so on the host: kernels are compiled by the host's compiler and run one thread after the
// other. It is stricter than a GPU, and like one in what programs get wrong: work waits until somebody waits for it,
// pageable and pinned memory differ, limits of a launch are checked, nothing works without a context, and a graph
// takes no calls that a capture forbids.
//
// EMULATED_CUDA_LOG: a file for a line per call. EMULATED_CUDA_FAIL: "cuLaunchKernel:719:2" has the second call fail.
// EMULATED_CUDA_FIRST_KERNEL_MS: how long the first kernel takes on the device's clock, where each other takes 10 us.

#include <dlfcn.h>
#include <elf.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "kernel.h"

#define PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureUnmatched = 905,
};

using Work = std::function<void()>;

struct Function {
  std::string name;
  void (*run)(void**) = nullptr;
  std::vector<int> sizes;
  bool waits = false;
};
struct Module {
  void* handle = nullptr;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Graph {
  std::vector<Work> work;
};
struct Stream {
  std::vector<Work> pending;
  std::unique_ptr<Graph> capture;
};
struct Event {
  bool is_recorded = false, is_done = false;
  double ms = 0;
  Stream* stream = nullptr;
};

std::recursive_mutex mutex;
std::map<uintptr_t, size_t> device_memory, pinned_memory;
std::map<std::string, int> calls;
std::set<Stream*> streams;
Stream* capturing = nullptr;
double clock_ms = 0;
double first_kernel_ms = [] {
  const char* given = std::getenv("EMULATED_CUDA_FIRST_KERNEL_MS");
  return given ? std::atof(given) : 0.01;
}();
int lost = kSuccess;  // an error that stays
thread_local void* context = nullptr;
int the_context;

bool inside(const std::map<uintptr_t, size_t>& memory, uintptr_t at, size_t bytes) {
  auto found = memory.upper_bound(at);
  if (found == memory.begin()) return false;
  --found;
  return at - found->first <= found->second && bytes <= found->second - (at - found->first);
}

// Counts and logs a call; what it must return instead of doing anything, or success.
int enter(const std::string& name, const std::string& detail = "", bool needs_context = true) {
  static std::FILE* const log = [] {
    const char* path = std::getenv("EMULATED_CUDA_LOG");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  if (log) {
    std::fprintf(log, "%s%s%s\n", name.c_str(), detail.empty() ? "" : " ", detail.c_str());
    std::fflush(log);
  }
  const int number = ++calls[name];
  if (const char* fail = std::getenv("EMULATED_CUDA_FAIL")) {
    char what[64];
    int code = 0, at = 1;
    if (std::sscanf(fail, "%63[^:]:%d:%d", what, &code, &at) >= 2 && name == what && number == at) {
      if (code >= 700 && code < 800) lost = code;
      return code;
    }
  }
  if (lost != kSuccess) return lost;
  return needs_context && context == nullptr ? kInvalidContext : kSuccess;
}

#define ENTER(...)                   \
  const std::lock_guard lock(mutex); \
  if (const int refused = enter(__VA_ARGS__); refused != kSuccess) return refused

void drain(Stream& stream) {
  std::vector<Work> pending;
  pending.swap(stream.pending);
  for (const Work& work : pending) work();
}

int submit(Stream* stream, Work work) {
  if (!streams.count(stream)) return kInvalidHandle;
  (stream->capture ? stream->capture->work : stream->pending).push_back(std::move(work));
  return kSuccess;
}

// Threads of a block that wait for one another.
constexpr size_t kStackBytes = 128 << 10;
ucontext_t scheduler;
std::array<ucontext_t, 1024> fibers;
std::array<bool, 1024> is_over;
int current = 0;
const Function* running = nullptr;
void** running_arguments = nullptr;

void wait_for_all() {
  swapcontext(&fibers[static_cast<size_t>(current)], &scheduler);
}

void fiber() {
  running->run(running_arguments);
  is_over[static_cast<size_t>(current)] = true;
}

Emulated shared;

void set_thread(unsigned i) {
  const EmulatedIndex& n = shared.threads;
  shared.thread = {i % n.x, i / n.x % n.y, i / n.x / n.y};
}

void run_block(const Function& function, void** arguments) {
  const unsigned threads = shared.threads.x * shared.threads.y * shared.threads.z;
  if (!function.waits) {
    for (unsigned i = 0; i < threads; ++i) {
      set_thread(i);
      function.run(arguments);
    }
    return;
  }
  static std::vector<char> stacks(1024 * kStackBytes);
  running = &function;
  running_arguments = arguments;
  for (unsigned i = 0; i < threads; ++i) {
    is_over[i] = false;
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stacks.data() + i * kStackBytes;
    fibers[i].uc_stack.ss_size = kStackBytes;
    fibers[i].uc_link = &scheduler;
    makecontext(&fibers[i], fiber, 0);
  }
  for (unsigned over = 0; over < threads;) {
    over = 0;
    for (unsigned i = 0; i < threads; ++i) {
      current = static_cast<int>(i);
      set_thread(i);
      swapcontext(&scheduler, &fibers[i]);
      over += is_over[i];
    }
    if (over > 0 && over < threads) {
      lost = kLaunchFailed;  // a barrier that not all threads reach
      return;
    }
  }
}

void run_kernel(const Function& function, const std::array<unsigned, 6>& extents,
                std::vector<std::vector<char>>& values) {
  clock_ms += std::exchange(first_kernel_ms, 0.01);
  std::vector<void*> arguments;
  for (size_t i = 0; i < values.size(); ++i) {
    arguments.push_back(values[i].data());
    uintptr_t pointer = 0;
    if (function.sizes[i] > 0) continue;
    std::memcpy(&pointer, values[i].data(), sizeof pointer);
    if (!inside(device_memory, pointer, 1)) lost = kIllegalAddress;
  }
  shared.wait = wait_for_all;
  shared.grid = {extents[0], extents[1], extents[2]};
  shared.threads = {extents[3], extents[4], extents[5]};
  for (unsigned z = 0; z < extents[2]; ++z) {
    for (unsigned y = 0; y < extents[1]; ++y) {
      for (unsigned x = 0; x < extents[0] && lost == kSuccess; ++x) {
        shared.block = {x, y, z};
        run_block(function, arguments.data());
      }
    }
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "emulated-cuda-XXXXXX").string();
  Folder() {
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Folder() {
    for (const char* name : {"kernel.cpp", "kernel.so", "log"}) unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
  }
};

}  // namespace

PUBLIC int cuInit(unsigned) {
  ENTER("cuInit", "", false);
  return kSuccess;
}
PUBLIC int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
PUBLIC int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
PUBLIC int cuDeviceGet(int* device, int) {
  *device = 0;
  return kSuccess;
}
PUBLIC int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Emulated CUDA");
  return kSuccess;
}
PUBLIC int cuDeviceGetAttribute(int* value, int attribute, int) {
  static const std::map<int, int> kValues{{1, 1024},  {2, 1024},  {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535},
                                          {7, 65535}, {8, 49152}, {16, 2},   {18, 0}, {75, 9},         {76, 0}};
  const auto found = kValues.find(attribute);
  *value = found == kValues.end() ? 0 : found->second;
  return found == kValues.end() ? kInvalidValue : kSuccess;
}
PUBLIC int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{4} << 30;
  return kSuccess;
}
PUBLIC int cuDevicePrimaryCtxRetain(void** made, int) {
  ENTER("cuDevicePrimaryCtxRetain", "", false);
  *made = &the_context;
  return kSuccess;
}
PUBLIC int cuCtxSetCurrent(void* wanted) {
  const std::lock_guard lock(mutex);
  if (wanted != &the_context) return kInvalidContext;
  context = wanted;
  return kSuccess;
}

PUBLIC int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  ENTER("cuMemAlloc", std::to_string(bytes));
  if (capturing) return kCaptureUnsupported;
  if (bytes == 0) return kInvalidValue;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return kOutOfMemory;
  std::memset(memory, 0xff, bytes);
  *pointer = reinterpret_cast<uintptr_t>(memory);
  device_memory[*pointer] = bytes;
  return kSuccess;
}
PUBLIC int cuMemFree_v2(uint64_t pointer) {
  ENTER("cuMemFree");
  if (device_memory.erase(pointer) == 0) return kInvalidValue;
  for (Stream* stream : streams) drain(*stream);  // freeing waits for the device
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}
PUBLIC int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc", std::to_string(bytes));
  if (capturing) return kCaptureUnsupported;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  pinned_memory[reinterpret_cast<uintptr_t>(*memory)] = bytes;
  return kSuccess;
}
PUBLIC int cuMemFreeHost(void* memory) {
  ENTER("cuMemFreeHost");
  if (pinned_memory.erase(reinterpret_cast<uintptr_t>(memory)) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}
PUBLIC int cuMemHostRegister_v2(void*, size_t, unsigned) {
  return kInvalidValue;
}
PUBLIC int cuMemHostUnregister(void*) {
  return kInvalidValue;
}
PUBLIC int cuMemHostGetDevicePointer_v2(uint64_t*, void*, unsigned) {
  return kInvalidValue;
}

PUBLIC int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  const bool is_pinned = inside(pinned_memory, reinterpret_cast<uintptr_t>(from), bytes);
  ENTER("cuMemcpyHtoDAsync", std::to_string(bytes) + (is_pinned ? " pinned" : " pageable"));
  if (!inside(device_memory, to, bytes)) return kInvalidValue;
  auto* place = reinterpret_cast<void*>(to);
  if (is_pinned) return submit(stream, [=] { std::memcpy(place, from, bytes); });
  if (capturing) return kCaptureUnsupported;
  drain(*stream);
  std::memcpy(place, from, bytes);
  return kSuccess;
}
PUBLIC int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  const bool is_pinned = inside(pinned_memory, reinterpret_cast<uintptr_t>(to), bytes);
  ENTER("cuMemcpyDtoHAsync", std::to_string(bytes) + (is_pinned ? " pinned" : " pageable"));
  if (!inside(device_memory, from, bytes)) return kInvalidValue;
  const auto* place = reinterpret_cast<const void*>(from);
  if (is_pinned) return submit(stream, [=] { std::memcpy(to, place, bytes); });
  if (capturing) return kCaptureUnsupported;
  drain(*stream);
  std::memcpy(to, place, bytes);
  return lost;
}
PUBLIC int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  ENTER("cuMemcpyDtoDAsync", std::to_string(bytes));
  if (!inside(device_memory, to, bytes) || !inside(device_memory, from, bytes)) return kInvalidValue;
  return submit(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}

PUBLIC int cuModuleLoadData(Module** made, const void* image) {
  ENTER("cuModuleLoadData");
  if (capturing) return kCaptureUnsupported;
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_type != ET_DYN) return kInvalidImage;
  const size_t bytes = header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
  const Folder folder;
  const std::string path = folder.path + "/kernel.so";
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(image), static_cast<std::streamsize>(bytes));
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return kInvalidImage;
  reinterpret_cast<void (*)(Emulated*)>(dlsym(handle, "emulated_use"))(&shared);
  *made = new Module{handle, {}};
  return kSuccess;
}
PUBLIC int cuModuleUnload(Module* module) {
  ENTER("cuModuleUnload");
  for (Stream* stream : streams) drain(*stream);
  dlclose(module->handle);
  delete module;
  return kSuccess;
}
PUBLIC int cuModuleGetFunction(Function** found, Module* module, const char* name) {
  ENTER("cuModuleGetFunction", name);
  auto& function = module->functions[name];
  if (!function) {
    void* run = dlsym(module->handle, (std::string("emulated_run_") + name).c_str());
    void* sizes = dlsym(module->handle, (std::string("emulated_sizes_") + name).c_str());
    if (run == nullptr || sizes == nullptr) return kNotFound;
    int bytes[256];
    const int count = reinterpret_cast<int (*)(int*)>(sizes)(bytes);
    const bool waits = *static_cast<const int*>(dlsym(module->handle, "emulated_waits")) != 0;
    function = std::make_unique<Function>(
        Function{name, reinterpret_cast<void (*)(void**)>(run), {bytes, bytes + count}, waits});
  }
  *found = function.get();
  return kSuccess;
}

PUBLIC int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned, Stream* stream, void** arguments, void**) {
  ENTER("cuLaunchKernel",
        function->name + " " + std::to_string(gx) + " " + std::to_string(gy) + " " + std::to_string(gz));
  if (gx == 0 || gy == 0 || gz == 0 || gx > 2147483647u || gy > 65535u || gz > 65535u) return kInvalidValue;
  if (bx == 0 || by == 0 || bz == 0 || bx > 1024 || by > 1024 || bz > 64 || bx * by * bz > 1024) return kInvalidValue;
  std::vector<std::vector<char>> values;
  for (size_t i = 0; i < function->sizes.size(); ++i) {
    const auto* bytes = static_cast<const char*>(arguments[i]);
    values.emplace_back(bytes, bytes + std::abs(function->sizes[i]));
  }
  return submit(stream, [=]() mutable { run_kernel(*function, {gx, gy, gz, bx, by, bz}, values); });
}

PUBLIC int cuStreamCreate(Stream** made, unsigned) {
  ENTER("cuStreamCreate");
  streams.insert(*made = new Stream);
  return kSuccess;
}
PUBLIC int cuStreamSynchronize(Stream* stream) {
  ENTER("cuStreamSynchronize");
  if (stream->capture) return kCaptureUnsupported;
  drain(*stream);
  return lost;
}
PUBLIC int cuStreamDestroy_v2(Stream* stream) {
  ENTER("cuStreamDestroy");
  drain(*stream);
  streams.erase(stream);
  delete stream;
  return kSuccess;
}
PUBLIC int cuStreamBeginCapture_v2(Stream* stream, int) {
  ENTER("cuStreamBeginCapture");
  if (stream->capture) return kCaptureUnsupported;
  stream->capture = std::make_unique<Graph>();
  capturing = stream;
  return kSuccess;
}
PUBLIC int cuStreamEndCapture(Stream* stream, Graph** made) {
  ENTER("cuStreamEndCapture");
  *made = nullptr;
  if (!stream->capture) return kCaptureUnmatched;
  *made = stream->capture.release();
  capturing = nullptr;
  return kSuccess;
}
PUBLIC int cuGraphInstantiateWithFlags(Graph** made, Graph* graph, unsigned long long) {
  ENTER("cuGraphInstantiate", std::to_string(graph->work.size()));
  *made = new Graph(*graph);
  return kSuccess;
}
PUBLIC int cuGraphLaunch(Graph* graph, Stream* stream) {
  ENTER("cuGraphLaunch", std::to_string(graph->work.size()));
  return submit(stream, [work = graph->work] {
    for (Work one : work) one();
  });
}
PUBLIC int cuGraphDestroy(Graph* graph) {
  const std::lock_guard lock(mutex);
  delete graph;
  return kSuccess;
}
PUBLIC int cuGraphExecDestroy(Graph* graph) {
  return cuGraphDestroy(graph);
}

PUBLIC int cuEventCreate(std::shared_ptr<Event>** made, unsigned) {
  ENTER("cuEventCreate");
  *made = new std::shared_ptr<Event>(std::make_shared<Event>());
  return kSuccess;
}
PUBLIC int cuEventRecord(std::shared_ptr<Event>* event, Stream* stream) {
  ENTER("cuEventRecord");
  (*event)->is_recorded = true;
  (*event)->is_done = false;
  (*event)->stream = stream;
  return submit(stream, [e = *event] {
    e->is_done = true;
    e->ms = clock_ms;
  });
}
PUBLIC int cuEventSynchronize(std::shared_ptr<Event>* event) {
  ENTER("cuEventSynchronize");
  if ((*event)->is_recorded && !(*event)->is_done) drain(*(*event)->stream);
  return lost;
}
PUBLIC int cuEventElapsedTime(float* ms, std::shared_ptr<Event>* from, std::shared_ptr<Event>* to) {
  ENTER("cuEventElapsedTime");
  if (!(*from)->is_recorded || !(*to)->is_recorded) return kInvalidHandle;
  if (!(*from)->is_done || !(*to)->is_done) return kNotReady;
  *ms = static_cast<float>((*to)->ms - (*from)->ms);
  return kSuccess;
}
PUBLIC int cuEventDestroy_v2(std::shared_ptr<Event>* event) {
  const std::lock_guard lock(mutex);
  delete event;
  return kSuccess;
}
PUBLIC int cuGetErrorName(int code, const char** name) {
  static std::map<int, std::string> names;
  const std::lock_guard lock(mutex);
  *name = (names[code] = "CUDA_ERROR_" + std::to_string(code)).c_str();
  return kSuccess;
}

namespace {

struct Program {
  std::string text, log, code;
};

std::string replaced(std::string text, const std::string& begin, const std::string& end, const std::string& by) {
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos; at += by.size()) {
    text.replace(at, text.find(end, at) + end.size() - at, by);
  }
  return text;
}

}  // namespace

PUBLIC const char* nvrtcGetErrorString(int code) {
  return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
PUBLIC int nvrtcCreateProgram(Program** made, const char* text, const char*, int, const char* const*,
                              const char* const*) {
  *made = new Program{text, "", ""};
  return 0;
}
PUBLIC int nvrtcCompileProgram(Program* program, int, const char* const*) {
  std::string text =
      replaced(program->text, "asm volatile(\"mma.sync", ");\n  return", "emulated_mma(a, b, c);\n  return");
  text = replaced(text, "asm(\"cvt.rna.tf32.f32", ");", "u = emulated_tf32(a);");
  text = replaced(text, "asm(\"dp4a.s32.s32", ");", "d = emulated_dot(a, b, c);");
  text = replaced(text, "asm(\"cvt.f32.f16", "(*p));", "r = emulated_widened(*p);");
  text = replaced(text, "asm(\"cvt.rn.f16.f32", ");", "u = emulated_narrowed(a);");
  const auto mentions = [&](const char* what) { return text.find(what) != std::string::npos; };
  const bool waits = mentions("__syncthreads(") || mentions("__shfl_sync(") || mentions("emulated_mma(");
  std::string source =
      std::string("#include \"") + EMULATED_FOLDER + "/kernel.h\"\n#line 1 \"kernel.cu\"\n" + text +
      "\nextern \"C\" { __attribute__((visibility(\"default\"))) extern const int emulated_waits; }\n" +
      "const int emulated_waits = " + (waits ? "1" : "0") + ";\n";
  static const std::regex kKernel("__global__ .*void (\\w+)\\(");
  for (std::sregex_iterator i(text.begin(), text.end(), kKernel), end; i != end; ++i) {
    source += "EMULATED_KERNEL(" + (*i)[1].str() + ")\n";
  }
  const Folder folder;
  std::ofstream(folder.path + "/kernel.cpp") << source;
  const std::string command =
      std::string(
          "c++ -std=gnu++17 -O1 -w -ffp-contract=off -fno-strict-aliasing -fvisibility=hidden -fPIC -shared -I") +
      EMULATED_FOLDER + " -o " + folder.path + "/kernel.so " + folder.path + "/kernel.cpp 2>" + folder.path + "/log";
  const bool is_built = std::system(command.c_str()) == 0;
  program->log = read_file(folder.path + "/log");
  program->code = read_file(folder.path + "/kernel.so");
  return is_built ? 0 : 6;
}
PUBLIC int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
PUBLIC int nvrtcGetProgramLog(Program* program, char* log) {
  std::strcpy(log, program->log.c_str());
  return 0;
}
PUBLIC int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->code.size();
  return 0;
}
PUBLIC int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return 0;
}
PUBLIC int nvrtcGetPTXSize(Program*, size_t*) {
  return 1;
}
PUBLIC int nvrtcGetPTX(Program*, char*) {
  return 1;
}
PUBLIC int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
