#pragma once

// Convolution of any rank, stride, dilation, padding and number of groups, and its transpose, on plain layouts
// (N C D H W): for every panel of output pixels the taps are gathered into a packed matrix, which GEMM multiplies by
// the weights; one tap that reads the pixel it writes needs no copy. A transposed convolution is cut into the phases of
// its stride, each an ordinary convolution of stride one: all those of a panel of its input's pixels are made in turn,
// phases of a row that read the same pixels at once.

#include <stdint.h>

#include "base/int_math.h"
#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/row_buffer.h"
#include "routines/cpu/microkernel/pack.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// One point of the schedule space; 0: chosen by the shape.
struct Im2colConvSchedule {
  int64_t columns = 0;  // vectors of pixels per register block
  int64_t rows = 0;     // output channels per register block
  int64_t k = 0;        // products of an output per pass over it
  int64_t panels = 0;   // of pixels per task
};

// The part of a channel that taps read, with the zeros around it. Columns as far apart as neighbouring pixels read are
// neighbours.
struct InputBox {
  int64_t begin[3] = {};                                         // input positions of its first element
  int64_t size[3] = {};                                          // no elements: taps read the input itself
  int64_t step = 1;                                              // of the columns of neighbouring pixels
  int64_t step_size() const { return ceil_div(size[2], step); }  // columns of each remainder
  int64_t row() const { return step * step_size(); }
  int64_t elements() const { return size[0] * size[1] * row(); }
  // The place of a column in its row.
  int64_t place(int64_t column) const { return column % step * step_size() + column / step; }
};

struct Im2colConvPlan {
  Im2colConvShape shape;
  int64_t lanes = 0;
  int64_t vectors = 4;  // per register block
  int64_t rows = 0;     // of a register block; 0: as many as the registers hold
  int64_t k_chunk = 0;
  int64_t axis_phases[3] = {1, 1, 1};
  InputBox box;                // of the channels of a group that a task copies, where rows are short
  bool is_pointwise = false;   // one tap (of every phase) that reads the pixel it writes
  bool takes_places = false;   // rows are of few pixels, whose windows lie inside the input: taps gather pixel by pixel
  int64_t panel_chunk = 0;     // panels per task
  int64_t chunks = 0;          // tasks per image and group
  int64_t workspace_size = 0;  // floats that a task uses
  int64_t tasks = 0;

  int64_t phases() const { return axis_phases[0] * axis_phases[1] * axis_phases[2]; }
};

Im2colConvPlan plan_im2col_conv(const Im2colConvShape& shape, const Im2colConvSchedule& schedule,
                                const TileKernels& kernels);

// Phases of a row that read the same pixels and are made at once, on average.
double phases_per_gather(const Im2colConvPlan& plan);

// Floats of the packed weights of a transposed convolution, which are I O/g K... as in ONNX: [group][residue of the
// taps], and within one row per output channel; this does not depend on batch, space and padding. Other convolutions
// read O I/g K... as they are.
int64_t im2col_conv_weight_size(const Im2colConvPlan& plan);
// The rows of some output channels of all groups.
void pack_im2col_conv_weight(const Im2colConvPlan& plan, const float* weight, float* packed, IndexRange channels);

void run_im2col_conv(const Im2colConvPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels,
                     const RowKernels& row_kernels, const ConvOperands& args, int64_t task_begin, int64_t task_end,
                     float* workspace);

}  // namespace neo
