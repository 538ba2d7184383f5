#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// MaxPool without indices and AveragePool over 1 to 3 spatial axes, plain or in channel blocks.
std::vector<std::string_view> pool_roots();
std::optional<Made> read_pool(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
