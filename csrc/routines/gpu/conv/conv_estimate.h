#pragma once

#include "routines/gpu/conv/depthwise_conv.h"
#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/conv/tiled_conv.h"
#include "routines/gpu/conv/winograd_conv.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// Profiles of the convolutions' kernels without building them; for sizes that are known.
Profile direct_profile(const DirectConv& conv, const DirectConvSchedule& schedule, const Dims& x, const Dims& y);
Profile tiled_profile(const TiledConv& conv, const TiledConvSchedule& schedule, const Dims& x, const Dims& y);
Profile depthwise_profile(const DepthwiseConv& conv, const DepthwiseSchedule& schedule, const Dims& x, const Dims& y);
// All launches together.
Estimate estimate_winograd(const WinogradConv& conv, const WinogradSchedule& schedule, const ConvShape& shape,
                           const DeviceModel& model);

// The schedule of a space that a device is expected to like best. Never one that it cannot run.
std::vector<Schedule> best_direct(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model);
std::vector<Schedule> best_tiled(const TiledConv& conv, const Dims& x, const Dims& y, const DeviceModel& model);
std::vector<Schedule> best_depthwise(const DepthwiseConv& conv, const Dims& x, const Dims& y, const DeviceModel& model);
std::vector<Schedule> best_subgroup(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model);
// One for every tile that there is one for.
std::vector<Schedule> best_winograd(const WinogradConv& conv, const ConvShape& shape, bool fused,
                                    const DeviceModel& model);

}  // namespace neo::gpu
