#pragma once

// Winograd convolution F(m, 3) in two dimensions: 3x3, stride 1, on NCHW[x]c with x the vector width. An output tile of
// m x m pixels is the transform of (m + 2)^2 products between transformed input and transformed weights, summed over
// the input channels: (m + 2)^2 multiplications in place of 9 m^2. A task takes a block of tiles through input
// transform, products (the tile kernels of GEMM) and output transform, so that what is transformed stays in the cache
// of its core.
//
// The transforms interpolate at 0, +-points and infinity, which makes rounding errors grow with m; see
// winograd_error(). An infinity or not-a-number in the input reaches every pixel of the tiles that read it.

#include <stdint.h>

#include "routines/cpu/conv/conv_shape.h"
#include "routines/cpu/gemm/tile.h"

namespace neo {

// The positive interpolation points of F(2, 3), F(4, 3) and F(6, 3): near those of least error that are short binary
// fractions, which keeps most constants of the transforms exact.
constexpr double kWinogradPoints2[1] = {1};
constexpr double kWinogradPoints4[2] = {0.625, 1.5};
constexpr double kWinogradPoints6[3] = {0.5, 1, 2};
constexpr int kWinogradMaxPairs = 3;
constexpr int kWinogradMaxPoints = 2 * kWinogradMaxPairs + 2;

// One tile of the input: dst[point][block] = B' d B per vector of channels. Positions outside [top, bottom) x
// [left, right) of the (m + 2)^2 patch are padding and not read.
struct WinogradInput {
  const float* src = nullptr;  // of the image
  int64_t first = 0;           // offset of the patch's corner, which may lie outside
  int64_t row = 0;             // floats from one row to the next
  int64_t blocks = 0;          // of channels
  int64_t block = 0;           // floats from one to the next
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  float* dst = nullptr;  // blocks are dense
  int64_t dst_point = 0;
};

// One tile of the output: dst = clamp(A' src A + bias + residual) in its first rows x columns pixels. The last vector
// has `last_lanes` channels, the rest of its lanes is made zero.
struct WinogradOutput {
  const float* src = nullptr;  // vectors are dense
  int64_t src_point = 0;
  int64_t vectors = 0;
  int64_t last_lanes = 0;
  const float* bias = nullptr;  // dense vectors, or null
  const float* residual = nullptr;
  int64_t residual_block = 0;
  float* dst = nullptr;
  int64_t dst_block = 0;
  int64_t row = 0;  // floats from one row of dst and residual to the next
  int64_t rows = 0, columns = 0;
  float lo = 0.0f, hi = 0.0f;
};

// The transforms of one instruction set, by m / 2.
struct WinogradKernels {
  int lanes;
  void (*input[kWinogradMaxPairs + 1])(const WinogradInput&);
  void (*output[kWinogradMaxPairs + 1])(const WinogradOutput&);
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
  int64_t tile = 4;        // m: 2, 4 or 6
  int64_t oc_vectors = 4;  // vectors of output channels per register block, 1 ... 4
  int64_t block = 1;       // most tiles per task
};

// What the shape and the schedule decide. Plain bytes, made by plan_winograd.
struct WinogradPlan {
  ConvShape shape;
  WinogradSchedule schedule;
  int64_t lanes = 0;
  int64_t points = 0;  // (m + 2)^2
  int64_t ic_vectors = 0, oc_vectors = 0;
  int64_t panels = 0;  // of output channels, at most schedule.oc_vectors vectors each
  int64_t tiles_h = 0, tiles_w = 0;
  int64_t tiles = 0;                           // of all images
  int64_t blocks = 0;                          // of tiles
  int64_t panel_parts = 0;                     // tasks per block
  int64_t tile_stride = 0, input_point = 0;    // floats between tiles and between points of the transformed input
  int64_t product_row = 0, product_point = 0;  // the same of the products
  int64_t workspace_size = 0;                  // floats per member of the team
  int64_t tasks = 0;                           // fixed by shape and schedule
};

// Strides are in elements.
struct WinogradArgs {
  const float* src = nullptr;
  int64_t src_batch = 0, src_block = 0;
  const float* weight = nullptr;    // pack_winograd_weight
  const float* bias = nullptr;      // padded to whole vectors, or null
  const float* residual = nullptr;  // blocked like dst, or null; may be dst
  int64_t residual_batch = 0, residual_block = 0;
  float* dst = nullptr;
  int64_t dst_batch = 0, dst_block = 0;
  float lo = 0.0f, hi = 0.0f;  // -inf and +inf where there is no clamp
};

// Null where the routine takes the problem; else why not.
const char* reject_winograd(const ConvShape& shape);

WinogradPlan plan_winograd(const ConvShape& shape, const WinogradSchedule& schedule, int64_t lanes);

// Packed weights: [panel][point][ic][oc of the panel], output channels padded with zeros; computed in double, rounded
// once. `weight` is OIHW.
int64_t winograd_weight_size(const WinogradPlan& plan);
void pack_winograd_weight(const WinogradPlan& plan, const float* weight, float* packed);

// Root of the mean square error against float64 on normal data, in units of the direct method's: measured over 4 to
// 512 input channels, 10 % added. Many channels take most roundings of the direct method; where values are positive, as
// behind a Relu, both sums round more and the ratio is 0.6 of this.
//
//   input channels      4     16     64    256    512
//   F(2, 3)          1.10   0.75   0.61   0.57   0.57
//   F(4, 3)          3.5    2.3    1.8    1.6    1.7
//   F(6, 3)         14.9    9.8    7.8    7.0    7.2
double winograd_error(int64_t tile, int64_t ic);

// What a member of the team keeps between its tasks of one run.
struct WinogradMember {
  float* workspace = nullptr;  // workspace_size floats
  int64_t block = -1;          // whose transformed input the workspace holds; -1: none
};

void run_winograd(const WinogradPlan& plan, const WinogradKernels& kernels, const TileKernels& tiles,
                  const WinogradArgs& args, int64_t task_begin, int64_t task_end, WinogradMember& member);

}  // namespace neo
