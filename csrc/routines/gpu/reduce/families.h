#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// Reductions over neighbouring axes, ArgMax, ArgMin, global pools.
std::vector<std::string_view> reduce_roots();
std::optional<Made> read_reduce(const Workload& workload, const BasicOptions& options, std::string* why);

// Softmax, LogSoftmax.
std::vector<std::string_view> softmax_roots();
std::optional<Made> read_softmax(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
