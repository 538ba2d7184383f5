#pragma once

// Kernels of constant matrices that are held in 28 bits per weight with no bit lost. Safe in kernel files.
//
// The exponents of trained weights are few. Those of 15 binades, the highest that the matrix has, are kept in 4 bits as
// 1 to 15, and 0 as zero: together with sign and mantissa the bits of a tiny float, which times a power of two is the
// weight. The few others, outliers, are zero there and stand in a list. (Zhang et al. 2025, "70% size, 100% accuracy",
// keep the exponents of bfloat16 weights in a Huffman code for the same reason.)
//
// Seven of eight vectors of such floats stand as they are, but for the four bits of the exponent that are always zero:
// those hold the eighth. One instruction reads each of the seven, fourteen more the eighth.

#include <stdint.h>

namespace neo {

constexpr int64_t kExponentPackedRows = 8;    // of a group
constexpr int kMaxExponentPackedVectors = 4;  // of a panel of columns

// A group of rows of a panel: its vectors row by row, eight of them in seven.
constexpr int64_t exponent_packed_group_floats(int64_t vectors, int64_t lanes) {
  return kExponentPackedRows * vectors / 8 * 7 * lanes;
}

struct ExponentPackedKernels {
  float (*largest)(const float* values, int64_t count);  // magnitude; NaN does not count
  // Values but zeros whose magnitude is less, or not a number; one more than `most` stands for all that are more.
  int64_t (*count_outliers)(const float* values, int64_t count, float least, int64_t most);
  // Whole groups of a plain panel; `base`: the exponent, as a float's bits have it, that becomes 0.
  void (*compress)(const float* panel, int64_t groups, int64_t vectors, int32_t base, float least, float* to);
  // sums[column] += the sum over rows of x[row * step] * scale * panel[row, column]; by vectors of a panel, less one.
  // Floats that lie `prefetched` behind those read may be fetched; 0: none are.
  void (*multiply[kMaxExponentPackedVectors])(const float* x, int64_t step, int64_t rows, float scale,
                                              const float* panel, int64_t prefetched, float* sums);
  // y = clamp(sums + bias) of one panel's first columns; bias padded to whole vectors, or null
  void (*finish)(const float* sums, const float* bias, float lo, float hi, int64_t columns, float* y);
};

namespace scalar {
const ExponentPackedKernels& exponent_packed_kernels();
}
namespace avx2 {
const ExponentPackedKernels& exponent_packed_kernels();
}
namespace avx512 {
const ExponentPackedKernels& exponent_packed_kernels();
}
namespace neon {
const ExponentPackedKernels& exponent_packed_kernels();
}

}  // namespace neo
