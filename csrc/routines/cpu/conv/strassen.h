#pragma once

// 1x1 convolutions on NCHW[x]c, x the vector width, by one level of Strassen's algorithm in the form that Winograd gave
// it: seven products of quarters of the matrices in place of eight, for sums of the quarters.
//
// Pixels are cut into left and right ones, output channels into upper and lower ones, input channels into a first and a
// second half. With s and r the left and right pixels of the first half, t and u those of the second, and the weights a
// (upper) and c (lower) of the first half, b and d of the second, the products and what is made of them are
//
//   p1 = s a                    p4 = (u - r + s - t) (-d)   upper left    p1 + p2
//   p2 = t b                    p5 = (r - s) (c + d)        lower left    p1 + p6 + p7 + p4
//   p6 = (u - r + s) (c + d - a)                            lower right   p1 + p6 + p7 + p5
//   p7 = (u - r) (a - c)        p3 = u (a + b - c - d)      upper right   p1 + p6 + p5 + p3
//
// Sums of weights are made when they are packed, those of pixels a few at a time in the cache, and products are summed
// by the register blocks that make them. An infinity or not-a-number reaches the other pixels of its run.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/strassen_sums.h"
#include "routines/cpu/gemm/tile.h"
#include "routines/target.h"

namespace neo {

// What the channels decide. Plain bytes, made by plan_strassen.
struct StrassenPlan {
  int64_t lanes = 0;
  int64_t blocks = 0;          // of half the input channels
  int64_t vectors = 0;         // of half the output channels
  int64_t panels = 0;          // of these: register blocks of as many vectors as can be, as even as can be
  int64_t run = 0;             // pixels of a half that are worked on together
  int64_t sums_stride = 0;     // floats from block to block of their sums
  int64_t workspace_size = 0;  // floats
};

struct StrassenKernels {
  const TileKernels& tiles;
  void (*sums)(const StrassenSums&);

  static StrassenKernels of(Isa isa);
};

// Null where the algorithm takes a 1x1 convolution; else why not.
const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes);

StrassenPlan plan_strassen(int64_t ic, int64_t oc, const TileKernels& tiles);

// Root of the mean square error against float64 on normal data, in units of the direct method's.
constexpr double kStrassenError = 2.6;

// Packed weights: [panel][product][ic][oc of the panel], summed in double and rounded once. `weight` is OI.
int64_t strassen_weight_size(const StrassenPlan& plan);
void pack_strassen_weight(const StrassenPlan& plan, const float* weight, float* packed);

// A part of an image: `pixels` pixels from args.src on to those from args.dst on. With workspace_size floats of
// workspace.
void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace);

// Operations at the peak that take as long as that for so many pixels.
double strassen_work(const StrassenPlan& plan, double pixels, const TileKernels& tiles, const Target& target);

}  // namespace neo
