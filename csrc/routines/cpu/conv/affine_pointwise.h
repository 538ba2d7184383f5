#pragma once

// A 1x1 convolution on NCHW[x]c whose input is scaled and shifted by channel and goes through an activation first:
// DenseNet's batch normalization and Relu behind a concat, or the weights of a squeeze-and-excitation block. A run of
// pixels is prepared in the first-level cache and multiplied there by all weights, so that the prepared input never
// goes through memory, while the next run is fetched.

#include <stdint.h>

#include "routines/cpu/conv/affine_rows.h"
#include "routines/cpu/conv/direct_nchwc.h"

namespace neo {

// What happens to the input.
struct AffineOperands {
  const float* scale = nullptr;  // a vector per block of channels, or null
  int64_t scale_batch = 0;
  const float* shift = nullptr;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

struct AffinePointwisePlan {
  ConvShape shape;
  int64_t lanes = 0;
  int64_t blocks = 0;        // of input channels
  int64_t parts = 0;         // tasks per image
  int64_t run = 0;           // most pixels prepared at a time
  int64_t block_stride = 0;  // of prepared pixels, in floats
  int64_t workspace_size = 0;
  int64_t tasks = 0;
  DirectPlan product;  // of one run
};

// Aims at `wanted` tasks, and at prepared pixels of at most `cache_bytes`.
AffinePointwisePlan plan_affine_pointwise(const ConvShape& shape, const DirectSchedule& schedule,
                                          const TileKernels& kernels, int64_t wanted, int64_t cache_bytes);

using AffineKernel = void (*)(const AffineRows& rows);

// Tasks [task_begin, task_end) with workspace_size floats of workspace.
void run_affine_pointwise(const AffinePointwisePlan& plan, const TileKernels& kernels, AffineKernel prepare,
                          const AffineOperands& affine, const ConvOperands& args, int64_t task_begin, int64_t task_end,
                          float* workspace);

}  // namespace neo
