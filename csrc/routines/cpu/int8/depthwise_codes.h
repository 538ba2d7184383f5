#pragma once

// Depthwise convolution of 8-bit codes in NCHW[lanes]c, block of channels by block. The rows that a window reads are
// kept in a buffer with their padding, as words of neighbouring columns for each channel: of four bytes where the tier
// sums four products at once, of two int16 where it has wide vectors, else as one float32 number, whose sums of
// products of so few taps are whole numbers and exact. Where groups have several input channels, a word has four bytes
// of these for each output channel, one column of them.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// More taps could leave the whole numbers that float32 holds: 255 * 255 each.
constexpr int64_t kMaxDepthwiseTaps = 256;

// Neighbouring output pixels of a block of channels.
struct CodesDepthwiseRun {
  const uint8_t* src = nullptr;
  // Bytes from src to each pixel's first item; kDepthwiseBehind more than there are pixels.
  const int64_t* pixel_at = nullptr;
  const int64_t* tap_rows = nullptr;      // bytes from there to each row of the window
  int64_t rows = 1, items = 1, item = 0;  // of the window: rows, words or numbers of a row, bytes from one to the next
  // By row and item a vector.
  const void* weight = nullptr;
  int32_t last_ones = 0;  // in the bytes of a row's last word that are columns of the window
  int64_t pixels = 0;
  const DotResult* result = nullptr;
  int64_t column = 0;
  void* dst = nullptr;
  int64_t dst_pixel = 0;  // elements, also of the residual
  const uint8_t* residual = nullptr;
};

constexpr uint8_t kNoCode = 0x80;

// Four neighbouring input channels of each lane's group.
struct CodesGroupWord {
  int64_t blocks[4] = {};  // bytes from a pixel's first block to the one that each quarter of the lanes reads
  bool is_one_block = false;
  uint8_t index[64] = {};  // of each byte of the word in its block, or kNoCode: a 0
};

struct CodesDepthwiseKernels {
  int lanes;
  int columns;  // of a word: 4, 2 or 1
  // A row of the buffer; a word begins at each `step`-th column, and its columns are `next` apart, 1 where they are 4.
  void (*fill)(const DotFill&, int64_t step, int64_t next);
  // A row of `count` words of a group's channels for each column. Null where words have no four bytes.
  void (*fill_groups)(const DotFill&, const CodesGroupWord* words, int64_t count);
  void (*run)(const CodesDepthwiseRun&);
};

constexpr int64_t kMaxGroupWords = 16;
constexpr int64_t kDepthwiseItem = 4;    // bytes of a word or number of one channel
constexpr int64_t kDepthwiseBehind = 8;  // pixels behind the last one that are summed, too

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
