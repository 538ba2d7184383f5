#pragma once

// Waiting for words that other threads write, by looking at them again and again.

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace neo {

// Bytes between words of different writers: two lines, since adjacent ones are fetched in pairs.
constexpr size_t kSeparate = 128;

// Between two looks.
inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace neo
