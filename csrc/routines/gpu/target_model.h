#pragma once

#include "routines/cost/target.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// Of a target with a device: the model that its name stands for, with the figures of the target.
DeviceModel model_of(const Target& target);

}  // namespace neo::gpu
