#pragma once

#include <vector>

#include "routines/gpu/conv/direct_conv.h"
#include "routines/patterns/winograd_form.h"

namespace neo::gpu {

inline constexpr int kWinogradMostWorkers = 16;

// A convolution by Winograd's algorithm (Lavin & Gray 2015) on NCHW[x]c: the input's tiles are transformed, one product
// for every point of the transform follows, and the products of a tile are transformed to its outputs. The product is a
// convolution of 1x1 with a group for every point, over the tiles as pixels.
struct WinogradConv {
  ConvGeometry geometry;
  int block = 4;  // channels of a block of the input's and the output's layout
  ResultForm result;
  Places places;

  int64_t in_blocks() const;
  int64_t out_blocks() const;
};

// How one is run: as three launches, or as one in which a thread takes a block of tiles through all three parts, a
// panel of output channels after the other, so that what is transformed stays in its cache.
struct WinogradSchedule {
  int tile = 4;                // outputs of a tile along an axis
  DirectConvSchedule product;  // its columns are tiles
  int width = 4;               // channels of a transform's vector; divides the block
  int threads = 16;            // of a group of the transforms; three launches
  int steps = 0;               // register blocks of tiles of a block; 0: three launches
  int workers = 1;             // threads that share the blocks
  int parts = 1;               // threads that share the panels of a block

  bool is_fused() const { return steps > 0; }
  int64_t block_tiles() const { return int64_t{steps} * product.columns; }
  int64_t panel() const { return int64_t{product.vectors} * product.lanes; }

  static WinogradSchedule of(const Schedule& schedule);
};

// The sizes of a call.
struct WinogradSizes {
  ConvShape shape;
  WinogradAxis h, w;

  WinogradSizes(const ConvShape& shape, int64_t tile);
  int64_t points() const { return h.points() * w.points(); }
  int64_t tiles() const { return shape.n * h.tiles * w.tiles; }
};

// Why not; null where it can.
const char* reject_winograd_conv(const WinogradConv& conv);
const char* reject_winograd_schedule(const WinogradConv& conv, const WinogradSchedule& schedule);

// All schedules for sizes that are known, of the one way or of the other.
Space winograd_space(const WinogradConv& conv, const ConvShape& shape, bool fused);

// The product of the tiles' transforms, and the dims of an operand of so many channels at each point.
DirectConv winograd_product(const WinogradConv& conv, int64_t points);
Dims winograd_product_dims(int64_t channels, const WinogradSizes& sizes);

int64_t winograd_weight_size(const WinogradConv& conv, const WinogradSchedule& schedule);
void pack_winograd_weight(const WinogradConv& conv, const WinogradSchedule& schedule, const float* from, float* to);
int64_t winograd_bias_size(const WinogradConv& conv);

// Packed constants: the weights, then the bias, filled up to whole blocks, if there is one.
class WinogradProgram final : public Program {
 public:
  WinogradProgram(WinogradConv conv, const WinogradSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  Launches fused_launches(const WinogradSizes& sizes) const;
  Launches separate_launches(const WinogradSizes& sizes) const;

  WinogradConv conv_;
  WinogradSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;  // all in one; or those of the input, the products and the output
};

kernel::Kernel winograd_input_kernel(const WinogradConv& conv, const WinogradSchedule& schedule);
kernel::Kernel winograd_output_kernel(const WinogradConv& conv, const WinogradSchedule& schedule);
kernel::Kernel winograd_fused_kernel(const WinogradConv& conv, const WinogradSchedule& schedule);

}  // namespace neo::gpu
