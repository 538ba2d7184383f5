#pragma once

// Chains of convolutions of 8-bit codes on NCHW[lanes]c whose inner images stay in the private cache: a depthwise
// convolution with a pointwise one (1x1) before it, behind it, or both (the inverted residual of MobileNet v2), or
// alone. The codes between two of them are rounded as the model says, so that results are those of the separate steps.
//
// Codes on the way to the depthwise convolution are held as float32 numbers from the zero point on, in a ring of rows
// of a few vectors of channels: the float32 kernel sums products of so few taps exactly, and nothing is packed or
// unpacked. Its results are a strip of codes, which the pointwise convolution behind it reads. A task makes a strip of
// rows of the result, or the tasks of a small image share one strip: each makes some channels of it; when all are done,
// it projects some pixels.

#include <stdint.h>

#include "routines/cpu/conv/depthwise/depthwise.h"
#include "routines/cpu/int8/dot_conv.h"
#include "routines/cpu/int8/fused_codes.h"

namespace neo {

// Vectors of channels of a register block, and of a ring.
constexpr int64_t kChainVectors = 2;
// Pixels whose sums or codes stay in the nearest cache while they become others.
constexpr int64_t kChainPixels = 56;

struct CodesChainParts {
  const DotKernels* dot = nullptr;
  const DepthwiseKernels* depthwise = nullptr;
  const CodesChainKernels* chain = nullptr;
};

struct CodesChainShape {
  bool expands = false;                             // a pointwise convolution before the depthwise one
  bool projects = false;                            // one behind it
  ConvShape depthwise;                              // its input is the expanded image
  int64_t ic = 0, oc = 0;                           // of the chain
  bool x_is_bytes = false, strip_is_bytes = false;  // the codes are bytes of words as they are
  bool shared = false;                              // the strip of an image that is alone is the tasks' in common

  bool shares_strip() const { return shared && projects && depthwise.n == 1; }
};

// The facts that the shape decides. Plain bytes, made by plan_codes_chain.
struct CodesChainPlan {
  CodesChainShape shape;
  int64_t lanes = 0;
  DotPlan expand, project;                 // how their weights are packed
  int64_t vectors = 0, panels = 0;         // of the depthwise channels
  int64_t strip = 0, band = 0;             // output rows of a task; that are computed together
  int64_t ring_rows = 0, ring_vector = 0;  // floats from vector to vector
  int64_t strip_vector = 0;                // bytes likewise, of the strip
  int64_t panel_parts = 1, chunks = 0;     // tasks per image
  int64_t tasks = 0;
  // In bytes, of the workspace of a member of the team: words of the chain's input, the ring, a band's sums, words of
  // the strip, the strip.
  int64_t ring_at = 0, sums_at = 0, words_at = 0, strip_at = 0, workspace_bytes = 0;
  int64_t shared_bytes = 0;  // of the strip, where it is all tasks'

  bool projects_alone() const { return shape.projects && !shape.shares_strip(); }  // a task does what it makes
};

// One convolution of a chain.
struct CodesChainStage {
  DotResult result;
  const int32_t* weight = nullptr;  // of a pointwise one
  // That the result's codes go through, or null; a HardSwish before a convolution is no table.
  const CodeTable* table = nullptr;
  const CodesHardSwish* hard_swish = nullptr;
};

// Codes as a convolution reads them.
struct CodesView {
  int32_t zero = 0;
  bool is_signed = false;
};

struct CodesChainArgs {
  CodesChainStage expand, depthwise, project;
  CodesView x, inner, strip;  // of the chain, the depthwise convolution, the projection
  const float* depthwise_weight = nullptr;
  const float* depthwise_init = nullptr;  // of the sums
  const uint8_t* src = nullptr;
  int64_t src_batch = 0, src_block = 0;
  const uint8_t* residual = nullptr;  // as dst, or null
  int64_t residual_batch = 0, residual_block = 0;
  uint8_t* dst = nullptr;
  int64_t dst_batch = 0, dst_block = 0;
};

// Tasks for `wanted` members of a team or more, if the shape has as many parts; `cache_bytes`: of the private cache
// that a member may fill.
CodesChainPlan plan_codes_chain(const CodesChainShape& shape, const CodesChainParts& parts, int64_t wanted,
                                int64_t cache_bytes);

// Tasks that share nothing.
void run_codes_chain(const CodesChainPlan& plan, const CodesChainParts& parts, const CodesChainArgs& args,
                     int64_t task_begin, int64_t task_end, uint8_t* workspace);

// The phases of tasks that share a strip, of which the second begins when all tasks of the first are done.
constexpr int64_t kCodesChainPhases = 2;
void run_shared_codes_chain(const CodesChainPlan& plan, const CodesChainParts& parts, const CodesChainArgs& args,
                            int64_t phase, int64_t task, uint8_t* strip, uint8_t* workspace);

}  // namespace neo
