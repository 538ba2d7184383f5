#include "base/core.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "base/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neo {
namespace {

#if defined(__x86_64__)

constexpr int kRounds = 16, kSteps = 512, kPerStep = 15;

#define NEO_SUMS                                                                                                      \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14"

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#define NEO_FMA(to) "vfmadd231ps %%zmm15, %%zmm15, %%zmm" #to "\n"
// Fifteen that do not depend on each other.
void multiply_add() {
  asm volatile(NEO_FMA(0) NEO_FMA(1) NEO_FMA(2) NEO_FMA(3) NEO_FMA(4) NEO_FMA(5) NEO_FMA(6) NEO_FMA(7) NEO_FMA(8)
                   NEO_FMA(9) NEO_FMA(10) NEO_FMA(11) NEO_FMA(12) NEO_FMA(13) NEO_FMA(14)
               :
               :
               : NEO_SUMS);
}
#undef NEO_FMA

// As many cycles: every rotation waits for the one before.
void wait() {
  uint32_t x = 1;
  for (int i = 0; i < kPerStep; ++i) asm volatile("roll $1, %0" : "+r"(x) : : "cc");
}

// Interrupts and other programs lengthen a round, nothing shortens one. Zeroed sums: a product of anything else may be
// denormal.
int measure_wide_fmas() {
  double fmas = std::numeric_limits<double>::infinity(), cycles = fmas;
  asm volatile("vzeroall" : : : NEO_SUMS, "xmm15");
  for (int round = 0; round < kRounds; ++round) {
    fmas = std::min(fmas, seconds_of(multiply_add));
    cycles = std::min(cycles, seconds_of(wait));
  }
  constexpr double kBetween = 1.4;
  return cycles / fmas > kBetween ? 2 : 1;
}

bool is_intel() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kGenu = 0x756e6547;  // of "GenuineIntel"
  return __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == kGenu;
}

Core find_core() {
  Core core;
  if (!kIsaAvx512.is_subset_of(detected_isa())) return core;
  core.wide_fmas = measure_wide_fmas();
  core.has_mesh = core.wide_fmas == 2 && is_intel();
  return core;
}

#else

Core find_core() {
  return {};
}

#endif

}  // namespace

const Core& host_core() {
  static const Core core = find_core();
  return core;
}

}  // namespace neo
