#pragma once

// Depthwise transposed convolution (one input and one output channel per group) on NCHW[x]c, x the vector width: as
// networks enlarge images by learned or bilinear interpolation. Each residue of an output row modulo the stride is a
// sum over the taps that reach it.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// The outputs of one residue in one row of one vector of channels: output q at dst + q * dst_step is the sum over rows
// i and taps j of weights[i][first_weight + j * weight_step] * rows[i][(q + first_offset + j * offset_step) * lanes],
// where that column lies in [0, columns).
struct TransposedLine {
  const float* const* rows = nullptr;
  const float* const* weights = nullptr;
  int64_t row_count = 0, taps = 0;
  int64_t first_weight = 0, weight_step = 0, first_offset = 0, offset_step = 0;
  int64_t columns = 0, count = 0;
  const float* bias = nullptr;      // a vector, or null
  const float* residual = nullptr;  // as dst, or null; may be dst
  float* dst = nullptr;
  int64_t dst_step = 0;
  int64_t valid = 0;  // channels of the vector that exist; the others become zero
  float lo = 0.0f, hi = 0.0f;
};

struct TransposedDepthwiseKernels {
  int lanes;
  void (*line)(const TransposedLine&);
};

namespace scalar {
const TransposedDepthwiseKernels& transposed_depthwise_kernels();
}
namespace avx2 {
const TransposedDepthwiseKernels& transposed_depthwise_kernels();
}
namespace avx512 {
const TransposedDepthwiseKernels& transposed_depthwise_kernels();
}
namespace neon {
const TransposedDepthwiseKernels& transposed_depthwise_kernels();
}

// A band is the output rows of one position of the strides: as many as the stride has, in each axis but the last.
struct TransposedDepthwisePlan {
  Im2colConvShape shape;
  int64_t lanes = 0;
  int64_t vectors = 0;            // of channels
  int64_t depths = 0, lines = 0;  // bands along the two axes, of one image
  int64_t band_chunk = 0;         // bands per task
  int64_t chunks = 0;             // tasks of a vector of an image
  int64_t tasks = 0;              // fixed by the shape
};

// Null where the routine takes the problem; else why not.
const char* reject_transposed_depthwise(const Im2colConvShape& shape);
// `bands`: per task; 0: chosen by the shape.
TransposedDepthwisePlan plan_transposed_depthwise(const Im2colConvShape& shape, int64_t lanes, int64_t bands);
int64_t transposed_depthwise_flops(const TransposedDepthwisePlan& plan);

// Packed weights: [vector][tap][lane], padding lanes zero; `weight` is C1K....
int64_t transposed_depthwise_weight_size(const TransposedDepthwisePlan& plan);
void pack_transposed_depthwise_weight(const TransposedDepthwisePlan& plan, const float* weight, float* packed);

void run_transposed_depthwise(const TransposedDepthwisePlan& plan, const TransposedDepthwiseKernels& kernels,
                              const ConvOperands& args, int64_t task_begin, int64_t task_end);

}  // namespace neo
