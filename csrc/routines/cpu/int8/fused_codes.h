#pragma once

// The kernels of chains of convolutions of codes (codes_chain.h) beside those of the convolutions.

#include <stdint.h>

#include "routines/cpu/int8/dot_tile.h"

namespace neo {

// HardSwish between two grids of codes: a code x less its zero point becomes x * factor * clamp(x * slope + 0.5, 0, 1),
// rounded between lo and hi, which are less the zero point of the second grid.
struct CodesHardSwish {
  float slope = 0, factor = 0, lo = 0, hi = 0;
  int32_t zero = 0;
  bool is_signed = false;
};

// On codes of a vector of channels, pixel by pixel. Results are those of products alone (DotResult),
// with a HardSwish behind them or null.
struct CodesChainKernels {
  // Codes less the zero point.
  void (*read)(const uint8_t* codes, int64_t pixels, int32_t zero, bool is_signed, float* numbers);
  // The result's codes of sums that are `step` apart, less their zero point.
  void (*numbers)(const int32_t* sums, int64_t step, int64_t pixels, const DotResult& result, int64_t column,
                  const CodesHardSwish* function, float* numbers);
  // The result's codes of whole numbers, dense.
  void (*codes)(const float* sums, int64_t pixels, const DotResult& result, int64_t column,
                const CodesHardSwish* function, uint8_t* codes);
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
