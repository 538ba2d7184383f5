#pragma once

// Convolutions of 8-bit codes to a few channels: lanes are neighbouring pixels of a row, whose words of input channels
// (as in DotFill) lie in a plane for each word, and weights are broadcast. The result has planes, too.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"

namespace neo {

constexpr int kMaxFewChannels = 4;

// Output channels that weights are packed for; behind those that exist they are zero.
constexpr int64_t few_weights(int64_t channels, bool bytes) {
  return channels == 1 && bytes ? 1 : kMaxFewChannels;
}

// Neighbouring output pixels of a row.
struct FewChannelsRun {
  const int32_t* src = nullptr;      // of pixel 0 at the window's first column
  const int64_t* row_at = nullptr;   // of each of the window's rows and words, in words from src
  int64_t rows = 0, columns = 0;     // of the former; of the window
  int64_t dilation = 1;              // of columns
  const int32_t* weight = nullptr;   // by row, column, output channel, of which there are few_weights()
  int64_t channels = 0, pixels = 0;  // a few vectors more than the pixels are read
  const DotResult* result = nullptr;
  void* dst = nullptr;
  int64_t dst_channel = 0;  // elements
};

struct FewChannelsKernels {
  int lanes;
  // A row as planes of words, dst_pixel words apart; src_block from block to block of channels.
  void (*fill)(const DotFill&);
  void (*run)(const FewChannelsRun&);
};

namespace scalar {
const FewChannelsKernels& few_channels_kernels(bool bytes);
}
namespace avx2 {
const FewChannelsKernels& few_channels_kernels(bool bytes);
}
namespace avx512 {
const FewChannelsKernels& few_channels_kernels(bool bytes);
}
namespace neon {
const FewChannelsKernels& few_channels_kernels(bool bytes);
}

}  // namespace neo
