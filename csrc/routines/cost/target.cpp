#include "routines/cost/target.h"

#include <algorithm>

#include "base/check.h"
#include "base/core.h"
#include "base/topology.h"

namespace neo {
namespace {

constexpr double kUnmeasuredPenaltyUs = 1e5;
constexpr double kMemoryGbps = 35;
// GB/s of a host without AVX-512, whose last cache is its own, not that of a server's many cores.
constexpr double kAvx2MemoryGbps = 24;
// Through a mesh, of one thread from the last cache, and of what estimates take from memory.
constexpr double kMeshGbps = 20, kMeshMemoryGbps = 24;
// The largest factors by which a team raises the figure of memory: a server has more channels.
constexpr double kMaxMemory = 2, kMaxMeshMemory = 4;

bool runs_here(const Target& target) {
  return target.isa.is_subset_of(host_isa());
}

bool has_avx2_at_most(const Target& target) {
  return kIsaAvx2.is_subset_of(target.isa) && runs_here(target) && !kIsaAvx512.is_subset_of(host_isa());
}

std::vector<DeviceTarget>& mutable_device_targets() {
  // Figures from data sheets and, where a paper measured them, from papers; a copy on devices that share the host's
  // memory moves through the caches.
  static std::vector<DeviceTarget> targets = {
      {"opencl", "any OpenCL device", DeviceKind::OpenCl, {400, 30, 8, 15, 8, "opencl", false, false}},
      {"mali",
       "Arm Mali through OpenCL; the figures of a T860 MP4",
       DeviceKind::OpenCl,
       {83, 7, 30, 60, 4, "opencl", false, false, false, 1 << 16}},
      {"intel_graphics",
       "Intel Graphics through OpenCL; the figures of an HD 505",
       DeviceKind::OpenCl,
       {216, 14, 10, 20, 8, "opencl", true, true, false, 1 << 27}},
      {"cuda",
       "NVIDIA; the figures of an A100",
       DeviceKind::Cuda,
       {19500, 1555, 4, 8, 20, "cuda", true, false, true, 0, true}},
      {"null", "plans and prints, computes nothing", DeviceKind::Null, {400, 30, 8, 15, 8, "opencl", false, false}},
  };
  return targets;
}

}  // namespace

const std::vector<DeviceTarget>& device_targets() {
  return mutable_device_targets();
}

void add_device_target(DeviceTarget target) {
  mutable_device_targets().push_back(std::move(target));
}

int Target::lanes() const {
  return middling_core(isa, false).lanes;
}

Target Target::parse(std::string_view name, int threads) {
  Target target;
  target.name = name;
  target.threads = threads;
  std::string devices;
  for (const DeviceTarget& d : device_targets()) {
    devices += str(", \"", d.name, "\"");
    if (d.name != name) continue;
    target.device = d.device;
    target.figures = d.figures;
    target.cpu_penalty_us = kUnmeasuredPenaltyUs;
  }
  NEO_CHECK(name == "cpu" || name.substr(0, 4) == "cpu:" || target.has_device(), Model, "compile",
            "target must be known. Got \"", name, "\", expected \"cpu\", \"cpu:<instruction set>\"", devices,
            " (neo targets lists them)");
  target.isa = name.substr(0, 4) == "cpu:" ? parse_isa(name.substr(4), "compile") : host_isa();
  const CoreFigures& core = middling_core(target.isa, runs_here(target));
  target.gflops_per_thread = core.gflops;
  target.l2_gbps = core.l2_gbps;
  target.l2_bytes = core.l2_bytes;
  const bool has_mesh = has_wide_fmas(target) && host_core().has_mesh;
  target.memory_gbps = has_mesh ? kMeshMemoryGbps : kMemoryGbps;
  if (has_avx2_at_most(target)) {
    target.memory_gbps = kAvx2MemoryGbps;
    target.kept_bytes = std::max(target.kept_bytes, host_topology().l3_bytes / 4 * 3);
  }
  target.memory_gbps *= std::clamp(threads / 2.0, 1.0, has_mesh ? kMaxMeshMemory : kMaxMemory);
  target.caches = host_caches(target);
  target.machine = Machine::of(target.isa, runs_here(target));
  return target;
}

bool has_wide_fmas(const Target& target) {
  return target.gflops_per_thread == kWideGflops;
}

PrivateCaches private_caches(const Target& target) {
  return target.caches.l2_bytes > 0 ? target.caches : PrivateCaches{target.l1_bytes, target.l2_bytes};
}

PrivateCaches host_caches(const Target& target) {
  PrivateCaches caches = {target.l1_bytes, target.l2_bytes};
  if (!runs_here(target)) return caches;
  if (host_core().has_mesh) caches.far_gbps = kMeshGbps;
  caches.l1_bytes = std::max(caches.l1_bytes, host_topology().l1d_bytes);
  caches.l2_bytes = std::max(caches.l2_bytes, host_topology().l2_bytes);
  return caches;
}

}  // namespace neo
