#pragma once

#include "routines/cpu/microkernel/tile_cost.h"

namespace neo {

// tasks_us for operations that take as long as `work` of them at the FMA peak. The images of such steps are read and
// written row by row, which the last cache keeps up with while it holds them.
inline double depthwise_us(double work, int64_t tasks, double bytes, const Target& target, double constant_bytes = 0) {
  constexpr double kCacheBytes = 16e6;
  return tasks_us(work, 1.0, tasks, bytes > kCacheBytes ? bytes : 0, target, constant_bytes);
}

}  // namespace neo
