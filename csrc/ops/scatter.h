#pragma once

#include <cstdint>

#include "ir/graph.h"

// How updates are combined with what they are written to.

namespace neo {

enum class ScatterReduction : uint8_t { None, Add, Mul, Max, Min };

// The attribute `reduction`; a Model error where it names none of them.
ScatterReduction scatter_reduction(const Node& node);

// Combines two floating point numbers, or two unsigned integers, whose sums and products wrap.
template <class T>
T combine_updates(ScatterReduction reduction, T a, T b) {
  switch (reduction) {
    case ScatterReduction::Add:
      return static_cast<T>(a + b);
    case ScatterReduction::Mul:
      return static_cast<T>(a * b);
    case ScatterReduction::Max:
      return a != a || a > b ? a : b;
    case ScatterReduction::Min:
      return a != a || a < b ? a : b;
    case ScatterReduction::None:
      break;
  }
  return b;
}

}  // namespace neo
