#pragma once

#include <memory>

#include "exec/device_step.h"
#include "ir/graph.h"
#include "ir/schema.h"
#include "routines/gpu/program.h"

namespace neo::gpu {

// Layout transforms in the memory of one device: row-major to blocked in one axis, to channels last, and back.
bool is_convertible(const Schema& from, const Schema& to);
std::unique_ptr<Program> make_conversion_program(DType dtype, const Layout& from, const Layout& to);
std::unique_ptr<DeviceStep> make_conversion(const Type& type, const Schema& from, const Schema& to);

}  // namespace neo::gpu
