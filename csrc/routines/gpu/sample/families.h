#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// GridSample of planes, by the nearest pixel or by four.
std::vector<std::string_view> grid_sample_roots();
std::optional<Made> read_grid_sample(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
