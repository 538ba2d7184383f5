#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_ir/stmt.h"

namespace neo::gpu {

// How many parts of one size cover a whole.
inline double parts(double whole, int64_t part) {
  return std::ceil(whole / static_cast<double>(part));
}

// Figures of a device without having it: for estimates of untuned compiles, and for why a schedule cannot run.
struct DeviceModel {
  std::string name;         // "mali_t860"
  double gflops = 0;        // float32
  double gbps = 0;          // of its memory
  double cache_gbps = 0;    // of the cache nearest to a unit, all units together
  double launch_us = 0;     // of a kernel that does nothing
  int units = 1;            // that run groups on their own
  int wave = 1;             // threads that step together; a group fills whole ones
  int lanes = 1;            // of a thread's arithmetic
  int registers = 0;        // of 32 bits, of one thread at most
  int unit_registers = 0;   // of all threads of a unit
  int unit_threads = 0;     // at most
  int busy_threads = 0;     // of a unit, that hide the latency of its memory
  int group_threads = 0;    // at most
  int64_t local_bytes = 0;  // of a group at most
  int64_t unit_local_bytes = 0;
  double barrier_us = 0;       // of one group, for each of its threads
  bool local_is_fast = false;  // local memory is not the cache that global memory has as well
  // Slots of a thread's arithmetic that other instructions take.
  double other_slots = 0.5;
  double load_slots = 0.5;
  double lane_slots = 0;  // of a lane of a vector that is used as a scalar
  double group_us = 0;    // to start a group
  int block = 4;          // the channels that a blocked layout has there, or half as many
  int line = 0;         // bytes that a thread's load moves where its wave's threads read lines of their own; 0: unknown
  int load_bytes = 64;  // that one load brings a thread at most
  double matrix_gflops = 0;  // of matrix instructions on tf32; 0: it has none
  int subgroup = 0;          // threads of the largest subgroup that reads blocks, the smallest has 8; 0: none do
  int64_t image_texels = 0;  // of an image at most; 0: it has none
  double texel_gbps = 0;     // of the texture units, beside cache_gbps; 0: texels come as other loads do
  double texel_slots = 0.5;  // as load_slots

  bool reads_blocks(int threads) const { return threads <= subgroup; }
  // As of channels.h.
  bool likes_together(int64_t channels) const { return channels <= 1 || channels == block || channels * 2 == block; }
};

// Mali-T860 to G78, HD Graphics 505 to Xe, Maxwell to Hopper, a CPU by PoCL.
const std::vector<DeviceModel>& device_models();
const DeviceModel* find_device_model(std::string_view name);

// The work of the threads of a launch; of one thread where nothing else is said.
struct Profile {
  double groups = 1;
  int threads = 1;   // of a group
  int subgroup = 0;  // threads that step together, where the kernel says how many
  double flops = 0;
  double matrix_flops = 0;  // of matrix instructions
  int lanes = 1;            // of the vectors that compute
  double other = 0;         // instructions beside: addresses, conditions, functions count more than one
  double loaded_bytes = 0;  // from global memory, the same bytes as often as they are asked for
  double apart = 0;         // of these loads, those in lines that no other thread of the wave reads then
  double block_bytes = 0;   // read and written in blocks of subgroups
  double texels = 0;        // read from images
  double loads = 0;         // instructions
  double local_loaded_bytes = 0;
  double lane_reads = 0;  // lanes of loaded vectors that are used as scalars
  double barriers = 0;
  int written = 0;          // multiply-adds that are written out: they are compiled and fetched
  int registers = 0;        // of 32 bits
  int64_t local_bytes = 0;  // of a group
  double unique_bytes = 0;  // of all buffers of the launch, each once
};

// The profile of one launch; the sizes by the kernel's parameters. Conditions are taken to hold, and loops that depend
// on data to run once.
Profile profile_of(const kernel::Kernel& kernel, const std::map<std::string, int64_t, std::less<>>& sizes);

struct Estimate {
  double time_us = 0;
  double occupancy = 1;               // threads of a unit beside those that hide its latency, at most 1
  std::optional<std::string> reject;  // why it cannot run
};
Estimate estimate(const Profile& profile, const DeviceModel& model);

}  // namespace neo::gpu
