#pragma once

#include <vector>

#include "base/function_ref.h"
#include "routines/gpu/channels.h"
#include "routines/gpu/conv/tiled_conv.h"
#include "routines/gpu/int8/codes.h"

namespace neo::gpu {

// A product of codes by packed weights, as TiledConv: the windows of the input are gathered into local memory, in words
// of four neighbouring channels whose products are summed together (kernel::Op::Dot4). A product of matrices is a
// convolution without spatial axes, whose pixels are the rows. Codes without a sign are held less 128.
// The depth of a schedule counts words.
struct CodesProduct {
  ConvGeometry geometry;                      // a product of matrices has no axes
  int64_t in_together = 1, out_together = 1;  // channels, as of channels.h; 1, 4 or all of them
  bool x_is_signed = false;
  int32_t x_zero = 0;
  bool row_sums = false;  // weights are less than they should be, by the shift of their channel
  CodesForm form;
  CodesResult result;
  Places places;

  int64_t group_ic() const { return geometry.ic / geometry.groups; }
  int64_t group_oc() const { return geometry.oc / geometry.groups; }
  int64_t tap_words() const { return (group_ic() + 3) / 4; }
  int64_t words() const { return tap_words() * geometry.taps(); }  // that an output sums
  // Whether four channels are a word of memory.
  bool reads_words() const { return in_together == 4 || (in_together == kAllChannels && group_ic() % 4 == 0); }
  int32_t middle() const { return x_is_signed ? 0 : 128; }
};

const char* reject_codes_product(const CodesProduct& product);
// The schedules that have one of `kinds`, which differ in how operands are held.
Space codes_product_space(const CodesProduct& product, int64_t plane, const std::vector<Schedule>& kinds);
bool allows_codes_schedule(const CodesProduct& product, const TiledConvSchedule& schedule);
// `plane`: the pixels of an image; `has_dots`: whether the device has an instruction for words.
Profile codes_product_profile(const CodesProduct& product, const TiledConvSchedule& schedule, int64_t images,
                              int64_t in_plane, int64_t plane, bool has_dots);

// weight(channel, input channel of the group, tap): [channel][word] with the codes' bytes.
void pack_codes_weights(const CodesProduct& product, FunctionRef<int32_t(int64_t, int64_t, int64_t)> weight,
                        int32_t* to);

// Packed constants: the weights, the columns, then the table if there is one.
class CodesProductProgram final : public Program {
 public:
  CodesProductProgram(CodesProduct product, const TiledConvSchedule& schedule);
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override;

 private:
  CodesProduct product_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace neo::gpu
