#pragma once

#include <stdint.h>

namespace neo {

// Blocks of channels, scaled and shifted by channel and clamped: dst = clamp(src * scale + shift). A block is `pixels`
// vectors; a not-a-number stays.
struct AffineRows {
  const float* src = nullptr;
  int64_t src_block = 0;  // floats from one block to the next
  float* dst = nullptr;
  int64_t dst_block = 0;
  int64_t blocks = 0, pixels = 0;
  const float* scale = nullptr;  // a vector per block, or null: 1
  const float* shift = nullptr;  // or null: 0
  float lo = 0.0f, hi = 0.0f;
};

}  // namespace neo
