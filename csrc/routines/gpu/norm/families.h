#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization.
std::vector<std::string_view> norm_roots();
std::optional<Made> read_norm(const Workload& workload, const BasicOptions& options, std::string* why);

// LRN and BatchNormalization.
std::vector<std::string_view> channel_norm_roots();
std::optional<Made> read_channel_norm(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
