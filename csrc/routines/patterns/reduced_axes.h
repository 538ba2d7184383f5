#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace neo {

// An axis counted from the front; checked to be one.
int axis_from_front(int64_t axis, int rank);

// The axes that a reduction, ArgMax, ArgMin or a global pool works along, ascending, once each; none where they are not
// known, where it works along none, or for a number.
std::optional<std::vector<int>> reduced_axes(const Node& node);

// A run of neighbouring axes, [first, last].
struct AxisRun {
  int first = 0, last = 0;
};
// The axes of reduced_axes() as one run; none where they are no neighbours.
std::optional<AxisRun> reduced_run(const Node& node);

}  // namespace neo
