#include "routines/patterns/gemm_problem.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"

namespace neo {
namespace {

constexpr int kMaxGemmRank = kGemmBatchAxes + 2;
constexpr std::string_view kOps[] = {"MatMul", "Gemm", "com.microsoft.FusedMatMul"};

struct Matrix {
  int64_t rows, columns, row, column;
};

// The last two axes; an operand of rank 1 is a row or a column.
Matrix last_axes(const MatrixView& v, bool is_column, bool transpose) {
  const size_t rank = v.dims.size();
  if (rank == 1) {
    return is_column ? Matrix{v.dims[0], 1, v.strides[0], 1} : Matrix{1, v.dims[0], v.dims[0], v.strides[0]};
  }
  Matrix m{v.dims[rank - 2], v.dims[rank - 1], v.strides[rank - 2], v.strides[rank - 1]};
  if (transpose) {
    std::swap(m.rows, m.columns);
    std::swap(m.row, m.column);
  }
  return m;
}

// Size and stride of a batch axis counted from the innermost; an axis that is not there or has size 1 repeats.
struct BatchAxis {
  int64_t size = 1, stride = 0;
};

BatchAxis batch_axis(const MatrixView& v, int from_inner, int matrix_axes) {
  const int index = static_cast<int>(v.dims.size()) - matrix_axes - 1 - from_inner;
  if (index < 0 || v.dims[static_cast<size_t>(index)] == 1) return {};
  return {v.dims[static_cast<size_t>(index)], v.strides[static_cast<size_t>(index)]};
}

// A constant that one packed vector of the columns can hold: one element, or one per column.
bool fits_columns(const Value& v, const Dim& columns) {
  if (!v.is_constant() || !columns.is_constant()) return false;
  const Shape& s = v.shape();
  for (int i = 0; i + 1 < s.rank(); ++i) {
    if (!s[i].is(1)) return false;
  }
  return s.rank() == 0 || s[s.rank() - 1].is(1) || s[s.rank() - 1] == columns;
}

}  // namespace

BMatrix b_matrix(const GemmGeometry& geometry, const MatrixView& b) {
  const Matrix m = last_axes(b, true, geometry.transpose_b);
  return {m.rows, m.columns, m.row, m.column};
}

GemmShape GemmGeometry::bind(const MatrixView& a, const MatrixView& b, const MatrixView& c, const MatrixView* residual,
                             GemmStrides& strides) const {
  const Matrix am = last_axes(a, false, transpose_a), bm = last_axes(b, true, transpose_b);
  GemmShape s;
  s.m = am.rows;
  s.n = bm.columns;
  s.k = am.columns;
  strides.a_row = am.row;
  strides.a_column = am.column;
  strides.b_row = bm.row;
  strides.b_column = bm.column;
  // The result has those axes of a matrix that its operands have.
  const int matrix_axes = (a_rank > 1) + (b_rank > 1);
  const size_t c_rank = c.dims.size();
  strides.c_row = a_rank > 1 ? c.strides[c_rank - static_cast<size_t>(matrix_axes)] : s.n;
  NEO_ASSERT(b_rank == 1 || s.n == 1 || c.strides.back() == 1, "the columns of a product are not dense");
  const auto residual_stride = [&](int from_inner) {
    const int index = static_cast<int>(residual->dims.size()) - 1 - from_inner;
    return index < 0 || residual->dims[static_cast<size_t>(index)] == 1 ? 0
                                                                        : residual->strides[static_cast<size_t>(index)];
  };
  if (residual) {
    strides.residual_row = a_rank > 1 ? residual_stride(b_rank > 1 ? 1 : 0) : 0;
    strides.residual_column = b_rank > 1 ? residual_stride(0) : 0;
  }
  // Batch axes, the innermost last. One that all operands step through as they do through rows becomes rows.
  int at = kGemmBatchAxes;
  bool rows_only = true;
  for (int i = 0; i < static_cast<int>(c_rank) - matrix_axes; ++i) {
    const int64_t size = c.dims[c_rank - static_cast<size_t>(matrix_axes + 1 + i)];
    if (size == 1) continue;
    const int64_t c_stride = batch_axis(c, i, matrix_axes).stride;
    const int64_t a_stride = batch_axis(a, i, std::min(a_rank, 2)).stride;
    const int64_t b_stride = batch_axis(b, i, std::min(b_rank, 2)).stride;
    const int64_t r_stride = residual ? residual_stride(matrix_axes + i) : 0;
    if (rows_only && b_stride == 0) {
      const bool follows = a_stride == s.m * strides.a_row && c_stride == s.m * strides.c_row &&
                           (!residual || r_stride == s.m * strides.residual_row);
      if (s.m == 1 || follows) {
        if (s.m == 1) {
          strides.a_row = a_stride;
          strides.c_row = c_stride;
          strides.residual_row = r_stride;
        }
        s.m *= size;
        continue;
      }
    }
    rows_only = false;
    NEO_ASSERT(at > 0);
    --at;
    s.batch[at] = size;
    strides.a_batch[at] = a_stride;
    strides.b_batch[at] = b_stride;
    strides.c_batch[at] = c_stride;
    strides.residual_batch[at] = r_stride;
  }
  return s;
}

Tensor packed_column_bias(const GemmProblem& problem, int64_t block, PackedStore& store) {
  const int64_t columns = problem.columns(), padded = ceil_div(columns, block) * block;
  return store.floats(padded, {problem.bias}, [&](float* to) {
    const Tensor& bias = *problem.bias->constant;
    // The hint of no columns is one.
    const int64_t held = bias.size() == 1 ? columns : std::min(columns, bias.size());
    for (int64_t i = 0; i < held; ++i) to[i] = problem.bias_scale * bias.as<float>()[bias.size() == 1 ? 0 : i];
    std::fill_n(to + held, padded - held, 0.0f);
  });
}

int64_t GemmProblem::columns() const {
  return b_matrix(geometry, MatrixView::dense(b->shape().hint_dims())).n;
}

GemmShape GemmProblem::hint() const {
  GemmStrides ignored;
  return geometry.bind(MatrixView::dense(a->shape().hint_dims()), MatrixView::dense(b->shape().hint_dims()),
                       MatrixView::dense(c->shape().hint_dims()), nullptr, ignored);
}

std::vector<std::string_view> gemm_roots() {
  std::vector<std::string_view> roots(std::begin(kOps), std::end(kOps));
  roots.insert(roots.end(), epilogue_ops().begin(), epilogue_ops().end());
  return roots;
}

std::vector<Workload> match_gemm(const Node& root, const Graph::Users& users, const Graph& graph) {
  return match_epilogues(root, kOps, users, graph);
}

std::optional<GemmProblem> read_gemm(const Workload& workload, std::string* why, DType dtype) {
  const auto reject = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  const Node& node = *workload.nodes.front();
  for (const Value* v : workload.inputs) {
    if (!v || !v->type.is_tensor() || v->dtype() != dtype || !v->shape().has_rank())
      return reject(str("an input is not a ", name(dtype), " tensor of known rank"));
  }
  GemmProblem p;
  p.a = node.inputs[0];
  p.b = node.inputs[1];
  p.c = workload.outputs.front();
  p.epilogue = read_epilogue(workload);
  p.residual = p.epilogue.residual;
  GemmGeometry& g = p.geometry;
  g.a_rank = p.a->shape().rank();
  g.b_rank = p.b->shape().rank();
  if (g.a_rank < 1 || g.b_rank < 1 || g.a_rank > kMaxGemmRank || g.b_rank > kMaxGemmRank)
    return reject("more than 8 axes");
  if (!p.c->shape().has_rank()) return reject("the rank of the result is not known");
  g.transpose_a = g.a_rank > 1 && node.int_attr("transA", 0) != 0;
  g.transpose_b = g.b_rank > 1 && node.int_attr("transB", 0) != 0;
  g.alpha = static_cast<float>(node.float_attr("alpha", 1.0));
  if (node.int_attr("transBatchA", 0) != 0 || node.int_attr("transBatchB", 0) != 0)
    return reject("a batch axis lies inside");
  if (node.has_attr("activation")) return reject("it has an activation of its own");

  if (const Value* addend = node.input(2)) {
    const float scale = node.op == "Gemm" ? static_cast<float>(node.float_attr("beta", 1.0)) : 1.0f;
    const Dim columns = g.b_rank == 1 ? Dim(1) : p.b->shape()[g.transpose_b ? g.b_rank - 2 : g.b_rank - 1];
    if (dtype != DType::Float64 && fits_columns(*addend, columns)) {
      p.bias = addend;
      p.bias_scale = scale;
    } else if (p.residual) {
      return reject("two tensors are added");
    } else {
      p.residual = addend;
      g.beta = scale;
    }
  }
  if (p.bias && (p.bias == p.a || p.bias == p.b || p.bias == p.residual)) return reject("one value is two operands");
  if (p.b->constant && (p.b == p.a || p.b == p.residual)) return reject("one value is two operands");
  if (p.b->constant && !p.b->shape().is_static()) return reject("the weights have no sizes");
  return p;
}

}  // namespace neo
