#pragma once

#include <stdint.h>

namespace neo {

constexpr int kGemmBatchAxes = 6;

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch[kGemmBatchAxes] = {1, 1, 1, 1, 1, 1};

  int64_t batches() const {
    int64_t count = 1;
    for (int64_t b : batch) count *= b;
    return count;
  }
};

// How the operands of a product lie in memory, in elements; columns of the result are contiguous.
struct GemmStrides {
  int64_t a_row = 0, a_column = 1;
  int64_t a_batch[kGemmBatchAxes] = {};
  int64_t b_row = 0, b_column = 1;
  int64_t b_batch[kGemmBatchAxes] = {};  // of packed matrices: in elements of packed_b
  int64_t residual_row = 0, residual_column = 1;
  int64_t residual_batch[kGemmBatchAxes] = {};
  int64_t c_row = 0;
  int64_t c_batch[kGemmBatchAxes] = {};
};

}  // namespace neo
