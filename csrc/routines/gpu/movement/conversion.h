#pragma once

#include <memory>

#include "exec/device_step.h"
#include "ir/graph.h"
#include "ir/schema.h"

namespace neo::gpu {

// Layout transforms in the memory of one device, between any orders of the axes with one block at most.
bool is_convertible(const Schema& from, const Schema& to);
std::unique_ptr<DeviceStep> make_conversion(const Type& type, const Schema& from, const Schema& to);

}  // namespace neo::gpu
