#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "routines/gpu/gemm/result.h"
#include "routines/patterns/conv_problem.h"
#include "routines/routine.h"
#include "routines/space.h"

namespace neo::gpu {

// The places of a step's operands among those of the program; -1: none.
struct Places {
  int x = 0;
  int weight = -1;  // at run time
  int bias = -1;
  int residual = -1;
  int y = 1;
};

// A convolution of one or two spatial axes by spatial packing: each thread makes `rows` x `columns` pixels of `vectors`
// x `lanes` output channels in registers; packed weights are read in whole vectors. Tensors are NCHW, NCHW[x]c or NHWC.
// Padding is tested where a thread's windows leave the input; nothing is copied.
struct DirectConvSchedule {
  int lanes = 8;    // output channels of a vector: 4, 8, 16
  int vectors = 2;  // of output channels
  int columns = 4;  // pixels of an output row
  int rows = 1;     // output rows
  int inner = 1;    // input channels written out in the innermost loop; divides the input's block
  int load = 1;     // of them read as one vector; divides inner
  int reuse = 0;    // 1: the input pixels of a row are kept in registers for all taps of the row
  int unroll = 0;   // 0: taps of a row are a loop; 1: written out; 2: the rows of taps too
  int order = 0;    // of the groups, the fastest first: 0: columns, rows, channels; 1: channels, columns, rows
  int threads_column = 1;
  int threads_row = 1;
  int threads_channel = 1;
  int image = 0;  // 1: the input is read as an image, 2: the weights, 3: both

  bool input_is_image() const { return (image & 1) != 0; }
  bool weight_is_image() const { return (image & 2) != 0; }
  int weight_floats() const { return weight_is_image() ? kernel::kTexel.lanes : 1; }  // of an element

  static DirectConvSchedule of(const Schedule& schedule);
  static DirectConvSchedule of(std::span<const int64_t> values);  // of a point of its space
};

struct DirectConv {
  ConvGeometry geometry;  // not transposed, one or two spatial axes
  int in_block = 1;       // channels of a block of the input's layout; 1: NCHW
  int out_block = 1;
  bool in_last = false;   // the input's blocks lie behind the plane: NHWC, of whose channels the block is a divisor
  bool out_last = false;  // the same of the output and what is added
  ResultForm result;
  Places places;
  bool flat = false;  // 1 x 1 without stride or padding: the plane is one row
  // Of an image on the device at most, and of the input at the largest sizes that it may have; 0: no images.
  int64_t image_texels = 0, input_texels = 0;

  int64_t in_channels() const { return geometry.ic / geometry.groups; }  // of a group
  int64_t out_channels() const { return geometry.oc / geometry.groups; }
  int64_t in_blocks() const;
  int64_t out_blocks() const;
};

// Why not; null where it can.
const char* reject_direct(const DirectConv& conv);
const char* reject_direct_schedule(const DirectConv& conv, const DirectConvSchedule& schedule);
// Why the device lacks the images of a schedule that nothing else rejects; null where it has them.
const char* reject_direct_images(const DirectConv& conv, const DirectConvSchedule& schedule);

// All schedules for sizes that are known; `out` are the dims of the output.
Space direct_conv_space(const DirectConv& conv, const Dims& out);

// Floats of the packed weights [group][panel][block][ky][kx][channel][vectors x lanes], and of the bias.
int64_t direct_weight_size(const DirectConv& conv, const DirectConvSchedule& schedule);
int64_t direct_bias_size(const DirectConv& conv, const DirectConvSchedule& schedule);
void pack_direct_weight(const DirectConv& conv, const DirectConvSchedule& schedule, const float* from, float* to);
void pack_direct_bias(const DirectConv& conv, const DirectConvSchedule& schedule, const float* from, float* to);

// Packed constants: the weights, then the bias if there is one.
class DirectConvProgram final : public Program {
 public:
  DirectConvProgram(DirectConv conv, const DirectConvSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  DirectConv conv_;
  DirectConvSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;
};

kernel::Kernel direct_conv_kernel(const DirectConv& conv, const DirectConvSchedule& schedule);
// The launch of the kernel, for sizes that are not empty; `shapes` as of a program.
KernelLaunch direct_launch(const DirectConv& conv, const DirectConvSchedule& schedule, std::span<const Dims> shapes);

// For each of `load` channels, whose packed weights begin at the element `first`: adds its products with the pixels to
// the sums [row][column][vector].
void add_direct_products(kernel::Builder& b, const DirectConvSchedule& schedule, const kernel::Array& weights,
                         const kernel::Expr& first, const kernel::Array& sums,
                         FunctionRef<kernel::Expr(const kernel::Expr& row, const kernel::Expr& column)> pixel);

}  // namespace neo::gpu
