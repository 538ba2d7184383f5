#pragma once

// Direct convolution on plain NCHW whose vectors are pixels of one output row: few output channels per group, large
// windows, long rows. A task spreads its input rows into a row buffer; a register block is up to kTileRows output
// channels by up to kTileVectors vectors of pixels, and every tap adds the product of a weight per channel with vectors
// that begin at any float of the buffer.

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/row_buffer.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

struct DirectRowsSchedule {
  int64_t vectors = 4;  // of pixels per register block, 1 ... kTileVectors
  // 0: chosen by the shape.
  int64_t rows = 0;   // output channels per register block
  int64_t lines = 0;  // output rows per task, at most as many as the second-level cache holds
  int64_t parts = 0;  // that an output row is cut into
};

struct DirectRowsPlan {
  ConvShape shape;
  DirectRowsSchedule schedule;
  int64_t lanes = 0;
  bool along_row = false;          // inner sums run over the columns of a window's row; else over input channels
  int64_t inner = 1;               // products per inner sum
  int64_t inner_step = 0;          // floats of the buffer between them
  int64_t taps = 0;                // inner sums per output
  int64_t channel_tiles = 0;       // register blocks per group
  int64_t lines = 0, columns = 0;  // output rows and columns per task
  int64_t line_chunks = 0, column_chunks = 0;
  RowBuffer buffer;            // of one channel
  int64_t workspace_size = 0;  // floats that a task uses
  int64_t tasks = 0;           // fixed by shape and schedule
};

const char* reject_direct_rows(const ConvShape& shape);
DirectRowsPlan plan_direct_rows(const ConvShape& shape, const DirectRowsSchedule& schedule, const TileKernels& kernels);

// As many as the model's: [group][channel tile][tap][inner][oc of the tile]. `weight` is OIHW.
void pack_direct_rows_weight(const DirectRowsPlan& plan, const float* weight, float* packed);

void run_direct_rows(const DirectRowsPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
