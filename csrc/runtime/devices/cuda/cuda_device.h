#pragma once

#include <memory>
#include <vector>

#include "exec/device.h"

namespace neo {

// Every GPU of NVIDIA's driver, opened once and kept. No driver or no GPU is a Resource error.
std::vector<std::shared_ptr<Device>> open_cuda_devices();

}  // namespace neo
