#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/plan.h"

namespace neo {

// A value that a loop carries and every iteration appends to: `whole` is `past` with more behind it along an axis. Both
// lie in one memory, which has room for more than `whole`, so that the past is never copied.
struct Growth {
  size_t carried = 0;  // its number among the carried values
  int past = 0, whole = 0;
  int axis = 0;
  bool is_contiguous = false;     // nothing lies outside the axis: `whole` is dense whatever the room
  size_t region = 0, append = 0;  // the item that appends, or that copies the past alone to where `whole` begins
  int64_t room = 0;               // along the axis, in elements
  // The carried result: `whole`, or parts of it that a step gathers along an axis before the growing one.
  int result = 0;
  int gathered_axis = -1;  // -1: nothing is gathered
  size_t gather_region = 0, gather = 0;

  friend bool operator==(const Growth&, const Growth&) = default;
};

// Those carried values of a loop that can grow in place, as slots of its body.
std::vector<Growth> find_growths(const LoopItem& loop);

// The strides of `dims`, a view of all of `whole`, in memory with the growth's room.
Dims strides_in_room(const Growth& growth, const Dims& dims, const Dims& whole);

}  // namespace neo
