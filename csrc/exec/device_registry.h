#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/device.h"

namespace neo {

// The figures of a device that estimates use.
struct DeviceFigures {
  double gflops = 0;     // fp32
  double gbps = 0;       // from and to its own memory
  double launch_us = 0;  // of a kernel that does nothing
  double copy_us = 0;    // of a copy from or to the host that moves nothing
  double copy_gbps = 0;  // of a copy from or to the host, beyond copy_us
  // The features that kernels may use when they are printed without the device at hand.
  std::string language;  // DeviceInfo's
  bool has_subgroups = false;
  bool has_block_reads = false;
  bool has_matrices = false;
  int64_t image_texels = 0;  // DeviceInfo's; 0: what the device at hand has, without one none
  bool has_dots = false;
};

// The devices of one kind, in the driver's order. Without a driver or a device: a Resource error that says which of the
// two is missing.
using OpenDevices = std::vector<std::shared_ptr<Device>> (*)();

// Kinds of devices that neo does not come with. A library of them has the function
//   extern "C" void neo_register_devices(neo::DeviceRegistry& registry);
// which is called once. It is built with these headers and the compiler that built neo.
class DeviceRegistry {
 public:
  virtual ~DeviceRegistry() = default;
  // A kind and a target of the same name, which no other has: letters, digits and "_". The kind is for the DeviceInfo
  // of the devices.
  virtual DeviceKind add(const std::string& name, const std::string& summary, OpenDevices open,
                         const DeviceFigures& figures) = 0;
};

}  // namespace neo
