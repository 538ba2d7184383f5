#include "routines/cpu/conv/pointwise/affine_rows.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {

void affine_rows(const AffineRows& rows) {
  const F32 lo = broadcast(rows.lo), hi = broadcast(rows.hi);
  for (int64_t b = 0; b < rows.blocks; ++b) {
    const F32 scale = rows.scale ? load(rows.scale + b * kLanes) : broadcast(1.0f);
    const F32 shift = rows.shift ? load(rows.shift + b * kLanes) : zero();
    const float* src = rows.src + b * rows.src_block;
    float* dst = rows.dst + b * rows.dst_block;
    for (int64_t p = 0; p < rows.pixels * kLanes; p += kLanes) {
      store(dst + p, clamp_nan(fma(load(src + p), scale, shift), lo, hi));
    }
  }
}

}  // namespace neo::NEO_ISA
