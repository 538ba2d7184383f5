#pragma once

#include "routines/patterns/eltwise_program.h"

namespace neo {

// One step of an elementwise program on values in place: what a convolution or a matrix product does to its results
// while they are in the cache of their core.
struct Activation {
  EltwiseStep step;                                                              // its operands are ignored
  void (*run)(const EltwiseStep& step, float* values, int64_t count) = nullptr;  // null: none

  explicit operator bool() const { return run != nullptr; }
  void operator()(float* values, int64_t count) const { run(step, values, count); }
};

}  // namespace neo
