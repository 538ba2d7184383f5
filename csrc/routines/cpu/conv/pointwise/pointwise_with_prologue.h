#pragma once

// A 1x1 convolution on NCHW[x]c whose input is scaled and shifted by channel and goes through an activation first:
// DenseNet's batch normalization and Relu behind a concat, or the weights of a squeeze-and-excitation block. A run of
// pixels is prepared in the first-level cache and multiplied there by all weights, so that the prepared input never
// goes through memory, while the next run is fetched.

#include <stdint.h>

#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/cpu/conv/pointwise/affine_rows.h"
#include "routines/cpu/gemm/strassen.h"

namespace neo {

// Operands of the prologue.
struct AffineOperands {
  const float* scale = nullptr;  // a vector per block of channels, or null
  int64_t scale_batch = 0;
  const float* shift = nullptr;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

struct PointwiseWithProloguePlan {
  ConvShape shape;
  int64_t lanes = 0;
  int64_t blocks = 0;         // of input channels
  int64_t parts = 0;          // of an image
  int64_t run = 0, runs = 0;  // most pixels prepared at a time; as often in a part: the tasks
  int64_t block_stride = 0;   // of prepared pixels, in floats
  int64_t workspace_size = 0;
  int64_t tasks = 0;
  // The product of one run: by Strassen's algorithm, where this has levels, or the direct one.
  StrassenPlan strassen;
  DirectPlan product;
};

struct AffineKernels {
  const TileKernels* tiles = nullptr;
  const StrassenKernels* strassen = nullptr;
  void (*prepare)(const AffineRows& rows) = nullptr;
};

struct AffineSchedule {
  DirectSchedule product;
  int64_t strassen = 0;  // levels
  int64_t tasks = 1;
  int64_t cache_bytes = 0;  // of prepared pixels, at most
};

PointwiseWithProloguePlan plan_pointwise_with_prologue(const ConvShape& shape, const AffineSchedule& schedule,
                                                       const AffineKernels& kernels);

// Tasks [task_begin, task_end) with workspace_size floats of workspace.
void run_pointwise_with_prologue(const PointwiseWithProloguePlan& plan, const AffineKernels& kernels,
                                 const AffineOperands& affine, const ConvOperands& args, int64_t task_begin,
                                 int64_t task_end, float* workspace);

}  // namespace neo
