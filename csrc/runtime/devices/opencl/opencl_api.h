#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/devices/driver_library.h"

// The part of OpenCL 1.2 that neo calls, declared here so that a build needs no headers of it. Names and values are
// the specification's.
namespace neo::opencl {

using Platform = struct PlatformObject*;
using DeviceId = struct DeviceObject*;
using Context = struct ContextObject*;
using CommandQueue = struct QueueObject*;
using Mem = struct MemObject*;
using Program = struct ProgramObject*;
using Kernel = struct KernelObject*;
using Event = struct EventObject*;
using Bits = uint64_t;
using Info = uint32_t;

enum : int32_t {
  kSuccess = 0,
  kDeviceNotFound = -1,
  kDeviceNotAvailable = -2,
  kMemObjectAllocationFailure = -4,
  kOutOfResources = -5,
  kOutOfHostMemory = -6,
  kBuildProgramFailure = -11,
  kPlatformNotFoundKhr = -1001,
};

enum : Info {
  kPlatformVersion = 0x0901,
  kDeviceMaxComputeUnits = 0x1002,
  kDeviceMaxWorkGroupSize = 0x1004,
  kDeviceMaxWorkItemSizes = 0x1005,
  kDeviceMaxMemAllocSize = 0x1010,
  kDeviceImageSupport = 0x1016,
  kDeviceMemBaseAddrAlign = 0x1019,
  kDeviceGlobalMemSize = 0x101F,
  kDeviceLocalMemSize = 0x1023,
  kDeviceAvailable = 0x1027,
  kDeviceCompilerAvailable = 0x1028,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceVersion = 0x102F,
  kDeviceExtensions = 0x1030,
  kDeviceHostUnifiedMemory = 0x1035,
  kDeviceImageMaxBufferSize = 0x1040,
  kRgba = 0x10B5,
  kFloat = 0x10DE,
  kMemObjectImage1dBuffer = 0x10F6,
  kProgramBinarySizes = 0x1165,
  kProgramBinaries = 0x1166,
  kProgramBuildLog = 0x1183,
  kBufferCreateTypeRegion = 0x1220,
  kProfilingCommandStart = 0x1282,
  kProfilingCommandEnd = 0x1283,
};

inline constexpr Bits kDeviceTypeAll = 0xFFFFFFFF;
inline constexpr Bits kQueueProfilingEnable = 1 << 1;
inline constexpr Bits kMemReadWrite = 1 << 0;
inline constexpr Bits kMemReadOnly = 1 << 2;
inline constexpr Bits kMemUseHostPtr = 1 << 3;
inline constexpr Bits kMapRead = 1 << 0;
inline constexpr Bits kMapWrite = 1 << 1;

struct BufferRegion {
  size_t origin;
  size_t size;
};

struct ImageFormat {
  Info order;
  Info type;
};

struct ImageDescription {
  Info type;
  size_t width;
  size_t height, depth, array_size, row_pitch, slice_pitch;
  uint32_t mip_levels, samples;
  Mem buffer;
};

// The functions, once found.
struct Api {
  int32_t (*get_platform_ids)(uint32_t, Platform*, uint32_t*);
  int32_t (*get_platform_info)(Platform, Info, size_t, void*, size_t*);
  int32_t (*get_device_ids)(Platform, Bits, uint32_t, DeviceId*, uint32_t*);
  int32_t (*get_device_info)(DeviceId, Info, size_t, void*, size_t*);
  Context (*create_context)(const intptr_t*, uint32_t, const DeviceId*,
                            void (*)(const char*, const void*, size_t, void*), void*, int32_t*);
  int32_t (*release_context)(Context);
  CommandQueue (*create_command_queue)(Context, DeviceId, Bits, int32_t*);
  int32_t (*release_command_queue)(CommandQueue);
  Mem (*create_buffer)(Context, Bits, size_t, void*, int32_t*);
  Mem (*create_sub_buffer)(Mem, Bits, Info, const void*, int32_t*);
  Mem (*create_image)(Context, Bits, const ImageFormat*, const ImageDescription*, void*, int32_t*);
  int32_t (*release_mem_object)(Mem);
  Program (*create_program_with_source)(Context, uint32_t, const char**, const size_t*, int32_t*);
  Program (*create_program_with_binary)(Context, uint32_t, const DeviceId*, const size_t*, const unsigned char**,
                                        int32_t*, int32_t*);
  int32_t (*build_program)(Program, uint32_t, const DeviceId*, const char*, void (*)(Program, void*), void*);
  int32_t (*get_program_build_info)(Program, DeviceId, Info, size_t, void*, size_t*);
  int32_t (*get_program_info)(Program, Info, size_t, void*, size_t*);
  int32_t (*release_program)(Program);
  Kernel (*create_kernel)(Program, const char*, int32_t*);
  int32_t (*release_kernel)(Kernel);
  int32_t (*set_kernel_arg)(Kernel, uint32_t, size_t, const void*);
  int32_t (*enqueue_nd_range_kernel)(CommandQueue, Kernel, uint32_t, const size_t*, const size_t*, const size_t*,
                                     uint32_t, const Event*, Event*);
  int32_t (*enqueue_read_buffer)(CommandQueue, Mem, uint32_t, size_t, size_t, void*, uint32_t, const Event*, Event*);
  int32_t (*enqueue_write_buffer)(CommandQueue, Mem, uint32_t, size_t, size_t, const void*, uint32_t, const Event*,
                                  Event*);
  int32_t (*enqueue_copy_buffer)(CommandQueue, Mem, Mem, size_t, size_t, size_t, uint32_t, const Event*, Event*);
  void* (*enqueue_map_buffer)(CommandQueue, Mem, uint32_t, Bits, size_t, size_t, uint32_t, const Event*, Event*,
                              int32_t*);
  int32_t (*enqueue_unmap_mem_object)(CommandQueue, Mem, void*, uint32_t, const Event*, Event*);
  int32_t (*finish)(CommandQueue);
  int32_t (*get_event_profiling_info)(Event, Info, size_t, void*, size_t*);
  int32_t (*release_event)(Event);
};

// Opens the ICD loader once; a Resource error without one.
const Api& api();

// "CL_OUT_OF_RESOURCES", or the number.
std::string error_name(int32_t code);
// Throws where the code is not success: what was tried, and on what.
void check(int32_t code, std::string_view what, std::string_view device);

}  // namespace neo::opencl
