#pragma once

#include "routines/cost/target.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// The model that the name of a target with a device stands for, with the figures of the target.
DeviceModel model_of(const Target& target);

}  // namespace neo::gpu
