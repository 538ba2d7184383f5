#include "runtime/devices/cuda/cuda_compile.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "runtime/devices/check_launch.h"
#include "runtime/devices/driver_library.h"

namespace neo {
namespace {

namespace fs = std::filesystem;

// The part of NVRTC that neo calls, declared here so that a build needs no headers of it.
struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  const char* (*get_error_string)(int);
  int (*create_program)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_program)(Program, int, const char* const*);
  int (*get_log_size)(Program, size_t*);
  int (*get_log)(Program, char*);
  int (*get_num_supported_archs)(int*);
  int (*get_supported_archs)(int*);
  int (*get_ptx_size)(Program, size_t*);
  int (*get_ptx)(Program, char*);
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

// The folder of the library that has a function.
fs::path folder_of(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  return fs::weakly_canonical(info.dli_fname, error).parent_path();
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = [] {
    std::vector<std::string> names{"libnvrtc.so"};
    for (const char* version : {"13", "12", "11.2"}) names.push_back(std::string("libnvrtc.so.") + version);
    names.push_back(toolkit() + "/lib64/libnvrtc.so");
    // Python's packages: neo's folder and nvidia's lie side by side.
    const fs::path packages = folder_of(reinterpret_cast<const void*>(&toolkit)).parent_path() / "nvidia";
    for (const auto& [package, version] : {std::pair{"cu13", "13"}, std::pair{"cuda_nvrtc", "12"}}) {
      names.push_back((packages / package / "lib" / (std::string("libnvrtc.so.") + version)).string());
    }
    const DriverLibrary library("cuda", names, "install the CUDA toolkit, or the package nvidia-cuda-nvrtc");
    Nvrtc n{};
    library.get("nvrtcGetErrorString", n.get_error_string);
    library.get("nvrtcCreateProgram", n.create_program);
    library.get("nvrtcCompileProgram", n.compile_program);
    library.get("nvrtcGetProgramLogSize", n.get_log_size);
    library.get("nvrtcGetProgramLog", n.get_log);
    library.get("nvrtcGetNumSupportedArchs", n.get_num_supported_archs, true);
    library.get("nvrtcGetSupportedArchs", n.get_supported_archs, true);
    library.get("nvrtcGetPTXSize", n.get_ptx_size);
    library.get("nvrtcGetPTX", n.get_ptx);
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

// The folder of CUDA's headers, of the toolkit or beside NVRTC; empty where there is none.
std::string headers() {
  const fs::path library = folder_of(reinterpret_cast<const void*>(nvrtc().compile_program));
  for (const fs::path& folder : {fs::path(toolkit()) / "include", library.parent_path() / "include",
                                 library.parent_path().parent_path() / "cuda_runtime" / "include"}) {
    std::error_code error;
    if (fs::exists(folder / "cuda_fp16.h", error)) return folder.string();
  }
  return "";
}

// The newest capability that NVRTC knows up to that of a device, which may be younger than NVRTC.
int known_capability(int capability) {
  int count = 0;
  if (nvrtc().get_num_supported_archs == nullptr || nvrtc().get_supported_archs == nullptr) return capability;
  check(nvrtc().get_num_supported_archs(&count), "name its architectures");
  std::vector<int> known(static_cast<size_t>(count));
  check(nvrtc().get_supported_archs(known.data()), "name its architectures");
  int newest = 0;
  for (const int one : known) {
    if (one <= capability) newest = std::max(newest, one);
  }
  NEO_CHECK(newest > 0, Unsupported, "cuda", "NVRTC must know the device's compute capability. Got ", capability / 10,
            ".", capability % 10, ", which it does not any more\nHint: install an older CUDA toolkit");
  return newest;
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
  // A device that NVRTC does not know yet is given PTX, which its driver compiles.
  const int known = known_capability(capability);
  const std::string architecture = str("--gpu-architecture=", known == capability ? "sm_" : "compute_", known);
  const std::string folder = headers(), include = "--include-path=" + folder;
  std::vector<const char*> options{architecture.c_str()};
  options.insert(options.end(), kCudaOptions.begin(), kCudaOptions.end());
  if (!folder.empty()) options.push_back(include.c_str());
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
  const auto take = [&](auto size_of, auto give) {
    size_t bytes = 0;
    check(size_of(owner.program, &bytes), "give the machine code");
    std::string binary(bytes, '\0');
    check(give(owner.program, binary.data()), "give the machine code");
    return binary;
  };
  return known == capability ? take(nvrtc().get_cubin_size, nvrtc().get_cubin)
                             : take(nvrtc().get_ptx_size, nvrtc().get_ptx);
}

}  // namespace neo
