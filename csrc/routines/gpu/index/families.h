#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// Gather, GatherElements, GatherND, ScatterElements, ScatterND. An index out of range reads zero and writes nothing.
std::vector<std::string_view> index_roots();
std::optional<Made> read_index(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
