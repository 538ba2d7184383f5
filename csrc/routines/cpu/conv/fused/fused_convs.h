#pragma once

// Chains of convolutions on NCHW[x]c, x the vector width, whose inner images stay in the private cache: a depthwise
// convolution with a pointwise one (1x1) before it, behind it, or both (the inverted residual of MobileNet v2); before
// it there may also be the first layer of a network, which reads NCHW. A task makes a strip of rows of the result. Rows
// of the expansion, as both are called that may stand before, live in a ring, so that a member of a team that does one
// strip after the other computes each of them once. Tasks of a small image may share it instead: each makes some
// channels of all depthwise rows; when all are done, it projects some pixels. No row is expanded twice then, and parts
// are even whatever the number of rows.

#include <stdint.h>

#include "routines/cpu/conv/depthwise/depthwise.h"
#include "routines/cpu/conv/direct/direct_nchw.h"
#include "routines/cpu/gemm/strassen.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

enum class Expansion : uint8_t { None, Pointwise, Stem };

struct ChainShape {
  Expansion expansion = Expansion::None;  // the convolution before the depthwise one
  bool project = false;                   // a pointwise convolution behind it
  ConvShape depthwise;                    // its input is the expanded image
  ConvShape stem;                         // the expansion, where it is one
  int64_t ic = 0;                         // channels of the chain's input, output
  int64_t oc = 0;
  int64_t strassen = 0;  // levels of Strassen's algorithm for the projection
  bool shared = false;   // the depthwise rows of an image that is alone are the tasks' in common

  bool shares_rows() const { return shared && depthwise.n == 1; }
  bool projects_alone() const { return project && !shares_rows(); }  // a task does what it makes
  bool expands() const { return expansion != Expansion::None; }
  bool has_stem() const { return expansion == Expansion::Stem; }
  int64_t taps() const { return has_stem() ? stem.taps() : 1; }  // of the expansion
};

// One pointwise convolution in register blocks: panels of vectors of output channels, as even as can be; of tasks that
// share the panels, each gets as many vectors.
struct PanelSplit {
  int64_t vectors = 0;
  int64_t panels = 0;
  int64_t shares = 1;  // neighbouring panels, as many in each
};

// The facts that the shape decides. Plain bytes, made by plan_chain.
struct ChainPlan {
  ChainShape shape;
  int64_t lanes = 0;
  PanelSplit inner;                           // of the depthwise channels, in the order in which they are computed
  PanelSplit outer;                           // of the output channels of a direct projection
  StrassenPlan strassen;                      // of another one
  DirectNchwPlan stem;                        // of an expansion that is one: how its input is read
  int64_t strip = 0;                          // output rows that are computed together
  int64_t ring_rows = 0, ring_vector = 0;     // rows that the ring holds; floats from vector to vector
  int64_t strip_vector = 0;                   // the same of the strip of depthwise rows that the projection reads
  int64_t shared_size = 0;                    // floats of that of all tasks; 0: each has its own
  int64_t chunks = 0;                         // tasks per image and panel chunk
  int64_t panel_chunk = 0, panel_chunks = 0;  // inner panels per task: all, or one where tasks may split them
  int64_t tasks = 0;
  int64_t workspace_size = 0;  // floats that a member of the team uses
};

struct ChainKernels {
  const TileKernels* tiles = nullptr;
  const DepthwiseKernels* depthwise = nullptr;
  const StrassenKernels* strassen = nullptr;
  const RowKernels* rows = nullptr;
};

// Applied to the sums of one convolution before the next: a clamp, then an activation.
struct ChainStage {
  const float* weight = nullptr;
  const float* bias = nullptr;  // padded to whole vectors, or null
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

struct ChainArgs {
  ChainStage expand, depthwise, project;
  const float* src = nullptr;
  int64_t src_batch = 0, src_block = 0;  // of a first layer's input: from channel to channel
  const float* residual = nullptr;  // as dst, added before the last clamp, or null; only with a projection; may be dst
  int64_t residual_batch = 0, residual_block = 0;
  float* dst = nullptr;
  int64_t dst_batch = 0, dst_block = 0;
  Span<const float> later;  // constants of a later step, fetched beside a projection by Strassen's algorithm
};

// Strips for `wanted` members of a team or more, if the shape has as many parts; `cache_bytes`: of the private cache
// that a member may fill.
ChainPlan plan_chain(const ChainShape& shape, const ChainKernels& kernels, int64_t wanted, int64_t cache_bytes);

// [panel][input channel][output channel of the panel], padding lanes zero; `weight` is OI. A first layer has each
// tap of a channel as a channel.
int64_t pointwise_weight_size(const PanelSplit& split, int64_t ic, int64_t lanes);
void pack_pointwise_weight(const PanelSplit& split, int64_t oc, int64_t ic, int64_t lanes, const float* weight,
                           float* packed);

// State that a member of the team keeps between its tasks of one run.
struct ChainMember {
  float* workspace = nullptr;  // workspace_size floats
  int64_t task = -1;           // the last one that it did
  int64_t expanded = 0;        // rows of the image that were expanded by then
};

// Tasks that share nothing.
void run_chain(const ChainPlan& plan, const ChainKernels& kernels, const ChainArgs& args, int64_t task_begin,
               int64_t task_end, ChainMember& member);

// The phases of tasks that share shared_size floats, of which the second begins when all tasks of the first are done.
constexpr int64_t kSharedPhases = 2;
void run_shared_chain(const ChainPlan& plan, const ChainKernels& kernels, const ChainArgs& args, int64_t phase,
                      int64_t task, float* shared, float* workspace);

}  // namespace neo
