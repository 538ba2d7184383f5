#pragma once

// Direct convolution on blocked layouts: NCHW[ic_bn]c to NCHW[oc_bn]c with packed weights, after NeoCPU section 3.1.1,
// extended by several vectors of output channels per register block. Taps, strides, padding and blocks are data.
// It has no instruction set of its own: the arithmetic is in the tile kernels.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// One point of the schedule space.
struct DirectSchedule {
  int64_t ic_bn = 16;
  int64_t oc_bn = 16;
  int64_t reg_n = 0;       // pixels per register block; 0: as many as the registers hold
  int64_t oc_vectors = 4;  // vectors of output channels per register block, 1 ... 4
  // 0: chosen by the shape.
  int64_t chunk = 0;       // output rows per task, or register blocks where tiles run over the end of a row
  int64_t panels = 0;      // of output channels per task
  int64_t line = 0;        // 1: tiles end with their output row; 2: they run over it
  int64_t ic = 0;          // input channels per pass over a task's outputs, a multiple of ic_bn; 0: all
  int64_t order = 0;       // 1: the panels of a task are inside its rows, which must end tiles; else around them
  int64_t prefetched = 0;  // 1: the weights of the next panel or pass are not prefetched
};

// The facts that shape and schedule decide. Plain bytes, made by plan_direct.
struct DirectPlan {
  ConvShape shape;
  DirectSchedule schedule;
  int64_t lanes = 0;
  int64_t group_vectors = 0;  // vectors of output channels of one group, padding lanes included
  int64_t panels = 0;         // per group; panel p has (group_vectors + panels - 1 - p) / panels vectors
  bool flat = false;          // tiles run over the end of an output row
  bool contiguous = false;    // output pixel p reads input pixel p
  bool is_heavy = false;      // weights are most of what is read: tasks that share them are neighbours
  int64_t chunk = 0;          // output pixels (flat) or output rows per task
  int64_t chunks = 0;
  int64_t panel_chunk = 0;  // panels per task
  int64_t panel_chunks = 0;
  int64_t pass = 0;    // blocks of input channels per pass over a task's outputs
  int64_t passes = 1;  // of which only the last one clamps
  int64_t tasks = 0;   // fixed by shape and schedule
};

// Strides are in elements; a view of a larger tensor (a piece of a concat) has larger batch strides.
// Null where the routine takes the problem; else why not.
const char* reject_direct(const ConvShape& shape, const DirectSchedule& schedule, int64_t lanes);

// Operations that take as long as the convolution, at least as long as its weights take to arrive: what is worth
// sharing among a team.
int64_t direct_work(const ConvShape& shape);

DirectPlan plan_direct(const ConvShape& shape, const DirectSchedule& schedule, const TileKernels& kernels);

// The plan of a contiguous problem for another number of pixels, in one row of one image and one task.
DirectPlan direct_run(DirectPlan plan, int64_t pixels);

// Packed weights: KCRS[ic_bn]c[panel]k, [group][panel][block of ic][tap][ic][oc of the panel]; only output channels are
// padded. `weight` is OIHW.
int64_t direct_weight_size(const DirectPlan& plan);
void pack_direct_weight(const DirectPlan& plan, const float* weight, float* packed);

void run_direct(const DirectPlan& plan, const TileKernels& kernels, const ConvOperands& args, int64_t task_begin,
                int64_t task_end);

}  // namespace neo
