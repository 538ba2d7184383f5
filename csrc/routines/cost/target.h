#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "exec/device_registry.h"
#include "routines/cost/machine.h"

namespace neo {

// Bytes of a core's caches.
struct PrivateCaches {
  // GB/s that one thread reads from the caches beyond these where estimates leave it out (far_us).
  static constexpr double kNearGbps = 80;

  int64_t l1_bytes = 0, l2_bytes = 0;
  double far_gbps = kNearGbps;
};

// A machine: a CPU, which does what nothing else takes, perhaps a device beside it, and the figures that estimates use.
struct Target {
  std::string name = "cpu";
  DeviceKind device = DeviceKind::Cpu;  // beside the CPU; Cpu: none
  DeviceFigures figures;                // of the device
  // What the selection adds for each node that the CPU runs beside a device. Estimates of two machines do not compare,
  // and whoever names a device wants it used: with this, nodes run there wherever a routine takes them. 0 where both
  // were measured.
  double cpu_penalty_us = 0;
  Isa isa;                       // what kernels may use
  int threads = 1;               // team size that costs are taken at
  double gflops_per_thread = 0;  // fp32 FMA peak
  double l2_gbps = 0;            // per thread
  double memory_gbps = 0;        // all threads together
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  PrivateCaches caches;          // that schedules are planned by; 0 bytes: l1_bytes and l2_bytes
  Machine machine;               // that steps are estimated for
  int64_t kept_bytes = 8 << 20;  // a model with no more constants finds them in the caches
  bool cold_constants = false;   // the model at hand finds them in memory

  int lanes() const;  // float32 lanes of one vector
  bool has_device() const { return device != DeviceKind::Cpu; }

  // "cpu", "cpu:avx2", "opencl", "mali", ...; an unknown name is a Model error that lists what there is.
  static Target parse(std::string_view name, int threads);
};

// The caches by which schedules are planned.
PrivateCaches private_caches(const Target& target);
// The same for a target of these instructions on this host, which tells too little rather than too much.
PrivateCaches host_caches(const Target& target);

// Whether estimates are of cores that start two of the widest FMAs per cycle.
bool has_wide_fmas(const Target& target);

// A name for a kind of device with the figures of one, for Target::parse.
struct DeviceTarget {
  std::string name;
  std::string summary;
  DeviceKind device = DeviceKind::Cpu;
  DeviceFigures figures;
};
const std::vector<DeviceTarget>& device_targets();
void add_device_target(DeviceTarget target);

}  // namespace neo
