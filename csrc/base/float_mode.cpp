#include "base/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace neo {

uint64_t float_mode() {
#if defined(__x86_64__)
  return _mm_getcsr();  // with the flags of what has happened, so that a scope restores them too
#elif defined(__aarch64__)
  uint64_t mode = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

void set_float_mode(uint64_t mode) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(mode));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory");
#else
  static_cast<void>(mode);
#endif
}

uint64_t neo_float_mode(Denormals denormals) {
#if defined(__x86_64__)
  constexpr uint64_t kMaskedTraps = 0x1f80, kFlushResults = 0x8000, kFlushOperands = 0x0040;
  return kMaskedTraps | (denormals == Denormals::Flush ? kFlushResults | kFlushOperands : 0);
#elif defined(__aarch64__)
  constexpr uint64_t kFlush = uint64_t{1} << 24;
  return denormals == Denormals::Flush ? kFlush : 0;
#else
  static_cast<void>(denormals);
  return 0;
#endif
}

}  // namespace neo
