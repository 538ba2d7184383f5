#include "runtime/devices/cuda/cuda_compile.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "runtime/devices/check_launch.h"
#include "runtime/devices/driver_library.h"

namespace neo {
namespace {

// The part of NVRTC that neo calls, declared here so that a build needs no headers of it.
struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  const char* (*get_error_string)(int);
  int (*create_program)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_program)(Program, int, const char* const*);
  int (*get_log_size)(Program, size_t*);
  int (*get_log)(Program, char*);
  int (*get_cubin_size)(Program, size_t*);
  int (*get_cubin)(Program, char*);
  int (*destroy_program)(Program*);
};

constexpr int kCompilationError = 6;

// The toolkit's folder, for a loader that does not know it.
std::string toolkit() {
  const char* path = std::getenv("CUDA_PATH");
  return path != nullptr && *path != '\0' ? path : "/usr/local/cuda";
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = [] {
    std::vector<std::string> names{"libnvrtc.so"};
    for (const char* version : {"13", "12", "11.2"}) names.push_back(std::string("libnvrtc.so.") + version);
    names.push_back(toolkit() + "/lib64/libnvrtc.so");
    const DriverLibrary library("cuda", names, "install the CUDA toolkit, or the package nvidia-cuda-nvrtc");
    Nvrtc n{};
    library.get("nvrtcGetErrorString", n.get_error_string);
    library.get("nvrtcCreateProgram", n.create_program);
    library.get("nvrtcCompileProgram", n.compile_program);
    library.get("nvrtcGetProgramLogSize", n.get_log_size);
    library.get("nvrtcGetProgramLog", n.get_log);
    library.get("nvrtcGetCUBINSize", n.get_cubin_size);
    library.get("nvrtcGetCUBIN", n.get_cubin);
    library.get("nvrtcDestroyProgram", n.destroy_program);
    return n;
  }();
  return loaded;
}

void check(int code, const char* what) {
  NEO_CHECK(code == 0, Resource, "cuda", "NVRTC must be able to ", what, ". Got ", nvrtc().get_error_string(code));
}

struct ProgramOwner {
  Nvrtc::Program program = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) nvrtc().destroy_program(&program);
  }
};

}  // namespace

std::string compile_cuda(const std::string& text, int capability) {
  ProgramOwner owner;
  check(nvrtc().create_program(&owner.program, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "take a program");
  const std::string architecture = str("--gpu-architecture=sm_", capability);
  const std::string include = "--include-path=" + toolkit() + "/include";
  std::vector<const char*> options{architecture.c_str()};
  options.insert(options.end(), kCudaOptions.begin(), kCudaOptions.end());
  if (std::filesystem::exists(toolkit() + "/include")) options.push_back(include.c_str());
  const int code = nvrtc().compile_program(owner.program, static_cast<int>(options.size()), options.data());
  if (code == kCompilationError) {
    size_t bytes = 0;
    check(nvrtc().get_log_size(owner.program, &bytes), "say what is wrong");
    std::string log(bytes, '\0');
    check(nvrtc().get_log(owner.program, log.data()), "say what is wrong");
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    fail_to_compile("cuda", text, log);
  }
  check(code, "compile a program");
  size_t bytes = 0;
  check(nvrtc().get_cubin_size(owner.program, &bytes), "give the machine code");
  std::string cubin(bytes, '\0');
  check(nvrtc().get_cubin(owner.program, cubin.data()), "give the machine code");
  return cubin;
}

}  // namespace neo
