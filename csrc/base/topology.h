#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neo {

// One logical CPU as the operating system numbers it.
struct Cpu {
  int id = 0;
  int core = 0;         // physical core, numbered from 0 within the topology; SMT siblings share it
  int package = 0;      // socket, as the system numbers it
  int node = 0;         // NUMA node, as the system numbers it
  int capacity = 1024;  // relative speed where the system says (big.LITTLE), the fastest being 1024
  int l2 = 0;           // the first CPU that shares its cache of the second level; its own id where nothing says
  int l3 = 0;           // the first one that shares that of the third; 0 where nothing says
};

// The part of the machine that this process may really use.
struct Topology {
  std::vector<Cpu> cpus;             // online, in the affinity mask and in the cpuset; by id; never empty
  int online_cpus = 1;               // of the whole machine
  std::optional<double> quota_cpus;  // CPU time per time that the control groups grant; none: no limit
  int64_t l1d_bytes = 32 << 10;      // one instance, at the fastest CPU; these values when the system is silent
  int64_t l2_bytes = 256 << 10;      // one instance
  int64_t l3_bytes = 0;              // one instance; 0: none

  // Threads that can make progress at once: logical CPUs, at most the quota rounded up; at least 1.
  int usable_cpus() const;

  // Threads that a call should have when nobody says: physical cores without those slower than half the fastest,
  // at most the quota rounded up; at least 1.
  int preferred_threads() const;

  // CPU ids in the order in which to fill them: fast ones first, one per physical core, then their SMT siblings; those
  // that share a cache next to each other.
  std::vector<int> placement() const;
};

// Reads /proc and /sys below `root`. `affinity` holds the ids of the process's CPUs; empty: every CPU online.
// A missing or malformed file counts as absent: no file, no limit.
Topology read_topology(const std::string& root, const std::vector<int>& affinity);

// This host: root "" and the affinity mask of the process's main thread. Read once, at the first call.
const Topology& host_topology();

// Bytes that the machine and the control groups of this process would still grant without swapping; what only caches
// files counts as free. None where nothing says. Read anew at each call.
std::optional<int64_t> read_free_bytes(const std::string& root);

// NEO_NUM_THREADS, or host_topology().preferred_threads() when that is 0.
int default_threads();

}  // namespace neo
