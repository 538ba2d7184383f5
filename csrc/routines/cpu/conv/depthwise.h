#pragma once

// Depthwise convolution (one input and one output channel per group) on NCHW[x]c, x a multiple of the vector width.

#include <stdint.h>

#include "routines/cpu/conv/conv_shape.h"

namespace neo {

struct DepthwisePlan {
  ConvShape shape;
  int64_t block = 0;  // x
  // Output columns [inner_left, inner_right) and rows [inner_top, inner_bottom) have all their taps inside.
  int64_t inner_left = 0, inner_right = 0;
  int64_t inner_top = 0, inner_bottom = 0;
  int64_t rows = 0;  // output rows per task
  int64_t chunks = 0;
  int64_t tasks = 0;  // images x vectors of channels x chunks
};

struct DepthwiseArgs {
  const float* src = nullptr;
  int64_t src_batch = 0, src_block = 0;
  const float* weight = nullptr;    // pack_depthwise_weight
  const float* bias = nullptr;      // padded to whole blocks, or null
  const float* residual = nullptr;  // as dst, or null; may be dst
  int64_t residual_batch = 0, residual_block = 0;
  float* dst = nullptr;
  int64_t dst_batch = 0, dst_block = 0;
  float lo = 0.0f, hi = 0.0f;
};

// Null where the routine takes the problem; else why not.
const char* reject_depthwise(const ConvShape& shape, int64_t block, int64_t lanes);
DepthwisePlan plan_depthwise(const ConvShape& shape, int64_t block, int64_t lanes);

// [block][tap][lane of the block], padding lanes zero; `weight` is C1HW.
int64_t depthwise_weight_size(const DepthwisePlan& plan);
void pack_depthwise_weight(const DepthwisePlan& plan, const float* weight, float* packed);

struct DepthwiseKernels {
  int lanes;
  void (*run)(const DepthwisePlan&, const DepthwiseArgs&, int64_t task_begin, int64_t task_end);
};

namespace scalar {
const DepthwiseKernels& depthwise_kernels();
}
namespace avx2 {
const DepthwiseKernels& depthwise_kernels();
}
namespace avx512 {
const DepthwiseKernels& depthwise_kernels();
}
namespace neon {
const DepthwiseKernels& depthwise_kernels();
}

}  // namespace neo
