#include "runtime/cpu_mask.h"

#include <sched.h>

namespace neo {

void CpuMask::bind(pthread_t thread) const {
  if (is_empty()) return;
  cpu_set_t set;
  static_assert(CPU_SETSIZE >= kMax);
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < kMax; ++cpu) {
    if (has(cpu)) CPU_SET(cpu, &set);
  }
  pthread_setaffinity_np(thread, sizeof set, &set);
}

CpuMask CpuMask::of(pthread_t thread) {
  CpuMask mask;
  cpu_set_t set;
  if (pthread_getaffinity_np(thread, sizeof set, &set) != 0) return mask;
  for (int cpu = 0; cpu < kMax; ++cpu) {
    if (CPU_ISSET(cpu, &set)) mask.add(cpu);
  }
  return mask;
}

int current_cpu() {
  return sched_getcpu();
}

}  // namespace neo
