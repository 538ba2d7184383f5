#pragma once

// Packing of a k x columns matrix into a panel of whole vectors: [k][vectors * lanes], missing columns zero.

#include <stdint.h>

namespace neo {

struct PackKernels {
  int lanes;
  // Element (i, j) is src[i * row + j * column], scaled by `scale`. Reads only columns < `columns`.
  void (*panel)(const float* src, int64_t row, int64_t column, int64_t k, int64_t columns, int64_t vectors, float scale,
                float* dst);
};

namespace scalar {
const PackKernels& pack_kernels();
}
namespace avx2 {
const PackKernels& pack_kernels();
}
namespace avx512 {
const PackKernels& pack_kernels();
}
namespace neon {
const PackKernels& pack_kernels();
}

}  // namespace neo
