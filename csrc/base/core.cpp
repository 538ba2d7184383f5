#include "base/core.h"

#include <cstring>

#include "base/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neo {
namespace {

// Two units, and a mesh: Skylake, Cascade Lake and Cooper Lake; Ice Lake; and what has tiles: Sapphire Rapids and
// later. A hypervisor may show another model, so tiles alone are enough.
bool is_intel_server(const CoreBits& bits) {
  return bits.has_amx || (bits.family == 6 && (bits.model == 0x55 || bits.model == 0x6a || bits.model == 0x6c));
}

// Zen 5 of servers and desktops; those of notebooks have units of 256 bits, as Zen 4 has.
bool has_two_units_of_amd(const CoreBits& bits) {
  return bits.family == 0x1a && (bits.model < 0x20 || (bits.model >= 0x40 && bits.model < 0x50));
}

Core find_core() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx)) return {};
  char vendor[12];
  std::memcpy(vendor, &ebx, 4);
  std::memcpy(vendor + 4, &edx, 4);
  std::memcpy(vendor + 8, &ecx, 4);
  CoreBits bits;
  bits.vendor = {vendor, sizeof vendor};
  bits.has_avx512 = kIsaAvx512.is_subset_of(detected_isa());
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
    bits.family = static_cast<int>((eax >> 8 & 0xf) + (eax >> 20 & 0xff));
    bits.model = static_cast<int>((eax >> 4 & 0xf) | (eax >> 12 & 0xf0));
  }
  constexpr unsigned kTiles = 1u << 24;
  bits.has_amx = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kTiles) != 0;
  return core_from_cpuid(bits);
#else
  return {};
#endif
}

}  // namespace

Core core_from_cpuid(const CoreBits& bits) {
  Core core;
  if (!bits.has_avx512) return core;
  core.has_mesh = bits.vendor == "GenuineIntel" && is_intel_server(bits);
  core.wide_fmas = core.has_mesh || (bits.vendor == "AuthenticAMD" && has_two_units_of_amd(bits)) ? 2 : 1;
  return core;
}

const Core& host_core() {
  static const Core core = find_core();
  return core;
}

}  // namespace neo
