#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace neo {

// One axis of a resize as numbers: [tap][output].
struct TapTable {
  int64_t taps = 1;
  std::vector<int32_t> position;
  std::vector<float> weight;
};

// The table of an axis that stays as it is.
TapTable identity_table(int64_t size);
// Whether the node gives sizes rather than factors.
bool resizes_to_sizes(const Node& node);
// The factor of an axis, where the node gives factors rather than sizes.
std::optional<double> resize_factor(const Node& node, int axis);
// Whether an axis is certain to stay as it is, whatever values its symbols take.
bool keeps_axis(const Node& node, int axis);
// Why tables do not compute a Resize of float32 whose last two axes change, and none of the first `kept`.
std::optional<std::string> reject_resize(const Node& node, int kept);
// The table of an axis of these sizes, as the node's attributes say.
TapTable tap_table(const Node& node, std::optional<double> factor, int64_t input, int64_t output);

}  // namespace neo
