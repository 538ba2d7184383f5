#pragma once

// Winograd convolution F(m, r) on NCHW[x]c with x the vector width. An axis with a kernel of r = 2 to 7 taps is cut
// into tiles of m pixels, each the transform of m + r - 1 products between transformed input and transformed weights,
// summed over the input channels: m + r - 1 multiplications in place of r m. Both axes are transformed one after the
// other; an axis with a kernel of one tap has tiles of one pixel and is left alone. A task takes a block of tiles
// through input transform, products (the tile kernels of GEMM) and output transform, so that what is transformed stays
// in the cache of its core. First layers with a stride read NCHW and fold it, see winograd_fold.h.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"
#include "routines/patterns/winograd_axis.h"

namespace neo {

// The end of the last transform of a tile: dst = clamp(sum + bias + residual). The last block has `last_lanes`
// channels, the rest of its lanes is made zero.
struct WinogradEpilogue {
  const float* bias = nullptr;      // one vector per block, dense, or null
  const float* residual = nullptr;  // or null; steps and lines as those of dst
  int64_t residual_block = 0;
  int64_t last_lanes = 0;
  float lo = 0.0f, hi = 0.0f;
};

// Pixels of a tile in each block, which are fetched while it is transformed: images lie in far caches.
struct WinogradResults {
  const float* dst = nullptr;
  const float* residual = nullptr;  // or null; rows as those of dst
  int64_t row = 0, dst_block = 0, residual_block = 0;
  int64_t rows = 0, columns = 0;
};

// Transforms lines of vectors along one axis: element i of a line is at src + first + i * src_step.
struct WinogradPass {
  const float* src = nullptr;
  int64_t first = 0;  // offset of element 0, which may lie outside of what there is
  int64_t src_step = 0, src_line = 0, src_block = 0;
  float* dst = nullptr;
  int64_t dst_step = 0, dst_line = 0, dst_block = 0;
  int64_t lines = 1, blocks = 1;
  // Elements of the input outside this range are zero and not read; those of the output are dropped.
  int64_t begin = 0, end = 0;
  // Passes over the input prefetch at these distances, in floats, from what is read and from the line written; 0: none.
  int64_t prefetched = 0, dst_prefetch = 0;
  // Memory that the last pass over the output writes and adds, fetched beside that of its first axis; or null.
  const WinogradResults* results = nullptr;
  const WinogradEpilogue* epilogue = nullptr;  // of the output, after its last axis
};

// Products of F(4, 3) along both axes for four tiles, one vector of output channels and some input channels, whose
// weights are packed as their nine taps and transformed beside the products: of 36 weights per pair of channels few
// tiles would wait for memory.
constexpr int kWinogradRawTaps = 9;
struct WinogradRaw {
  const float* src = nullptr;  // transformed input of the first tile
  int64_t src_point = 0, src_tile = 0;
  const float* weight = nullptr;  // [channel][tap][lane]
  int64_t channels = 0;
  const float* prefetched = nullptr;  // what is fetched meanwhile, not more than a sixth beyond as many weights
  float* dst = nullptr;               // sums, added to
  int64_t dst_point = 0, dst_tile = 0;
};

// The transforms of one instruction set, by the stride and the pairs of points of an axis, `output` also by the outputs
// of a tile.
struct WinogradKernels {
  int lanes;
  void (*input[kWinogradMaxStride + 1][kWinogradMaxPairs + 1])(const WinogradPass&);
  void (*output[kWinogradMaxStride + 1][kWinogradMaxPairs + 1][kWinogradMaxTile + 1])(const WinogradPass&);
  // Input transform of a last tile that has fewer pairs, by the stride, the pairs of others and its own; it skips the
  // places of points that it leaves out.
  void (*last_input[kWinogradMaxStride + 1][kWinogradMaxLastPairs + 1][kWinogradMaxLastPairs])(const WinogradPass&);
  void (*last_output[kWinogradMaxStride + 1][kWinogradMaxLastPairs + 1][kWinogradMaxLastPairs])(const WinogradPass&);
  // Lines of results to the largest of every 2x2, with the epilogue; a line of the output is of two.
  void (*pool)(const WinogradPass&);
  // Input transform for weights that are packed as taps; null where registers are few.
  void (*raw_input)(const WinogradPass&);
  void (*multiply_raw)(const WinogradRaw&);
  // Transforms the weights along one axis, and then along the other: to = the sum over `taps` of g[k] times the row of
  // `width` at from + k * step.
  void (*weight_half)(int64_t taps, const double* g, const double* from, int64_t step, int64_t width, double* to);
  void (*weight_whole)(int64_t taps, const double* g, const double* from, int64_t step, int64_t width, float* to);
};

namespace scalar {
const WinogradKernels& winograd_kernels();
}
namespace avx2 {
const WinogradKernels& winograd_kernels();
}
namespace avx512 {
const WinogradKernels& winograd_kernels();
}
namespace neon {
const WinogradKernels& winograd_kernels();
}

// One point of the schedule space.
struct WinogradSchedule {
  int64_t tile = 4;    // m + m % 2, see winograd_axis_tile()
  int64_t panels = 1;  // of output channels, at most kTileVectors vectors each
  int64_t block = 1;   // most tiles per task
  // 0: chosen by the shape.
  int64_t parts = 0;  // tasks that share a block's panels
  int64_t run = 0;    // neighbouring tiles that are transformed together
  int64_t raw = 0;    // 1: weights are packed as their taps and transformed beside the products
};

// The facts that shape and schedule decide. Plain bytes, made by plan_winograd.
struct WinogradPlan {
  ConvShape source;  // as the problem has it
  ConvShape shape;   // the same folded: what the transforms see
  WinogradSchedule schedule;
  int64_t lanes = 0;
  int64_t fold = 1;
  WinogradAxis h, w;
  int64_t points = 0;   // of both axes
  int64_t weights = 0;  // points whose weights differ
  int64_t ic_vectors = 0, oc_vectors = 0;
  int64_t panels = 0;                          // of output channels
  int64_t panel_width = 0;                     // channels of the widest
  int64_t tiles = 0;                           // of all images
  int64_t products = 0;                        // multiplications of all images per pair of channels
  int64_t blocks = 0;                          // of tiles
  int64_t panel_parts = 0;                     // tasks per block
  int64_t tile_stride = 0, input_point = 0;    // floats between tiles and between points of the transformed input
  int64_t product_row = 0, product_point = 0;  // the same of the products
  bool is_in_place = false;                    // the products are
  int64_t first_product = 0, first_half = 0;   // where in the workspace are the products, and what follows them
  int64_t run = 0;                             // most neighbouring tiles that are transformed together along h
  int64_t run_vectors = 0;                     // of input channels, transformed together
  int64_t half = 0;                            // floats that are transformed along one axis
  int64_t window = 0;                          // floats that are folded at once
  bool pools = false;                          // stores the largest of every 2x2 results
  int64_t workspace_size = 0;                  // floats per member of the team
  int64_t tasks = 0;                           // fixed by shape and schedule

