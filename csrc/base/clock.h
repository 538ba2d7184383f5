#pragma once

#include <chrono>
#include <cstdint>

namespace neo {

// Nanoseconds of a clock that never goes backwards, from a start of its own.
inline int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace neo
