#pragma once

// Transposed convolution by Winograd's algorithm, NCHW[x]c to NCHW[x]c with x the vector width: all residues of the
// outputs modulo the stride are output channels of one convolution of stride one, over as many taps as reach an output,
// whose results a second loop puts between each other.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/transposed/transposed_depthwise.h"
#include "routines/cpu/conv/winograd/winograd.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

struct SubpixelWinogradPlan {
  Im2colConvShape shape;
  WinogradPlan winograd;  // of subpixel_conv()
  int64_t lanes = 0;
  int64_t vectors = 0;     // of output channels of a residue
  int64_t sums_size = 0;   // floats of the convolution's results
  int64_t line_chunk = 0;  // output rows per task of the second loop
  int64_t line_chunks = 0;
  int64_t tasks = 0;  // of the second loop
};

// Null where the routine takes the problem; else why not.
const char* reject_subpixel_winograd(const Im2colConvShape& shape, int64_t lanes);
// The convolution of all residues: result u of residue c is output u * stride + c - pad.
ConvShape subpixel_conv(const Im2colConvShape& shape, int64_t lanes);
SubpixelWinogradPlan plan_subpixel_winograd(const Im2colConvShape& shape, const WinogradSchedule& schedule,
                                            int64_t lanes);

// As winograd.h packs the weights of subpixel_conv(); `weight` is I O K....
void pack_subpixel_winograd_weight(const SubpixelWinogradPlan& plan, const WinogradKernels& kernels,
                                   const float* weight, float* packed);

// The second loop; `sums` are the convolution's results, without bias and epilogue.
void spread_residues(const SubpixelWinogradPlan& plan, const TransposedDepthwiseKernels& kernels, const float* sums,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end);

}  // namespace neo
