#pragma once

// A 1x1 convolution on NCHW whose weights are mostly zeros: for a run of pixels, the products with the weights of an
// output channel that are none (Elsen et al., "Fast sparse convnets", 2020, section 3). The inputs of a run are
// gathered first: where they lie each channel may be in another page.

#include <stdint.h>

namespace neo {

constexpr int kSparseVectors = 8;  // of pixels, most that are summed at a time

// A weight that is not zero, and the input channel that it is for.
struct SparseWeight {
  int32_t channel = 0;
  float value = 0.0f;
};

// One output channel of a run of pixels: dst = clamp(bias + sum of weights times inputs + residual). An even number of
// vectors of each input channel are read.
struct SparseRun {
  const float* src = nullptr;
  int64_t src_channel = 0;  // floats from one channel to the next
  const SparseWeight* begin = nullptr;
  const SparseWeight* end = nullptr;
  float bias = 0.0f;
  const float* residual = nullptr;  // or null; may be dst
  float* dst = nullptr;
  int64_t pixels = 0;  // 1 to kSparseVectors vectors
  float lo = 0.0f, hi = 0.0f;
};

}  // namespace neo
