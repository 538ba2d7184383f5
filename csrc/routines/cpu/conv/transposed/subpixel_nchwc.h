#pragma once

// Transposed convolution on blocked layouts, NCHW[x]c to NCHW[x]c with x the vector width: every residue of the outputs
// modulo the stride is a direct convolution of stride one over the taps that reach it, whose register blocks store to
// every stride-th pixel of an output row. The arithmetic is in the tile kernels. A convolution of volumes is the same
// with one residue.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// One point of the schedule space; 0: chosen by the shape.
struct SubpixelSchedule {
  int64_t oc_vectors = 2;  // vectors of output channels per register block, 1 ... kTileVectors
  int64_t reg_n = 0;       // pixels per register block; 0: as many as the registers hold
  int64_t bands = 0;       // per task
  int64_t panels = 0;      // of output channels per task
  int64_t ic = 0;          // input channels per pass over a task's outputs; 0: all
};

// A band is the output rows of one position of the strides: as many as the stride has, in each axis but the last.
struct SubpixelPlan {
  Im2colConvShape shape;
  SubpixelSchedule schedule;
  int64_t lanes = 0;
  int64_t group_vectors = 0;      // vectors of output channels of one group, padding lanes included
  int64_t panels = 0;             // per group
  int64_t depths = 0, lines = 0;  // bands along the two axes, of one image
  int64_t band_chunk = 0;         // bands of all images per task
  int64_t band_chunks = 0;
  int64_t panel_chunk = 0;  // panels per task
  int64_t panel_chunks = 0;
  int64_t pass = 0;  // blocks of input channels per pass
  int64_t passes = 1;
  bool is_heavy = false;        // weights are most of what is read: tasks that share them are neighbours
  bool finishes_lines = false;  // all residues of an output row are made before the next row; else all rows of each
  int64_t tasks = 0;            // fixed by shape and schedule

  int64_t bands() const { return shape.n * depths * lines; }
};

// Null where the routine takes the problem; else why not.
const char* reject_subpixel(const Im2colConvShape& shape, int64_t lanes);
SubpixelPlan plan_subpixel(const Im2colConvShape& shape, const SubpixelSchedule& schedule, const TileKernels& kernels);

// Operations that take as long as the convolution, at least as long as its weights take to arrive.
int64_t subpixel_work(const Im2colConvShape& shape);

// Packed weights: [group][panel][residue][block of ic][tap][ic][oc of the panel], which does not depend on the padding;
// only output channels are padded. `weight` is I O/g K..., of
// a convolution O I/g K..., as in ONNX.
int64_t subpixel_weight_size(const SubpixelPlan& plan);
void pack_subpixel_weight(const SubpixelPlan& plan, const float* weight, float* packed);

void run_subpixel(const SubpixelPlan& plan, const TileKernels& kernels, const ConvOperands& args, int64_t task_begin,
                  int64_t task_end);

}  // namespace neo
