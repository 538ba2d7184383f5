#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// Elementwise operators, one or a group of them, over any axes that broadcast.
std::vector<std::string_view> eltwise_roots();
std::optional<Made> read_eltwise(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
