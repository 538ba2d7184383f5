#pragma once

// 1x1 convolutions on NCHW[x]c, x the vector width, by one level of Strassen's algorithm (gemm/strassen_tile.h): seven
// eighths of the multiplications, for sums of pixels that are made a few at a time in the cache. An infinity or
// not-a-number reaches other pixels of its run.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/gemm/strassen_tile.h"
#include "routines/target.h"

namespace neo {

// What the channels decide. Plain bytes, made by plan_strassen.
struct StrassenPlan {
  int64_t lanes = 0;
  int64_t blocks = 0;          // of half the input channels
  int64_t vectors = 0;         // of half the output channels
  int64_t panels = 0;          // of these, as even as can be
  int64_t max_rows = 0;        // of a tile of the widest panel
  bool is_short = false;       // runs are
  int64_t run = 0;             // pixels of a half that are worked on together
  int64_t sums_stride = 0;     // floats from block to block of their sums
  int64_t workspace_size = 0;  // floats
};

// Null where the algorithm takes a 1x1 convolution; else why not.
const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels);

// For parts of images of at most `pixels` pixels, on which packed weights do not depend.
StrassenPlan plan_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels,
                           int64_t pixels = INT64_MAX);

// Root of the mean square error against float64 on normal data, in units of the direct method's.
constexpr double kStrassenError = 2.6;

// Packed weights: [panel][product][ic][oc of the panel], summed in double and rounded once. `weight` is OI.
int64_t strassen_weight_size(const StrassenPlan& plan);
void pack_strassen_weight(const StrassenPlan& plan, const float* weight, float* packed);

// The runs that so many pixels are worked on in, and the most pixels of one.
int64_t strassen_runs(const StrassenPlan& plan, int64_t pixels);
int64_t strassen_run_pixels(const StrassenPlan& plan);

// A part of an image: `pixels` pixels from args.src on to those from args.dst on. With workspace_size floats of
// workspace.
void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace);

// Operations at the peak that take as long as that for so many pixels.
double strassen_work(const StrassenPlan& plan, double pixels, const Target& target);

}  // namespace neo
