#pragma once

// Products with weights that are mostly zeros: for a run of results that share their weights, such as the pixels of a
// channel or the rows of a column, the products with those that are none (Elsen et al., "Fast sparse convnets", 2020,
// section 3). The inputs of a run are gathered first: where they lie each source may be in another page.

#include <stdint.h>

namespace neo {

constexpr int kSparseVectors = 8;  // of a run's results, most that are summed at a time

constexpr int kSparseBlock = 4;  // outputs whose weights may lie together

// Weights of one output, or of kSparseBlock that follow each other, and what they are multiplied with: an input
// channel, or a channel at a place of a kernel. Those of one output are not zero, of several not all.
template <int kOutputs>
struct SparseWeights {
  int32_t source;
  float value[kOutputs];
};

// One output of a run, or a block of them: dst = clamp(bias + sum of weights times sources + residual). One result
// reads one number of each source, up to a vector of results a vector, more of them an even number of vectors.
struct SparseRun {
  const float* src = nullptr;
  const int32_t* sources = nullptr;  // where each source begins, in floats
  const void* weights = nullptr;     // SparseWeights of one or of kSparseBlock outputs
  int64_t weight_count = 0;
  bool is_block = false;
  int64_t outputs = 1;              // that there are
  const float* bias = nullptr;      // of each output, or null
  const float* residual = nullptr;  // or null; may be dst
  int64_t residual_step = 0;        // floats from one output to the next
  float* dst = nullptr;
  int64_t dst_step = 0;
  int64_t count = 0;  // results of an output; 1 to kSparseVectors vectors
  float lo = 0.0f, hi = 0.0f;
};

// Rows of a matrix whose columns lie next to each other, and the same by columns.
struct SparseRows {
  float* rows = nullptr;
  int64_t row = 0;  // floats from one row to the next
  int64_t row_count = 0, column_count = 0;
  float* columns = nullptr;
  int64_t column = 0;  // floats from one column to the next; whole vectors of rows may be written
  // What is added to the rows that are written, row by row and column by column, before the clamp; or null.
  const float* residual = nullptr;
  int64_t residual_row = 0, residual_column = 0;
  float beta = 1.0f;  // times the residual
  float lo = 0.0f, hi = 0.0f;
};

struct SparseKernels {
  void (*run)(const SparseRun&);
  void (*by_columns)(const SparseRows&);  // from the rows
  void (*by_rows)(const SparseRows&);     // from the columns, whose number is at most that of lanes
};

namespace scalar {
const SparseKernels& sparse_kernels();
}
namespace avx2 {
const SparseKernels& sparse_kernels();
}
namespace avx512 {
const SparseKernels& sparse_kernels();
}
namespace neon {
const SparseKernels& sparse_kernels();
}

}  // namespace neo
