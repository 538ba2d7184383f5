#include "base/flush.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neo {
namespace {

constexpr uintptr_t kLine = 64;

#if defined(__x86_64__)
// Whether CPUID's leaf 7 names the instruction whose flushes are not in order. It is tens of times as fast.
bool has_unordered_flush() {
  constexpr unsigned kClflushopt = 1u << 23;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClflushopt) != 0;
}

__attribute__((target("clflushopt"))) void flush_unordered(uintptr_t begin, uintptr_t end) {
  for (uintptr_t line = begin; line < end; line += kLine)
    __builtin_ia32_clflushopt(reinterpret_cast<const void*>(line));
}
#endif

}  // namespace

bool flush_lines(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data) & ~(kLine - 1), end = reinterpret_cast<uintptr_t>(data) + bytes;
#if defined(__x86_64__)
  static const bool is_unordered = has_unordered_flush();
  if (is_unordered) {
    flush_unordered(begin, end);
  } else {
    for (uintptr_t line = begin; line < end; line += kLine) __builtin_ia32_clflush(reinterpret_cast<const void*>(line));
  }
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
