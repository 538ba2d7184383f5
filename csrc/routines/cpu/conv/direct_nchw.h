#pragma once

// Direct convolution that reads plain NCHW and writes NCHW[oc_bn]c: the first layer of a network, with few input
// channels. A task copies what needs padding at the sides, of the input rows of a few output rows, into a row buffer.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/conv_shape.h"
#include "routines/cpu/conv/row_buffer.h"
#include "routines/cpu/gemm/tile.h"

namespace neo {

struct FirstLayerSchedule {
  int64_t oc_bn = 16;
  int64_t reg_n = 0;       // pixels per register block; 0: as many as the registers hold
  int64_t oc_vectors = 4;  // vectors of output channels per register block
  int64_t lines = 0;       // output rows per task; 0: chosen by the shape
};

struct FirstLayerPlan {
  ConvShape shape;
  FirstLayerSchedule schedule;
  int64_t lanes = 0;
  int64_t vectors = 0;  // of output channels, padding lanes included
  int64_t panels = 0;
  int64_t rows = 0;  // output rows per task
  int64_t chunks = 0;
  ConvShape padded;  // the shape as the row buffer sees it: a stride of one, so that rows stay whole
  RowBuffer buffer;
  // Output columns that read no padding at the sides: register blocks there read the image itself. None where the row
  // buffer would hold most of a row anyway.
  int64_t inside_begin = 0, inside_end = 0;
  int64_t left_end = 0, right_begin = 0;  // output columns whose input the row buffer holds: before, from there on
  int64_t workspace_size = 0;             // floats that a task uses
  int64_t tasks = 0;
};

const char* reject_first_layer(const ConvShape& shape, const FirstLayerSchedule& schedule, int64_t lanes);
FirstLayerPlan plan_first_layer(const ConvShape& shape, const FirstLayerSchedule& schedule, const TileKernels& kernels);

// [panel][ic][tap][oc of the panel]; `weight` is OIHW.
int64_t first_layer_weight_size(const FirstLayerPlan& plan);
void pack_first_layer_weight(const FirstLayerPlan& plan, const float* weight, float* packed);

void run_first_layer(const FirstLayerPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
