#pragma once

// The instruction sets of this build that the host can run, each with its name and a table of functions.

#include <vector>

namespace neo::testing {

template <class Table>
struct HostTier {
  const char* name;
  const Table* table;
};

// NEO_HOST_TIERS(simd_probes) calls neo::<tier>::simd_probes() for every tier that may run here.
#if defined(__x86_64__)
#define NEO_HOST_TIERS(function) \
  ::neo::testing::x86_tiers(&::neo::scalar::function, &::neo::avx2::function, &::neo::avx512::function)
template <class Table>
std::vector<HostTier<Table>> x86_tiers(const Table& (*scalar)(), const Table& (*avx2)(), const Table& (*avx512)()) {
  std::vector<HostTier<Table>> tiers = {{"scalar", &scalar()}};
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) tiers.push_back({"avx2", &avx2()});
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    tiers.push_back({"avx512", &avx512()});
  }
  return tiers;
}
#elif defined(__aarch64__)
#define NEO_HOST_TIERS(function) ::neo::testing::arm_tiers(&::neo::scalar::function, &::neo::neon::function)
template <class Table>
std::vector<HostTier<Table>> arm_tiers(const Table& (*scalar)(), const Table& (*neon)()) {
  return {{"scalar", &scalar()}, {"neon", &neon()}};
}
#else
#define NEO_HOST_TIERS(function) ::neo::testing::scalar_tiers(&::neo::scalar::function)
template <class Table>
std::vector<HostTier<Table>> scalar_tiers(const Table& (*scalar)()) {
  return {{"scalar", &scalar()}};
}
#endif

}  // namespace neo::testing
