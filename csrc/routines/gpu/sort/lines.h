#pragma once

#include "ir/tensor.h"
#include "routines/gpu/sort/keys.h"

namespace neo::gpu {

// A tensor as lines along an axis.
struct Lines {
  int64_t count = 1;
  int64_t size = 1;
  int64_t inner = 1;  // from one element of a line to the next

  static Lines of(const Dims& dims, int axis) {
    Lines out;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto at = static_cast<int>(i);
      (at == axis ? out.size : out.count) *= dims[i];
      if (at > axis) out.inner *= dims[i];
    }
    return out;
  }
};

// The place of element `i` of a line.
inline kernel::Expr line_place(const kernel::Expr& line, const kernel::Expr& i, const kernel::Expr& size,
                               const kernel::Expr& inner) {
  return (line / inner * size + i) * inner + line % inner;
}

}  // namespace neo::gpu
