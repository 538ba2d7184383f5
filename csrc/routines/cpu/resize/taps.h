#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace neo {

// One axis of a resize as numbers: [tap][output].
struct TapTable {
  int64_t taps = 1;
  std::vector<int32_t> position;
  std::vector<float> weight;
};

// The factor of an axis, where the node gives factors rather than sizes.
std::optional<double> resize_factor(const Node& node, int axis);
// The table of an axis of these sizes, as the node's attributes say.
TapTable tap_table(const Node& node, std::optional<double> factor, int64_t input, int64_t output);

}  // namespace neo
