#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "passes/pattern.h"

namespace neo {

// One position of an axis of a value, in whatever rank.
struct Position {
  Value* whole = nullptr;
  int axis = 0;
  int64_t index = 0;
};

// The position that a value is, as Gather, Split, Slice and a layer's last state give it; none of any other value, nor
// where the axis has no known size.
std::optional<Position> as_position(Value* value);

// Whether an operator computes each element of its result from those at the same place, and can do so for many slices
// at once.
bool is_elementwise(const std::string& op);

}  // namespace neo
