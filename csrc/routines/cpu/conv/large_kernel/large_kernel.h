#pragma once

// Convolution whose kernel is about as large as its image, so that few pixels come out of long sums: the gradient of a
// convolution's weights, a correlation with a template. Images lie in the lanes: lines of the input are transposed to
// [line][pixel][image], where the columns of a product are the (pixel, image) pairs of an output row, its rows are
// output channels, and its sums run over the kernel as it lies in memory. Plain layouts; the sums are cut into slices
// that are added in a fixed order.

#include <stdint.h>

#include "base/int_math.h"
#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/microkernel/pack.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

struct LargeKernelPlan {
  Im2colConvShape shape;
  int64_t lanes = 0;
  int64_t image_block = 0, image_blocks = 0;      // images whose pixels a task multiplies
  int64_t channel_block = 0, channel_blocks = 0;  // output channels of a task
  int64_t y_block = 0, x_block = 0;               // lines and columns of the kernel that are summed at once
  int64_t slices = 0;                             // parts of the sums
  int64_t tasks = 0;                              // of groups, blocks of channels, blocks of images and slices
  int64_t row_width = 0;                          // floats of an output channel in a task's sums
  int64_t workspace_size = 0;                     // floats that a task uses

  int64_t block_size() const { return channel_block * row_width; }  // floats of a task's sums
  int64_t sums_size() const { return tasks * block_size(); }
  // Parts of the kernel, each of one input channel.
  int64_t y_blocks() const { return ceil_div(shape.kernel[1], y_block); }
  int64_t x_blocks() const { return ceil_div(shape.kernel[2], x_block); }
  int64_t parts() const { return shape.group_ic() * shape.kernel[0] * y_blocks() * x_blocks(); }
  // Whether the transposed lines are the product's columns as they are.
  bool reads_lines() const;
  // Lines and columns of the input that a part of the kernel reads.
  int64_t lines(int64_t y_count) const { return reach(1, y_count); }
  int64_t line_width(int64_t x_count) const { return reach(2, x_count); }

 private:
  int64_t reach(int axis, int64_t count) const {
    return (count - 1) * shape.dilation[axis] + (shape.out[axis] - 1) * shape.stride[axis] + 1;
  }
};

LargeKernelPlan plan_large_kernel(const Im2colConvShape& shape, int64_t lanes);

// Sums of tasks, each in its block of `sums`.
void sum_large_kernel(const LargeKernelPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels,
                      const ConvOperands& args, int64_t task_begin, int64_t task_end, float* sums, float* workspace);

// The slices' sums of some output channels of all groups, with bias and clamp, to where they belong.
void finish_large_kernel(const LargeKernelPlan& plan, const ConvOperands& args, const float* sums, IndexRange channels);

}  // namespace neo
