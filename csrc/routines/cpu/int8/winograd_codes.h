#pragma once

// Winograd's F(4, 3) along both axes on 8-bit codes in NCHW[lanes]c, exact: all of it counts modulo 2^32. With the
// points 0, 1, -1, 2, -2 and infinity the transform of the input has whole coefficients, and 24 times that of the
// output has, where the weights' rows are (6 0 0), (1 1 1), (1 -1 1), (1 2 4), (1 -2 4) and (0 0 3). Transformed codes
// and weights fit int16, and the tiles of dot_tile.h sum their products. Along both axes the results are 576 times the
// convolution's: the odd factor is taken off by its inverse, and the factor 64 by a shift, which is exact for sums of
// less than kMaxWinogradSum. The algorithm: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"

namespace neo {

constexpr int64_t kCodesWinogradTile = 4;    // results along an axis
constexpr int64_t kCodesWinogradWindow = 6;  // codes along an axis
constexpr int64_t kCodesWinogradPoints = kCodesWinogradWindow * kCodesWinogradWindow;
constexpr int64_t kMaxWinogradSum = (int64_t{1} << 25) - 1;

// The codes that one tile reads, 6x6 pixels of all blocks of channels.
struct CodesWinogradInput {
  const uint8_t* src = nullptr;
  int64_t src_row = 0, src_block = 0;  // bytes
  int64_t blocks = 0;
  int32_t zero = 0;  // the zero point
  bool is_signed = false;
  int16_t* dst = nullptr;  // [point][channel]
  int64_t dst_point = 0;   // elements from point to point
};

// The sums of one tile and one vector of output channels.
struct CodesWinogradOutput {
  const int32_t* src = nullptr;
  int64_t src_point = 0;  // elements from point to point
  const DotResult* result = nullptr;
  int64_t column = 0;             // of the result's vectors by column
  int64_t rows = 0, columns = 0;  // results that exist
  void* dst = nullptr;
  int64_t dst_row = 0;                // elements, also of the residual
  const uint8_t* residual = nullptr;  // or null
};

struct CodesWinogradKernels {
  void (*input)(const CodesWinogradInput&);
  void (*output)(const CodesWinogradOutput&);
};

namespace scalar {
const CodesWinogradKernels& codes_winograd_kernels();
}
namespace avx2 {
const CodesWinogradKernels& codes_winograd_kernels();
}
namespace avx512 {
const CodesWinogradKernels& codes_winograd_kernels();
}
namespace neon {
const CodesWinogradKernels& codes_winograd_kernels();
}

}  // namespace neo
