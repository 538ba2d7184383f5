#pragma once

// Depthwise convolution of 8-bit codes in NCHW[lanes]c, block of channels by block. The rows that a task reads are
// brought into a buffer with their padding: as bytes where the tier sums four products at once, else as float32
// numbers, whose sums of products of so few taps are whole numbers and exact.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// More taps could leave the whole numbers that float32 holds: 255 * 255 each.
constexpr int64_t kMaxDepthwiseTaps = 256;

struct CodesDepthwiseRow {
  const uint8_t* src = nullptr;  // of the first output pixel's window in the buffer
  int64_t src_row = 0;           // bytes from row to row of the window
  int64_t src_pixel = 0;         // bytes from output pixel to output pixel
  int64_t kh = 1, kw = 1;
  int64_t tap_row = 0, tap_column = 0;  // dilations, in bytes of the buffer
  // By tap a float per channel; for bytes by row and four columns a word per channel.
  const void* weight = nullptr;
  int64_t pixels = 0;
  const DotResult* result = nullptr;
  int64_t column = 0;
  void* dst = nullptr;
  int64_t dst_pixel = 0;  // elements, also of the residual
  const uint8_t* residual = nullptr;
};

struct CodesDepthwiseKernels {
  int lanes;
  bool bytes;
  int64_t pixel_bytes;  // of the buffer
  void (*fill)(const DotFill&);
  void (*row)(const CodesDepthwiseRow&);
};

// `shifts`: weights in words of bytes are less than they should be, by DotResult's shift.
namespace scalar {
const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts);
}
namespace avx2 {
const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts);
}
namespace avx512 {
const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts);
}
namespace neon {
const CodesDepthwiseKernels& codes_depthwise_kernels(bool bytes, bool shifts);
}

}  // namespace neo
