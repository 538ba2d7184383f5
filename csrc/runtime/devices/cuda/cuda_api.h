#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/devices/driver_library.h"

// The part of CUDA's driver interface that neo calls, declared here so that a build needs no headers of it.
namespace neo::cuda {

using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using Pointer = uint64_t;

enum : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNoDevice = 100,
};

enum : int {  // attributes of a device
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxSharedMemoryPerBlock = 8,
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};

struct Api {
  int (*init)(unsigned);
  int (*driver_get_version)(int*);
  int (*device_get_count)(int*);
  int (*device_get)(int*, int);
  int (*device_get_name)(char*, int, int);
  int (*device_get_attribute)(int*, int, int);
  int (*device_total_mem)(size_t*, int);
  int (*primary_ctx_retain)(Context*, int);
  int (*ctx_set_current)(Context);
  int (*mem_alloc)(Pointer*, size_t);
  int (*mem_free)(Pointer);
  int (*mem_host_alloc)(void**, size_t, unsigned);
  int (*mem_free_host)(void*);
  int (*mem_host_register)(void*, size_t, unsigned);
  int (*mem_host_unregister)(void*);
  int (*mem_host_get_device_pointer)(Pointer*, void*, unsigned);
  int (*memcpy_htod)(Pointer, const void*, size_t, Stream);
  int (*memcpy_dtoh)(void*, Pointer, size_t, Stream);
  int (*memcpy_dtod)(Pointer, Pointer, size_t, Stream);
  int (*module_load_data)(Module*, const void*);
  int (*module_unload)(Module);
  int (*module_get_function)(Function*, Module, const char*);
  int (*launch_kernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,
                       void**);
  int (*stream_create)(Stream*, unsigned);
  int (*stream_synchronize)(Stream);
  int (*stream_destroy)(Stream);
  int (*stream_begin_capture)(Stream, int);
  int (*stream_end_capture)(Stream, Graph*);
  int (*graph_instantiate)(GraphExec*, Graph, unsigned long long);
  int (*graph_launch)(GraphExec, Stream);
  int (*graph_destroy)(Graph);
  int (*graph_exec_destroy)(GraphExec);
  int (*event_create)(Event*, unsigned);
  int (*event_record)(Event, Stream);
  int (*event_synchronize)(Event);
  int (*event_elapsed_time)(float*, Event, Event);
  int (*event_destroy)(Event);
  int (*get_error_name)(int, const char**);
};

// Opens the driver once; a Resource error without one.
const Api& api();

// Throws where the code is not success: what was tried, and on what.
void check(int code, std::string_view what, std::string_view device);

}  // namespace neo::cuda
