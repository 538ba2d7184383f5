#pragma once

// Direct convolution that reads plain NCHW and writes NCHW[oc_bn]c: the first layer of a network, with few input
// channels. The input rows of a few output rows are spread into phases of the horizontal stride, with their padding, so
// that every tap of a register block reads consecutive floats.

#include <stdint.h>

#include "routines/cpu/conv/conv_shape.h"
#include "routines/cpu/gemm/tile.h"

namespace neo {

struct FirstLayerSchedule {
  int64_t oc_bn = 16;
  int64_t reg_n = 0;       // pixels per register block; 0: as many as the registers hold
  int64_t oc_vectors = 4;  // vectors of output channels per register block
};

struct FirstLayerPlan {
  ConvShape shape;
  FirstLayerSchedule schedule;
  int64_t lanes = 0;
  int64_t vectors = 0;  // of output channels, padding lanes included
  int64_t panels = 0;
  int64_t rows = 0;  // output rows per task
  int64_t chunks = 0;
  int64_t buffer_rows = 0;     // input rows of a task
  int64_t buffer_width = 0;    // floats of one phase of one row
  int64_t workspace_size = 0;  // floats per member of the team
  int64_t tasks = 0;
};

struct FirstLayerArgs {
  const float* src = nullptr;
  int64_t src_batch = 0, src_channel = 0;
  const float* weight = nullptr;    // pack_first_layer_weight
  const float* bias = nullptr;      // padded to whole vectors, or null
  const float* residual = nullptr;  // blocked like dst, or null; may be dst
  int64_t residual_batch = 0, residual_block = 0;
  float* dst = nullptr;
  int64_t dst_batch = 0, dst_block = 0;
  float lo = 0.0f, hi = 0.0f;
  float* workspace = nullptr;  // workspace_size floats for every member
};

struct RowKernels {
  // dst[i] = src[i * stride], 0 <= i < count
  void (*take_every)(const float* src, int64_t stride, int64_t count, float* dst);
};

namespace scalar {
const RowKernels& row_kernels();
}
namespace avx2 {
const RowKernels& row_kernels();
}
namespace avx512 {
const RowKernels& row_kernels();
}
namespace neon {
const RowKernels& row_kernels();
}

const char* reject_first_layer(const ConvShape& shape, const FirstLayerSchedule& schedule, int64_t lanes);
FirstLayerPlan plan_first_layer(const ConvShape& shape, const FirstLayerSchedule& schedule, const TileKernels& kernels);

// [panel][ic][tap][oc of the panel]; `weight` is OIHW.
int64_t first_layer_weight_size(const FirstLayerPlan& plan);
void pack_first_layer_weight(const FirstLayerPlan& plan, const float* weight, float* packed);

void run_first_layer(const FirstLayerPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const FirstLayerArgs& args, int64_t task_begin, int64_t task_end, int member);

}  // namespace neo
