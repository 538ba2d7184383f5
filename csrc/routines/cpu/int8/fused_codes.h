#pragma once

// The kernels of chains of convolutions of codes (codes_chain.h) beside those of the convolutions.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"

namespace neo {

// On codes of a vector of channels, pixel by pixel. Results are those of products alone (DotResult).
struct CodesChainKernels {
  // Codes less the zero point.
  void (*read)(const uint8_t* codes, int64_t pixels, int32_t zero, bool is_signed, float* numbers);
  // The result's codes of sums that are `step` apart, less their zero point.
  void (*numbers)(const int32_t* sums, int64_t step, int64_t pixels, const DotResult& result, int64_t column,
                  float* numbers);
  // The result's codes of whole numbers, dense.
  void (*codes)(const float* sums, int64_t pixels, const DotResult& result, int64_t column, uint8_t* codes);
};

namespace scalar {
const CodesChainKernels& codes_chain_kernels();
}
namespace avx2 {
const CodesChainKernels& codes_chain_kernels();
}
namespace avx512 {
const CodesChainKernels& codes_chain_kernels();
}
namespace neon {
const CodesChainKernels& codes_chain_kernels();
}

}  // namespace neo
