#pragma once

#include <cstdint>
#include <string_view>

namespace neo {

// Figures of a core that estimates need beside its instruction set and the sizes of its caches.
struct Core {
  // FMAs of 512 bits per cycle: two on cores of servers, one on most others. 0 without such instructions.
  int wide_fmas = 0;
  // Cores on a mesh reach the last cache through it, several times as slowly as those of small groups around one.
  bool has_mesh = false;
};

// The identity that an x86-64 CPU reports: its vendor's twelve letters, family and model with their extensions, and
// whether it has tiles of matrices.
struct CoreBits {
  std::string_view vendor;
  int family = 0;
  int model = 0;
  bool has_avx512 = false;
  bool has_amx = false;
};
// One that is not known counts as the weaker kind. Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs", has
// the units of each.
Core core_from_cpuid(const CoreBits& bits);

// This host's; found out once.
const Core& host_core();

}  // namespace neo
