#pragma once

// Depthwise convolution (one input and one output channel per group) on NCHW[x]c, x the vector width.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

struct DepthwiseKernels;

struct DepthwisePlan {
  ConvShape shape;
  int64_t lanes = 0;  // x
  int64_t rows = 0;   // output rows per task
  int64_t chunks = 0;
  int64_t tasks = 0;  // images x vectors of channels x chunks
};

constexpr int64_t kDepthwiseMaxRows = 64;  // of taps

// Null where the routine takes the problem; else why not.
const char* reject_depthwise(const ConvShape& shape);
// `lines`: output rows per task; 0: chosen by the shape.
DepthwisePlan plan_depthwise(const ConvShape& shape, int64_t lanes, int64_t lines = 0);

// Share of the FMA peak that the sums reach from the private cache.
double depthwise_efficiency(const ConvShape& shape);

// [vector][tap][lane], padding lanes zero; `weight` is C1HW.
int64_t depthwise_weight_size(const DepthwisePlan& plan);
void pack_depthwise_weight(const DepthwisePlan& plan, const float* weight, float* packed);

void run_depthwise(const DepthwisePlan& plan, const DepthwiseKernels& kernels, const ConvOperands& args,
                   int64_t task_begin, int64_t task_end);

// One output row of one vector of channels: output column o sums over the rows of taps i and the taps j of a row
// weight[i * kw + j] * rows[i][o * stride - pad + j * dilation], where that column lies in [0, iw).
struct DepthwiseLine {
  const float* const* rows = nullptr;  // kh addresses of column 0; null: the row is outside
  int64_t kh = 0, kw = 0;
  int64_t iw = 0, ow = 0;
  int64_t stride = 1, dilation = 1, pad = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;      // a vector, or null
  const float* residual = nullptr;  // as dst, or null; may be dst
  float* dst = nullptr;
  int64_t valid = 0;  // channels of the vector that exist; the others become zero
  float lo = 0.0f, hi = 0.0f;

  // Sets what all lines of a convolution have in common.
  void set_shape(const ConvShape& s) {
    kh = s.kh;
    kw = s.kw;
    iw = s.iw;
    ow = s.ow;
    stride = s.stride_w;
    dilation = s.dilation_w;
    pad = s.pad_left;
  }
};

// Rows of some widths and strides have kernels of their own, of a number each below 16; 0: those of all others.
constexpr int depthwise_form(int64_t kw, int64_t stride, int64_t dilation) {
  const bool is_own = dilation == 1 && (((kw == 3 || kw == 5) && stride <= 2) || (kw == 7 && stride == 1));
  return is_own ? static_cast<int>(kw + 8 * (stride - 1)) : 0;
}

struct DepthwiseKernels {
  int lanes;
  void (*line)(const DepthwiseLine&);
  void (*run)(const DepthwisePlan&, const ConvOperands&, int64_t task_begin, int64_t task_end);
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
