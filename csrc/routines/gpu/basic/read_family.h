#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// A family's reading of a workload; one of halves is read by its twin of float32, and its program holds halves.
std::optional<Made> read_family(const Family& family, const Workload& workload, const BasicOptions& options,
                                std::string* why);

}  // namespace neo::gpu
