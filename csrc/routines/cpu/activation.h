#pragma once

#include "routines/patterns/eltwise_program.h"

namespace neo {

// One step of an elementwise program on values in place: what a convolution or a matrix product does to its results
// while they are in the cache of their core.
struct Activation {
  EltwiseStep step;  // its operands are ignored
  // Of `rows` times `columns` values; from row to row it is `row` of them. Null: none.
  void (*run)(const EltwiseStep& step, float* values, int64_t rows, int64_t row, int64_t columns) = nullptr;

  explicit operator bool() const { return run != nullptr; }
  // Many values at a time cost less than a few: the steps of one value wait for each other.
  void operator()(float* values, int64_t rows, int64_t row, int64_t columns) const {
    run(step, values, rows, row, columns);
  }
  void operator()(float* values, int64_t count) const { run(step, values, 1, count, count); }
};

}  // namespace neo
