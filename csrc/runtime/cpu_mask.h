#pragma once

#include <pthread.h>

#include <bitset>
#include <vector>

namespace neo {

// CPUs by the system's numbers, as a set.
class CpuMask {
 public:
  CpuMask() = default;
  explicit CpuMask(const std::vector<int>& cpus) {
    for (const int cpu : cpus) add(cpu);
  }

  // Those that a thread may be on.
  static CpuMask of(pthread_t thread);

  bool operator==(const CpuMask&) const = default;

  // Unknown numbers, which are negative, and those that a mask has no place for are left out.
  void add(int cpu) {
    if (cpu >= 0 && cpu < kMax) bits_.set(static_cast<size_t>(cpu));
  }

  bool has(int cpu) const { return cpu >= 0 && cpu < kMax && bits_.test(static_cast<size_t>(cpu)); }
  bool is_empty() const { return bits_.none(); }

  CpuMask without(const CpuMask& others) const {
    CpuMask mask = *this;
    mask.bits_ &= ~others.bits_;
    return mask;
  }

  // Binds a thread to the set; an empty set, or one that the system refuses, leaves the thread where it may be now.
  void bind(pthread_t thread) const;

 private:
  static constexpr int kMax = 1024;
  std::bitset<kMax> bits_;
};

// The one that the calling thread is on; -1: not known.
int current_cpu();

}  // namespace neo
