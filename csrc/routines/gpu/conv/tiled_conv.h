#pragma once

#include <vector>

#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/gemm/block_product.h"

namespace neo::gpu {

// A convolution, or a transposed one, of one to three spatial axes as a product of the weights and of the windows of
// the input, which are gathered into local memory as they are needed: a group makes threads_channel x channels output
// channels of threads_pixel x pixels pixels. Plain layouts; weights as they come, so also at run time. Takes whatever
// there is. The channels are the rows of a block product, the pixels its columns.
struct TiledConvSchedule {
  int threads_pixel = 16;
  int threads_channel = 8;
  int pixels = 4;    // of one thread
  int channels = 4;  // of one thread
  int depth = 8;   // products of an output between two barriers; a multiple of both numbers of threads, or divides them
  int unroll = 0;  // 1: those are written out

  static TiledConvSchedule of(const Schedule& schedule);
  static TiledConvSchedule of(std::span<const int64_t> values);  // of a point of its space
};

struct TiledConv {
  ConvGeometry geometry;
  ResultForm result;
  Places places;  // weight and bias < 0: packed constants, the weights first
  bool by_matrices = false;
};

const char* reject_tiled_schedule(const TiledConv& conv, const TiledConvSchedule& schedule);
BlockShape tiled_block(const TiledConv& conv, const TiledConvSchedule& schedule);
// Floats of local memory.
int64_t tiled_local_size(const TiledConv& conv, const TiledConvSchedule& schedule);
Space tiled_conv_space(const TiledConv& conv, const Dims& out);

class TiledConvProgram final : public Program {
 public:
  TiledConvProgram(TiledConv conv, const TiledConvSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  TiledConv conv_;
  TiledConvSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;
};

kernel::Kernel tiled_conv_kernel(const TiledConv& conv, const TiledConvSchedule& schedule);

}  // namespace neo::gpu
