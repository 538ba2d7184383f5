#pragma once

#include <functional>
#include <memory>

#include "ir/layout.h"
#include "routines/gpu/movement/axes.h"
#include "routines/patterns/copy_plan.h"

namespace neo::gpu {

// Strided copies of elements of one width: what Transpose, Slice, Concat, Pad, Expand, layouts and more come to.
struct CopyWork {
  std::vector<CopyPart> parts;  // axes joined; source and target are operands of the launch
  int filled = -1;              // operand that is filled with `fill` before; -1: none
  int64_t fill_count = 0;
  std::array<std::byte, 16> fill = {};
};
// The copies for operands of known dims.
using CopyPlanner = std::function<CopyWork(std::span<const Dims>)>;
// Elements of an operand's memory.
using CountElements = std::function<int64_t(int operand, const Dims& dims)>;

struct CopySchedule {
  int lanes = 4;     // of loads where both sides are contiguous
  int tile = 4;      // elements each way of a block that one thread transposes; a power of two
  int run = 1;       // elements that a thread copies one by one
  int threads = 64;  // of a group
};

struct CopyProblem {
  int64_t width = 4;  // bytes of an element
  CopyPlanner plan;
  CountElements count;
  std::vector<Dims> hint;  // dims of the operands that the kernels are made for
  bool any_dims = false;   // there may be others
};
std::unique_ptr<Program> make_copy(const CopyProblem& problem, const CopySchedule& schedule);

// One value in another layout; padding lanes become zero. Operands: the value in `from`, then in `to`.
CopyProblem layout_copy(DType dtype, const Layout& from, const Layout& to, const Dims& hint, bool any_dims);

}  // namespace neo::gpu
