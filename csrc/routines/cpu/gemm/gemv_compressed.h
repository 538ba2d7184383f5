#pragma once

// y = clamp(x B + bias) of one row, with B held in 28 bits per weight and no bit lost: such a product takes as long as
// its weights take to arrive from memory.
//
// The exponents of trained weights are few. Those of 15 binades, the highest that the matrix has, are kept in 4 bits as
// 1 to 15, and 0 as zero: together with sign and mantissa the bits of a tiny float, which times a power of two is the
// weight. The few others, outliers, are zero there and stand in a list. (Zhang et al. 2025, "70% size, 100% accuracy",
// keep the exponents of bfloat16 weights in a Huffman code for the same reason.)

#include <stdint.h>

#include "routines/cpu/activation.h"
#include "routines/cpu/gemm/pack.h"

namespace neo {

constexpr int kCompressedVectors = 4;  // of a panel of columns

// Rows of a panel of B, one behind the other: of its vectors the low 16 bits, then sign and next 7 bits, then the
// exponents of two vectors in one.
constexpr int64_t compressed_row_bytes(int64_t lanes) {
  return kCompressedVectors * lanes * 7 / 2;
}

struct CompressedKernels {
  float (*largest)(const float* values, int64_t count);  // magnitude; NaN does not count
  // Values but zeros whose magnitude is less, or not a number; one more than `most` stands for all that are more.
  int64_t (*count_outliers)(const float* values, int64_t count, float least, int64_t most);
  // Rows of a plain panel; `base`: the exponent, as a float's bits have it, that becomes 0.
  void (*compress)(const float* panel, int64_t rows, int32_t base, float least, uint8_t* to);
  // sums[column] += the sum over rows of x[row * step] * scale * panel[row, column]
  void (*multiply)(const float* x, int64_t step, int64_t rows, float scale, const uint8_t* panel, float* sums);
  // y = clamp(sums + bias) of one panel's first columns; bias padded to whole vectors, or null
  void (*finish)(const float* sums, const float* bias, float lo, float hi, int64_t columns, float* y);
};

// Plain bytes.
struct CompressedPlan {
  int64_t k = 0, n = 0;  // of B
  int64_t lanes = 0;
  int64_t panels = 0;
  int64_t width = 0;        // columns of a panel
  int64_t most = 0;         // outliers that there is room for
  int64_t panel_chunk = 0;  // panels per task
  int64_t tasks = 0;
};

CompressedPlan plan_compressed(int64_t k, int64_t n, int64_t lanes);

// Null where B of k x n weights, dense in some order, can be held so; else why not.
const char* reject_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const float* b);

// Packed weights: [scale][outliers of the panels before, by panel][outliers][panel][row], each part whole cache lines.
// Element (i, j) of B is b[i * row + j * column].
int64_t compressed_size(const CompressedPlan& plan);  // floats
void pack_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const PackKernels& pack,
                     const float* b, int64_t row, int64_t column, float* packed);

struct CompressedArgs {
  const float* x = nullptr;
  int64_t x_step = 1;
  const float* b = nullptr;
  const float* bias = nullptr;  // padded to whole panels, or null
  float* y = nullptr;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

void run_compressed(const CompressedPlan& plan, const CompressedKernels& kernels, const CompressedArgs& args,
                    int64_t task_begin, int64_t task_end);

namespace scalar {
const CompressedKernels& compressed_kernels();
}
namespace avx2 {
const CompressedKernels& compressed_kernels();
}
namespace avx512 {
const CompressedKernels& compressed_kernels();
}
namespace neon {
const CompressedKernels& compressed_kernels();
}

}  // namespace neo
