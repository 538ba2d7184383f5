#include "routines/cpu/conv/strassen_sums.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {

void strassen_sums(const StrassenSums& t) {
  const int64_t sum = t.blocks * t.dst_stride;
  for (int64_t b = 0; b < t.blocks; ++b) {
    const float *left = t.left + b * t.stride, *right = t.right + b * t.stride;
    float* dst = t.dst + b * t.dst_stride;
    for (int64_t i = 0; i < t.pixels * kLanes; i += kLanes) {
      const F32 r = load(right + i), u = load(right + t.second + i);
      const F32 across = r - load(left + i), rest = u - across;
      store(dst + i, rest);
      store(dst + sum + i, u - r);
      store(dst + 2 * sum + i, rest - load(left + t.second + i));
      store(dst + 3 * sum + i, across);
    }
  }
}

}  // namespace neo::NEO_ISA
