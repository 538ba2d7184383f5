#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// Resize of the last two axes, of sizes that are constant.
std::vector<std::string_view> resize_roots();
std::optional<Made> read_resize(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
