#include "runtime/devices/opencl/opencl_api.h"

#include "base/check.h"

namespace neo::opencl {
namespace {

Api load_opencl() {
  const DriverLibrary library(
      "opencl", {"libOpenCL.so.1", "libOpenCL.so"},
      "install an OpenCL ICD loader (Debian: ocl-icd-libopencl1) and a driver (pocl-opencl-icd runs on the CPU)");
  Api a{};
  library.get("clGetPlatformIDs", a.get_platform_ids);
  library.get("clGetPlatformInfo", a.get_platform_info);
  library.get("clGetDeviceIDs", a.get_device_ids);
  library.get("clGetDeviceInfo", a.get_device_info);
  library.get("clCreateContext", a.create_context);
  library.get("clReleaseContext", a.release_context);
  library.get("clCreateCommandQueue", a.create_command_queue);
  library.get("clReleaseCommandQueue", a.release_command_queue);
  library.get("clCreateBuffer", a.create_buffer);
  library.get("clCreateSubBuffer", a.create_sub_buffer);
  library.get("clCreateImage", a.create_image);
  library.get("clReleaseMemObject", a.release_mem_object);
  library.get("clCreateProgramWithSource", a.create_program_with_source);
  library.get("clCreateProgramWithBinary", a.create_program_with_binary);
  library.get("clBuildProgram", a.build_program);
  library.get("clGetProgramBuildInfo", a.get_program_build_info);
  library.get("clGetProgramInfo", a.get_program_info);
  library.get("clReleaseProgram", a.release_program);
  library.get("clCreateKernel", a.create_kernel);
  library.get("clReleaseKernel", a.release_kernel);
  library.get("clSetKernelArg", a.set_kernel_arg);
  library.get("clEnqueueNDRangeKernel", a.enqueue_nd_range_kernel);
  library.get("clEnqueueReadBuffer", a.enqueue_read_buffer);
  library.get("clEnqueueWriteBuffer", a.enqueue_write_buffer);
  library.get("clEnqueueCopyBuffer", a.enqueue_copy_buffer);
  library.get("clEnqueueMapBuffer", a.enqueue_map_buffer);
  library.get("clEnqueueUnmapMemObject", a.enqueue_unmap_mem_object);
  library.get("clFinish", a.finish);
  library.get("clGetEventProfilingInfo", a.get_event_profiling_info);
  library.get("clReleaseEvent", a.release_event);
  return a;
}

}  // namespace

const Api& api() {
  static const Api loaded = load_opencl();
  return loaded;
}

std::string error_name(int32_t code) {
  switch (code) {
    case kDeviceNotFound:
      return "CL_DEVICE_NOT_FOUND";
    case kDeviceNotAvailable:
      return "CL_DEVICE_NOT_AVAILABLE";
    case -3:
      return "CL_COMPILER_NOT_AVAILABLE";
    case kMemObjectAllocationFailure:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case kOutOfResources:
      return "CL_OUT_OF_RESOURCES";
    case kOutOfHostMemory:
      return "CL_OUT_OF_HOST_MEMORY";
    case kBuildProgramFailure:
      return "CL_BUILD_PROGRAM_FAILURE";
    case -12:
      return "CL_MAP_FAILURE";
    case -10:
      return "CL_IMAGE_FORMAT_NOT_SUPPORTED";
    case -14:
      return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case -30:
      return "CL_INVALID_VALUE";
    case -36:
      return "CL_INVALID_COMMAND_QUEUE";
    case -38:
      return "CL_INVALID_MEM_OBJECT";
    case -40:
      return "CL_INVALID_IMAGE_SIZE";
    case -42:
      return "CL_INVALID_BINARY";
    case -44:
      return "CL_INVALID_PROGRAM";
    case -46:
      return "CL_INVALID_KERNEL_NAME";
    case -48:
      return "CL_INVALID_KERNEL";
    case -51:
      return "CL_INVALID_ARG_SIZE";
    case -52:
      return "CL_INVALID_KERNEL_ARGS";
    case -54:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case -55:
      return "CL_INVALID_WORK_ITEM_SIZE";
    case -61:
      return "CL_INVALID_BUFFER_SIZE";
    case kPlatformNotFoundKhr:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return str("error ", code);
  }
}

void check(int32_t code, std::string_view what, std::string_view device) {
  if (code == kSuccess) return;
  const bool memory = code == kMemObjectAllocationFailure || code == kOutOfHostMemory;
  NEO_CHECK(!memory, Memory, "opencl", "there must be memory to ", what, ". Got ", error_name(code), " from ", device);
  const bool lost = code == kDeviceNotAvailable || code == kOutOfResources;
  fail(ErrorKind::Resource, "opencl",
       str("the device must be able to ", what, ". Got ", error_name(code), " from ", device,
           lost ? "\nHint: the device may be lost or its memory full; a new process opens it again" : ""));
}

}  // namespace neo::opencl
