#pragma once

#include <algorithm>

#include "base/int_math.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

// While tiles run, what later ones read is fetched, evenly over them: `width` floats of each of `k` steps.
struct PrefetchPlan {
  const float* next = nullptr;  // of what is left to fetch; null: nothing is
  int64_t step = 0;             // floats per k
  int64_t tile = 0;             // floats per tile

  static PrefetchPlan over(const float* first, int64_t width, int64_t k, int64_t tiles) {
    const int64_t step = ceil_div(width, std::max<int64_t>(1, tiles));
    return {first, step, k * step};
  }

  // Before each tile.
  void give(Tile& t) {
    if (!next) return;
    t.prefetched = next;
    t.prefetched_step = step;
    t.prefetched_block = 0;
    next += tile;
  }
};

}  // namespace neo
