#pragma once

#include <memory>
#include <vector>

#include "exec/device.h"

namespace neo {

// Every device of every OpenCL platform of version 1.2 or later, opened once and kept. None is a Resource error.
std::vector<std::shared_ptr<Device>> open_opencl_devices();

}  // namespace neo
