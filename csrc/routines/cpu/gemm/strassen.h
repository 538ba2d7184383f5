#pragma once

// 1x1 convolutions on NCHW[x]c, x the vector width, by one or two levels of Strassen's algorithm
// (microkernel/strassen_tile.h): 7/8 or 49/64 of the multiplications, for sums of pixels that are made a few at a time
// beside the products. Two levels have the tiles of the inner one, and the outer one's sums of products are made as
// they leave the registers. Blocks of input channels that do not divide into parts are multiplied directly, into the
// same registers. An infinity or not-a-number reaches other pixels of its run.

#include <stdint.h>

#include "base/int_math.h"
#include "routines/cost/target.h"
#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/microkernel/strassen_tile.h"

namespace neo {

constexpr int64_t kStrassenLevels = 2;

// The facts that the channels decide. Plain bytes, made by plan_strassen.
struct StrassenPlan {
  int64_t lanes = 0;
  int64_t levels = 0;  // 0: there is no plan
  // Of the inner level: of all channels and pixels halves of 1 level, quarters of 2.
  int64_t blocks = 0;       // of input channels
  int64_t rest = 0;         // blocks of input channels that are in no part: fewer than there are parts
  int64_t vectors = 0;      // of output channels
  int64_t panels = 0;       // of these, as even as can be
  int64_t max_rows = 0;     // of a tile of the widest panel
  bool is_short = false;    // runs are
  int64_t run = 0;          // pixels that are worked on together
  int64_t sums_stride = 0;  // floats from block to block of their sums
  // Of the outer one of two levels: of all channels and pixels halves.
  int64_t outer_run = 0;
  int64_t outer_stride = 0;    // also from vector to vector of sums of products
  int64_t workspace_size = 0;  // floats

  int64_t parts() const { return int64_t{1} << levels; }  // of channels and pixels
  int64_t input_blocks() const { return parts() * blocks + rest; }
  int64_t half_run() const { return levels > 1 ? outer_run : run; }  // pixels of half a run
};

// Null where so many levels of the algorithm take a 1x1 convolution; else why not.
const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels, int64_t levels = 1);

// For parts of images of at most `pixels` pixels, on which packed weights do not depend.
StrassenPlan plan_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels, int64_t levels,
                           int64_t pixels = INT64_MAX);

// Root of the mean square error against float64 on normal data, in units of the direct method's.
double strassen_error(int64_t levels);

// Packed weights: [product of the outer level][panel][product of the inner level][ic][oc of the panel],
// summed in double and rounded once; behind the products that end a quarter those of the rest, of its columns. `weight`
// is OI.
int64_t strassen_weight_size(const StrassenPlan& plan);
void pack_strassen_weight(const StrassenPlan& plan, const float* weight, float* packed);

// The runs that so many pixels are worked on in, and the most pixels of one.
int64_t strassen_runs(const StrassenPlan& plan, int64_t pixels);
int64_t strassen_run_pixels(const StrassenPlan& plan);
// Run i: of as many pixels as there are parts, or a multiple, so that none is computed twice.
IndexRange strassen_run(const StrassenPlan& plan, int64_t pixels, int64_t runs, int64_t i);

// Parts of fewer make narrow tiles.
int64_t fewest_strassen_pixels(const StrassenPlan& plan);

// With part i of `parts` of what is fetched for a later step.
inline ConvOperands with_later(ConvOperands args, int64_t parts, int64_t i) {
  const IndexRange part = even_part(args.later.size, parts, i);
  args.later = {args.later.data + part.begin, part.size()};
  return args;
}

// A part of an image: `pixels` pixels from args.src on to those from args.dst on. With workspace_size floats of
// workspace.
void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace);
// Runs run i alone, as strassen_run() has it.
void run_strassen_run(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args,
                      int64_t pixels, int64_t runs, int64_t i, float* workspace);

// Operations at the peak that take as long as that for so many pixels, in parts of so many.
double strassen_work(const StrassenPlan& plan, double pixels, double part, const Target& target);

}  // namespace neo
