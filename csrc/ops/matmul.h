#pragma once

#include "ops/op.h"

// Matrix products as the float and the quantized operators share them.

namespace neo {

// Sets output 0 to the shape of numpy.matmul of two inputs.
void infer_matrix_product(InferContext& ctx, int a, int b, DType output);
// The same for given shapes.
Shape matrix_product_shape(InferContext& ctx, const Shape& a, const Shape& b);

// A product of stacks of matrices. Operands of rank 1 are a row (a) or a column (b).
struct MatMulSizes {
  int64_t m = 1;
  int64_t k = 1;
  int64_t n = 1;
  Dims batch;                       // of the output
  std::vector<int64_t> a_matrices;  // for every matrix of the output, the index of the one it is made from
  std::vector<int64_t> b_matrices;
  Dims output;
};
MatMulSizes matmul_sizes(const ReferenceContext& ctx, const Dims& a, const Dims& b);

// The sums of products; int64_t wraps. Instantiated for double and int64_t.
template <class T>
std::vector<T> multiply(const MatMulSizes& sizes, const std::vector<T>& a, const std::vector<T>& b);

// 2 x output elements x the summed axis, which is the last of input `a` (the one before where it is transposed).
Work matrix_product_work(const Node& node, size_t a, bool transposed = false);

// The last two axes swapped.
template <class T>
std::vector<T> transpose_matrices(const std::vector<T>& x, Dims& dims);

}  // namespace neo
