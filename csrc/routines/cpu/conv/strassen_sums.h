#pragma once

#include <stdint.h>

namespace neo {

// The sums of a source's quarters that Strassen's algorithm multiplies (strassen.h). A block is `pixels` vectors; the
// left and right pixels of the second half of the channels are `second` floats behind those of the first.
struct StrassenSums {
  const float* left = nullptr;
  const float* right = nullptr;
  int64_t stride = 0;  // from block to block
  int64_t second = 0;
  int64_t blocks = 0, pixels = 0;
  float* dst = nullptr;  // [sum][block][pixel]: u - r + s, u - r, u - r + s - t, r - s
  int64_t dst_stride = 0;
};

}  // namespace neo
