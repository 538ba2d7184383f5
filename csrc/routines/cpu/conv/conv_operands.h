#pragma once

#include <stdint.h>

#include "base/span.h"
#include "routines/cpu/activation.h"

namespace neo {

// Addresses of the float32 operands of one convolution, and its epilogue. Strides are in elements; a channel
// stride leads from one channel to the next, or from one block of channels to the next where the layout is blocked.
struct ConvOperands {
  const float* src = nullptr;
  int64_t src_batch = 0, src_channel = 0;
  const float* weight = nullptr;    // as the routine packs it
  const float* bias = nullptr;      // a float per output channel, padded to whole vectors in a blocked layout; or null
  const float* residual = nullptr;  // held like dst, or null; may be dst
  int64_t residual_batch = 0, residual_channel = 0;
  float* dst = nullptr;
  int64_t dst_batch = 0, dst_channel = 0;
  float lo = 0.0f, hi = 0.0f;  // -inf and +inf where there is no clamp
  Activation activation;
  const float* prefetched = nullptr;  // prefetched_pixels that the caller reads next, fetched meanwhile; or null
  int64_t prefetched_channel = 0, prefetched_pixels = 0;
  Span<const float> later;  // constants of a later step, fetched where nothing else is
};

}  // namespace neo
