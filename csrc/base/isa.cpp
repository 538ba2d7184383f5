#include "base/isa.h"

#include <iterator>

#include "base/check.h"
#include "base/knobs.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neo {
namespace {

constexpr IsaTier kTiers[] = {
    {"scalar", "any", kIsaScalar},    {"avx2", "x86-64", kIsaAvx2},
    {"avx512", "x86-64", kIsaAvx512}, {"avx512_vnni", "x86-64", kIsaAvx512Vnni},
    {"neon", "aarch64", kIsaNeon},
};

Isa detect_isa() {
#if defined(__x86_64__)
  constexpr uint32_t kOsxsave = 1u << 27;
  CpuidBits bits;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) bits.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    bits.leaf7_ebx = ebx;
    bits.leaf7_ecx = ecx;
  }
  if (bits.leaf1_ecx & kOsxsave) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    bits.xcr0 = (static_cast<uint64_t>(high) << 32) | low;
  }
  return isa_from_cpuid(bits);
#elif defined(__aarch64__)
  return kIsaNeon;
#else
  return kIsaScalar;
#endif
}

// What a build without some tiers must not be asked for: it would take a weaker kernel where a stronger one was meant.
constexpr Isa built_isa() {
  uint32_t left_out = 0;
#if defined(__x86_64__) && !defined(NEO_HAVE_AVX2)
  left_out |= kIsaAvx2.features();
#endif
#if defined(__x86_64__) && !defined(NEO_HAVE_AVX512)
  left_out |= kIsaAvx512Vnni.features() & ~kIsaAvx2.features();
#endif
#if defined(__aarch64__) && !defined(NEO_HAVE_NEON)
  left_out |= kIsaNeon.features();
#endif
  return Isa(~left_out);
}

}  // namespace

Span<const IsaTier> all_isa_tiers() {
  return {kTiers, std::ssize(kTiers)};
}

std::vector<IsaTier> host_isa_tiers() {
  const Isa host = host_isa();
  std::vector<IsaTier> tiers;
  for (const IsaTier& tier : kTiers) {
    if (tier.isa.is_subset_of(host)) tiers.push_back(tier);
  }
  return tiers;
}

const IsaTier& best_isa_tier(Isa available) {
  const IsaTier* best = &kTiers[0];
  for (const IsaTier& tier : kTiers) {
    if (tier.isa.is_subset_of(available)) best = &tier;
  }
  return *best;
}

Isa parse_isa(std::string_view name, std::string_view where) {
  std::string names;
  for (const IsaTier& tier : kTiers) {
    if (tier.name == name) return tier.isa;
    names += str(names.empty() ? "" : ", ", tier.name);
  }
  fail(ErrorKind::Unsupported, where,
       str("instruction set must be a known one. Got '", name, "', expected one of ", names));
}

Isa detected_isa() {
  static const Isa detected = detect_isa();
  return detected;
}

Isa host_isa() {
  const std::string cap = knob_string(Knob::MaxIsa);
  const Isa own = detected_isa() & built_isa();
  return cap.empty() ? own : own & parse_isa(cap, get_knob_info(Knob::MaxIsa).name);
}

Isa isa_from_cpuid(const CpuidBits& bits) {
  constexpr uint64_t kYmmState = 0x06;  // XMM and upper YMM halves
  constexpr uint64_t kZmmState = 0xe6;  // those, mask registers, upper ZMM halves, ZMM16 to 31
  uint32_t features = 0;
  const auto add_if = [&](uint32_t word, int bit, Isa::Feature feature) {
    if (word >> bit & 1) features |= feature;
  };

  const bool has_avx = bits.leaf1_ecx >> 28 & 1;
  if (!has_avx || (bits.xcr0 & kYmmState) != kYmmState) return Isa(features);
  add_if(bits.leaf1_ecx, 12, Isa::kFma);
  add_if(bits.leaf1_ecx, 29, Isa::kF16c);
  add_if(bits.leaf7_ebx, 5, Isa::kAvx2);

  const bool has_avx512f = bits.leaf7_ebx >> 16 & 1;
  if (!has_avx512f || (bits.xcr0 & kZmmState) != kZmmState) return Isa(features);
  add_if(bits.leaf7_ebx, 16, Isa::kAvx512f);
  add_if(bits.leaf7_ebx, 17, Isa::kAvx512dq);
  add_if(bits.leaf7_ebx, 30, Isa::kAvx512bw);
  add_if(bits.leaf7_ebx, 31, Isa::kAvx512vl);
  add_if(bits.leaf7_ecx, 11, Isa::kAvx512Vnni);
  return Isa(features);
}

}  // namespace neo
