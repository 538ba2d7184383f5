#include "base/flush.h"

#include <cstdint>

namespace neo {

bool flush_lines(const void* data, size_t bytes) {
  constexpr uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<uintptr_t>(data) & ~(kLine - 1), end = reinterpret_cast<uintptr_t>(data) + bytes;
#if defined(__x86_64__)
  for (uintptr_t line = begin; line < end; line += kLine) __builtin_ia32_clflush(reinterpret_cast<const void*>(line));
  __builtin_ia32_mfence();
  return true;
#elif defined(__aarch64__)
  for (uintptr_t line = begin; line < end; line += kLine) asm volatile("dc civac, %0" ::"r"(line) : "memory");
  asm volatile("dsb sy" ::: "memory");
  return true;
#else
  return begin == end;
#endif
}

}  // namespace neo
