#include "runtime/devices/cuda/cuda_api.h"

#include "base/check.h"

namespace neo::cuda {
namespace {

Api load_cuda() {
  const DriverLibrary library("cuda", {"libcuda.so.1", "libcuda.so"},
                              "install NVIDIA's driver; compiling for cuda works without it, running does not");
  Api a{};
  library.get("cuInit", a.init);
  library.get("cuDriverGetVersion", a.driver_get_version);
  library.get("cuDeviceGetCount", a.device_get_count);
  library.get("cuDeviceGet", a.device_get);
  library.get("cuDeviceGetName", a.device_get_name);
  library.get("cuDeviceGetAttribute", a.device_get_attribute);
  library.get("cuDeviceTotalMem_v2", a.device_total_mem);
  library.get("cuDevicePrimaryCtxRetain", a.primary_ctx_retain);
  library.get("cuCtxSetCurrent", a.ctx_set_current);
  library.get("cuMemAlloc_v2", a.mem_alloc);
  library.get("cuMemFree_v2", a.mem_free);
  library.get("cuMemHostAlloc", a.mem_host_alloc);
  library.get("cuMemFreeHost", a.mem_free_host);
  library.get("cuMemHostRegister_v2", a.mem_host_register);
  library.get("cuMemHostUnregister", a.mem_host_unregister);
  library.get("cuMemHostGetDevicePointer_v2", a.mem_host_get_device_pointer);
  library.get("cuMemcpyHtoDAsync_v2", a.memcpy_htod);
  library.get("cuMemcpyDtoHAsync_v2", a.memcpy_dtoh);
  library.get("cuMemcpyDtoDAsync_v2", a.memcpy_dtod);
  library.get("cuModuleLoadData", a.module_load_data);
  library.get("cuModuleUnload", a.module_unload);
  library.get("cuModuleGetFunction", a.module_get_function);
  library.get("cuLaunchKernel", a.launch_kernel);
  library.get("cuStreamCreate", a.stream_create);
  library.get("cuStreamSynchronize", a.stream_synchronize);
  library.get("cuStreamDestroy_v2", a.stream_destroy);
  library.get("cuStreamBeginCapture_v2", a.stream_begin_capture);
  library.get("cuStreamEndCapture", a.stream_end_capture);
  library.get("cuGraphInstantiateWithFlags", a.graph_instantiate);
  library.get("cuGraphLaunch", a.graph_launch);
  library.get("cuGraphDestroy", a.graph_destroy);
  library.get("cuGraphExecDestroy", a.graph_exec_destroy);
  library.get("cuEventCreate", a.event_create);
  library.get("cuEventRecord", a.event_record);
  library.get("cuEventSynchronize", a.event_synchronize);
  library.get("cuEventElapsedTime", a.event_elapsed_time);
  library.get("cuEventDestroy_v2", a.event_destroy);
  library.get("cuGetErrorName", a.get_error_name);
  return a;
}

// Errors after which every call of the process fails.
bool is_lost(int code) {
  constexpr int kEccUncorrectable = 214, kIllegalAddress = 700, kLaunchTimeout = 702, kHardwareStackError = 714;
  constexpr int kLaunchFailed = 719;  // between the two: illegal instructions, misaligned and other wrong addresses
  return code == kEccUncorrectable || code == kIllegalAddress || code == kLaunchTimeout ||
         (code >= kHardwareStackError && code <= kLaunchFailed);
}

}  // namespace

const Api& api() {
  static const Api loaded = load_cuda();
  return loaded;
}

void check(int code, std::string_view what, std::string_view device) {
  if (code == kSuccess) return;
  const char* name = nullptr;
  if (api().get_error_name(code, &name) != kSuccess || name == nullptr) name = "an unknown error";
  NEO_CHECK(code != kOutOfMemory, Memory, "cuda", "there must be memory to ", what, ". Got ", name, " from ", device);
  fail(ErrorKind::Resource, "cuda",
       str("the device must be able to ", what, ". Got ", name, " from ", device,
           is_lost(code) ? "\nHint: the device is lost to this process; a new process opens it again" : ""));
}

}  // namespace neo::cuda
