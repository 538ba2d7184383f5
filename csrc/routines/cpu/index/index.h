#pragma once

#include <type_traits>

#include "ops/movement.h"
#include "routines/families.h"

namespace neo {

// Copies what errors name a node by: its op, name and attributes, without its values.
void copy_outline(const Node& node, Node& outline);

// True where an index, counted from either end, lies inside an axis of that size, whatever values its symbols take.
bool is_inside(int64_t index, const Dim& size);

// As checked_index, whose error it gives.
inline int64_t index_inside(const ReferenceContext& ctx, int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  return static_cast<uint64_t>(at) < static_cast<uint64_t>(size) ? at : checked_index(ctx, index, size);
}

// Calls f with a constant that is `bytes` where that is the size of an element, else zero.
template <class F>
void with_width(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::integral_constant<int64_t, 1>());
    case 2:
      return f(std::integral_constant<int64_t, 2>());
    case 4:
      return f(std::integral_constant<int64_t, 4>());
    case 8:
      return f(std::integral_constant<int64_t, 8>());
    case 16:
      return f(std::integral_constant<int64_t, 16>());
    default:
      return f(std::integral_constant<int64_t, 0>());
  }
}

}  // namespace neo
