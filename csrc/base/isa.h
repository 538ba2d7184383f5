#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"

namespace neo {

// A set of CPU features: what code needs, or what a CPU has. Ordered by inclusion; code for `a` runs on a CPU
// with `b` when a.is_subset_of(b). Sets of features that this machine lacks are ordinary values.
class Isa {
 public:
  enum Feature : uint32_t {
    kAvx2 = 1u << 0,        // with AVX and the wide registers saved by the operating system
    kFma = 1u << 1,         //
    kF16c = 1u << 2,        //
    kAvx512f = 1u << 3,     // with the 512-bit and mask registers saved by the operating system
    kAvx512bw = 1u << 4,    //
    kAvx512dq = 1u << 5,    //
    kAvx512vl = 1u << 6,    //
    kAvx512Vnni = 1u << 7,  //
    kNeon = 1u << 8,        // Advanced SIMD of AArch64
  };

  constexpr Isa() = default;
  constexpr explicit Isa(uint32_t features) : features_(features) {}

  constexpr uint32_t features() const { return features_; }
  constexpr bool is_subset_of(Isa other) const { return (features_ & ~other.features_) == 0; }
  friend constexpr Isa operator&(Isa a, Isa b) { return Isa(a.features_ & b.features_); }
  friend constexpr Isa operator|(Isa a, Isa b) { return Isa(a.features_ | b.features_); }
  friend constexpr bool operator==(Isa a, Isa b) = default;

 private:
  uint32_t features_ = 0;
};

// The named points. Kernels of a tier are compiled with the compiler flags of exactly these features.
inline constexpr Isa kIsaScalar{};
inline constexpr Isa kIsaAvx2{Isa::kAvx2 | Isa::kFma | Isa::kF16c};
inline constexpr Isa kIsaAvx512 = kIsaAvx2 | Isa{Isa::kAvx512f | Isa::kAvx512bw | Isa::kAvx512dq | Isa::kAvx512vl};
inline constexpr Isa kIsaAvx512Vnni = kIsaAvx512 | Isa{Isa::kAvx512Vnni};
inline constexpr Isa kIsaNeon{Isa::kNeon};

struct IsaTier {
  const char* name;
  const char* architecture;  // "any", "x86-64" or "aarch64"
  Isa isa;
};

// Every tier neo knows, weaker before stronger.
Span<const IsaTier> all_isa_tiers();

// The tiers whose kernels run on this host under NEO_MAX_ISA, weaker before stronger; never empty.
std::vector<IsaTier> host_isa_tiers();

// The strongest tier that is a subset of `available`.
const IsaTier& best_isa_tier(Isa available);
inline const char* isa_name(Isa isa) {
  return best_isa_tier(isa).name;
}

// The set that a tier's name stands for. Another name is an Unsupported error that lists the tiers; `where` is
// what the error names as its cause (an argument, a variable).
Isa parse_isa(std::string_view name, std::string_view where = "isa");

// The instruction sets that this CPU and its operating system support; detected once.
Isa detected_isa();

// detected_isa(), less what NEO_MAX_ISA does not contain. A cap of another architecture leaves scalar.
Isa host_isa();

// Whether this build has the kernels that a plan for `isa` was made with: those of the strongest tier in it. NEO_ISA of
// CMake leaves tiers out.
bool has_kernels(Isa isa);
// "scalar or avx2 or avx512": the tiers whose kernels this build has.
std::string built_isa_names();

// The registers that say what an x86-64 CPU supports.
struct CpuidBits {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint64_t xcr0 = 0;  // register state that the operating system saves; 0 without OSXSAVE
};
Isa isa_from_cpuid(const CpuidBits& bits);

}  // namespace neo
