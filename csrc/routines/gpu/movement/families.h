#pragma once

#include "routines/gpu/movement/made.h"

namespace neo::gpu {

// Transpose, Slice, Split, Concat, Expand, Tile, DepthToSpace, SpaceToDepth, ConstantOfShape, Pad, and what only
// changes the shape.
std::vector<std::string_view> copy_roots();
std::optional<Made> read_copy(const Workload& workload, const BasicOptions& options, std::string* why);

}  // namespace neo::gpu