  bool is_raw() const { return schedule.raw != 0; }
  bool is_plane() const { return h.kernel > 1 && w.kernel > 1; }
  int64_t source_lanes() const { return fold > 1 ? 1 : lanes; }  // of the layout of the input
  int64_t run_columns(int64_t run_tiles) const { return (run_tiles - 1) * w.step() + w.points(); }
};

WinogradPlan plan_winograd(const ConvShape& shape, const WinogradSchedule& schedule, int64_t lanes);

// Whether the largest of every 2x2 results can be stored.
bool takes_pool(const ConvShape& shape);

// Whether the weights of a shape can be packed as taps, for these tiles.
bool takes_raw_weights(const ConvShape& shape, int64_t tile);

// Packed weights: [panel][weights][ic][oc of the panel], output channels padded with zeros; computed in double, rounded
// once. As taps: [vector of oc][ic][tap]. `weight` is OIHW.
int64_t winograd_weight_size(const WinogradPlan& plan);
void pack_winograd_weight(const WinogradPlan& plan, const WinogradKernels& kernels, const float* weight, float* packed);

// State that a member of the team keeps between its tasks of one run.
struct WinogradMember {
  float* workspace = nullptr;  // workspace_size floats
  int64_t block = -1;          // whose transformed input the workspace holds; -1: none
};

void run_winograd(const WinogradPlan& plan, const WinogradKernels& kernels, const TileKernels& tiles,
                  const ConvOperands& args, int64_t task_begin, int64_t task_end, WinogradMember& member);

}  // namespace neo
