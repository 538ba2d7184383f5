#pragma once

#include <vector>

#include "routines/gpu/conv/direct_conv.h"

namespace neo::gpu {

// A depthwise convolution of one or two spatial axes: a thread makes rows x columns pixels of `lanes` channels. In NCHW
// a thread has one channel.
struct DepthwiseSchedule {
  int lanes = 4;  // channels of a vector; divides the block
  int columns = 4;
  int rows = 1;
  int reuse = 0;  // 1: the pixels of a row are kept in registers for all taps of the row
  int threads_column = 1;
  int threads_row = 1;

  static DepthwiseSchedule of(const Schedule& schedule);
  static DepthwiseSchedule of(std::span<const int64_t> values);  // of a point of its space
};

struct DepthwiseConv {
  ConvGeometry geometry;
  int block = 1;      // channels of a block of both layouts; 1: NCHW
  bool last = false;  // the blocks lie behind the plane: NHWC, of whose channels the block is a divisor
  ResultForm result;
  Places places;

  int64_t blocks() const;
};

const char* reject_depthwise(const DepthwiseConv& conv);
const char* reject_depthwise_schedule(const DepthwiseConv& conv, const DepthwiseSchedule& schedule);
Space depthwise_space(const DepthwiseConv& conv, const Dims& out);

// Floats of the weights [block][ky][kx][channel], and of a bias filled up to whole blocks.
int64_t depthwise_weight_size(const DepthwiseConv& conv);
void pack_depthwise_weight(const DepthwiseConv& conv, const float* from, float* to);

// Packed constants: the weights, then the bias if there is one.
class DepthwiseProgram final : public Program {
 public:
  DepthwiseProgram(DepthwiseConv conv, const DepthwiseSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  DepthwiseConv conv_;
  DepthwiseSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;
};

kernel::Kernel depthwise_kernel(const DepthwiseConv& conv, const DepthwiseSchedule& schedule);

}  // namespace neo::gpu
