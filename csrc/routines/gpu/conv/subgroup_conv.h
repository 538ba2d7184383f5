#pragma once

#include <optional>

#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// A convolution of one or two spatial axes in NCHW[x]c by subgroups of x threads. A subgroup makes `rows` x `columns`
// pixels of `vectors` blocks of output channels; a thread has one channel of each block. A block read brings one input
// channel of a pixel, or the weights of one output channel, to each thread; the channels of a pixel are handed round by
// shuffles. Depthwise: every thread keeps to its channel. A group is one subgroup, so that all conditions are its own.
struct SubgroupConvSchedule {
  int vectors = 1;  // blocks of output channels; depthwise: 1
  int columns = 4;  // pixels of an output row
  int rows = 1;     // output rows
  int load = 4;     // elements of a thread in one block read: 1, 2, 4, 8
  int reuse = 0;    // 1: the input pixels of a row are kept in registers for all taps of the row
  int unroll = 0;   // 1: taps of a row are written out
  int order = 0;    // of the groups, the fastest first: 0: columns, rows, channels; 1: channels, columns, rows

  static SubgroupConvSchedule of(const Schedule& schedule);
  static SubgroupConvSchedule of(std::span<const int64_t> values);  // of a point of its space
};

// `in_block` and `out_block` are the size of a subgroup: 8, 16 or 32.
const char* reject_subgroup(const DirectConv& conv);
const char* reject_subgroup_schedule(const DirectConv& conv, const SubgroupConvSchedule& schedule);
Space subgroup_conv_space(const DirectConv& conv, const Dims& out);

// Floats of the packed weights, [group][panel][block][ky][kx][channel][vectors x threads] or, depthwise,
// [block][ky][kx][threads], and of the bias, whose channels fill the panels up.
int64_t subgroup_weight_size(const DirectConv& conv, const SubgroupConvSchedule& schedule);
int64_t subgroup_bias_size(const DirectConv& conv, const SubgroupConvSchedule& schedule);
void pack_subgroup_weight(const DirectConv& conv, const SubgroupConvSchedule& schedule, const float* from, float* to);
void pack_subgroup_bias(const DirectConv& conv, const SubgroupConvSchedule& schedule, const float* from, float* to);

// Packed constants: the weights, then the bias if there is one.
class SubgroupConvProgram final : public Program {
 public:
  SubgroupConvProgram(DirectConv conv, const SubgroupConvSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  DirectConv conv_;
  SubgroupConvSchedule schedule_;
  std::vector<kernel::Kernel> kernels_;
};

kernel::Kernel subgroup_conv_kernel(const DirectConv& conv, const SubgroupConvSchedule& schedule);

Profile subgroup_profile(const DirectConv& conv, const SubgroupConvSchedule& schedule, const Dims& x, const Dims& y);

}  // namespace neo::gpu
