#pragma once

#include <optional>
#include <string>

#include "routines/patterns/epilogue.h"
#include "routines/patterns/gemm_shape.h"

namespace neo {

// One operand of a product as it lies in memory: sizes and strides, outermost first.
struct MatrixView {
  Dims dims;
  Dims strides;

  static MatrixView dense(const Dims& dims) { return {dims, dense_strides(dims)}; }
};

// A matrix product apart from its sizes.
struct GemmGeometry {
  bool transpose_a = false, transpose_b = false;  // the last two axes; operands of rank 1 are a row (A) or a column (B)
  int a_rank = 2, b_rank = 2;
  float alpha = 1.0f;
  float beta = 1.0f;  // times the residual

  // The sizes; where they lie goes into `strides`. The batch strides of a packed B are those of its packed matrices;
  // `residual` is null where there is none.
  GemmShape bind(const MatrixView& a, const MatrixView& b, const MatrixView& c, const MatrixView* residual,
                 GemmStrides& strides) const;
};

// A group that begins with MatMul, Gemm or com.microsoft.FusedMatMul, as a routine sees it.
struct GemmProblem {
  GemmGeometry geometry;
  const Value* a = nullptr;
  const Value* b = nullptr;
  const Value* c = nullptr;         // the result
  const Value* bias = nullptr;      // packed: a constant of one element, or of one per column
  const Value* residual = nullptr;  // added through its strides: broadcast to the result
  float bias_scale = 1.0f;
  Epilogue epilogue;

  bool packs_b() const { return b->is_constant(); }
  int64_t columns() const;  // of B, where it is a constant
  // The shape that costs are taken at.
  GemmShape hint() const;
};

// The ops that groups end in which begin with a product, and these groups.
std::vector<std::string_view> gemm_roots();
std::vector<Workload> match_gemm(const Node& root, const Graph::Users& users, const Graph& graph);

// None, with the reason, where no routine takes it for tensors of that dtype; only of float32 a bias is packed.
std::optional<GemmProblem> read_gemm(const Workload& workload, std::string* why, DType dtype = DType::Float32);

// The bias with its scale, padded with zeros to whole blocks of columns.
Tensor packed_column_bias(const GemmProblem& problem, int64_t block, PackedStore& store);

// Columns and summed axis of the matrices of B.
struct BMatrix {
  int64_t k, n;
  int64_t row, column;  // strides
};
BMatrix b_matrix(const GemmGeometry& geometry, const MatrixView& b);

}  // namespace neo
