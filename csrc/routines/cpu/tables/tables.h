#pragma once

#include <stdint.h>

// Types that the kernels of tables and their steps share. A table is rows of features, dense.

namespace neo {

// y[r * columns + c] = bias[c] + the product of row r and weight c, or their squared distance.
struct TableProductArgs {
  const float* x;
  int64_t rows, features;
  const float* weights;  // [features][columns]; for dot products [columns][features]
  const float* bias;     // [columns]
  int64_t columns;       // whole vectors, but for dot products
  float* y;
};

enum class TableKernel : uint8_t { Linear, Poly, Rbf, Sigmoid };

struct TableKernelArgs {
  TableKernel kernel;
  float gamma, coef0, degree;
  int64_t count;  // whole vectors
  float* x;       // products with support vectors, or squared distances from them; becomes the kernel's values
};

// Rows of scores become probabilities in place: the sigmoid of each, or the softmax of a row.
struct TableScoresArgs {
  bool softmax;
  int64_t rows, width;
  float* scores;
};

enum class TableNorm : uint8_t { Max, L1, L2 };

struct TableNormArgs {
  TableNorm norm;
  const float* x;
  int64_t rows, features;
  float* y;
};

}  // namespace neo
