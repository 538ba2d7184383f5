#include "ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/activation.h"
#include "ops/conv.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// MatMul, with a bias of one element per column as neo's extension

void infer_matmul(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_same_dtype(ctx, 0, 1);
  infer_matrix_product(ctx, 0, 1, ctx.dtype(0));
  if (!ctx.has_input(2)) return;
  check_same_dtype(ctx, 0, 2);
  ctx.check_rank(2, 1);
  if (ctx.ranked(1) && ctx.ranked(2)) {
    const Shape& b = ctx.shape(1);
    ctx.check(b.rank() >= 2, "a product with a bias needs columns. Got a second operand of rank 1");
    ctx.require_equal(ctx.shape(2)[0], b[b.rank() - 1], "the bias must have one element per column");
  }
}

void reference_matmul(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  const MatMulSizes sizes = matmul_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  const Tensor& y = ctx.output(0, dtype, sizes.output);
  if (is_integer(dtype)) {
    auto product = multiply(sizes, ctx.ints(0), ctx.ints(1));
    if (ctx.has_input(2)) {
      const auto bias = broadcast_ints(ctx, 2, sizes.output);
      std::transform(product.begin(), product.end(), bias.begin(), product.begin(), wrap_add);
    }
    return store_ints(y, product);
  }
  auto product = multiply(sizes, ctx.doubles(0), ctx.doubles(1));
  if (ctx.has_input(2)) {
    const auto bias = broadcast_doubles(ctx, 2, sizes.output);
    std::transform(product.begin(), product.end(), bias.begin(), product.begin(), std::plus<>());
  }
  clamp_result(ctx.node(), product);
  store_doubles(y, product);
}

Work matmul_work(const Node& node) {
  return matrix_product_work(node, 0);
}

// com.microsoft.FusedMatMul: alpha * A' * B', where the batch axes may stand between the two of the matrix

Shape fused_operand(const Shape& shape, bool move_batch, bool transpose) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  std::vector<Dim> dims = shape.dims();
  if (move_batch) std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
  if (transpose) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return Shape(std::move(dims));
}

void infer_fused_matmul(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_same_dtype(ctx, 0, 1);
  const auto flag = [&](const char* key) { return ctx.node().int_attr(key, 0) != 0; };
  ctx.set_output(0, ctx.dtype(0),
                 matrix_product_shape(ctx, fused_operand(ctx.shape(0), flag("transBatchA"), flag("transA")),
                                      fused_operand(ctx.shape(1), flag("transBatchB"), flag("transB"))));
}

std::vector<double> load_fused(const ReferenceContext& ctx, int input, bool move_batch, bool transpose, Dims& dims) {
  auto x = ctx.doubles(input);
  dims = ctx.input(input).dims();
  if (dims.size() < 2) return x;
  if (move_batch) {
    const AxisView view(dims, static_cast<int>(dims.size()) - 1);
    const int64_t rows = dims[0];
    const int64_t batch = rows == 0 ? 0 : view.outer / rows;
    std::vector<double> moved(x.size());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t b = 0; b < batch; ++b) {
        checkpoint();
        std::copy_n(x.begin() + (row * batch + b) * view.size, view.size, moved.begin() + (b * rows + row) * view.size);
      }
    }
    x = std::move(moved);
    std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
  }
  return transpose ? transpose_matrices(x, dims) : x;
}

void reference_fused_matmul(ReferenceContext& ctx) {
  const auto flag = [&](const char* key) { return ctx.node().int_attr(key, 0) != 0; };
  Dims a_dims;
  Dims b_dims;
  const auto a = load_fused(ctx, 0, flag("transBatchA"), flag("transA"), a_dims);
  const auto b = load_fused(ctx, 1, flag("transBatchB"), flag("transB"), b_dims);
  const MatMulSizes sizes = matmul_sizes(ctx, a_dims, b_dims);
  auto product = multiply(sizes, a, b);
  const double alpha = ctx.node().float_attr("alpha", 1.0);
  for (double& x : product) x *= alpha;
  store_doubles(ctx.output(0, ctx.input(0).dtype(), sizes.output), product);
}

Work fused_matmul_work(const Node& node) {
  return matrix_product_work(node, 0, node.int_attr("transA", 0) != 0);
}

// Gemm

NamedActivation gemm_activation(const Node& node) {
  std::vector<double> params;
  if (node.has_attr("activation_alpha")) params.push_back(node.float_attr("activation_alpha", 0));
  if (node.has_attr("activation_beta")) params.push_back(node.float_attr("activation_beta", 0));
  return {node, node.string_attr("activation", ""), params};
}

void infer_gemm(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_same_dtype(ctx, 0, 1);
  gemm_activation(ctx.node());
  for (const int i : {0, 1}) ctx.check_rank(i, 2);
  if (!ctx.ranked(0) || !ctx.ranked(1)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const Shape a = fused_operand(ctx.shape(0), false, ctx.node().int_attr("transA", 0) != 0);
  const Shape b = fused_operand(ctx.shape(1), false, ctx.node().int_attr("transB", 0) != 0);
  ctx.require_equal(a[1], b[0], "the summed sizes must be equal");
  const Shape y({a[0], b[1]});
  if (ctx.has_input(2)) {
    check_same_dtype(ctx, 0, 2);
    if (ctx.ranked(2)) {
      ctx.check(ctx.shape(2).rank() <= 2, str("C must broadcast to the product. Got ", ctx.shape(2).to_string()));
      ctx.broadcast(y, ctx.shape(2));
    }
  }
  ctx.set_output(0, ctx.dtype(0), y);
}

void reference_gemm(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  const double alpha = ctx.node().float_attr("alpha", 1.0);
  const double beta = ctx.node().float_attr("beta", 1.0);
  const auto multiplied = [&](auto a, auto b, MatMulSizes& sizes) {
    Dims a_dims = ctx.input(0).dims();
    Dims b_dims = ctx.input(1).dims();
    ctx.check(a_dims.size() == 2 && b_dims.size() == 2,
              str("both operands must be matrices. Got ", to_string(a_dims), " and ", to_string(b_dims)));
    if (ctx.node().int_attr("transA", 0) != 0) a = transpose_matrices(a, a_dims);
    if (ctx.node().int_attr("transB", 0) != 0) b = transpose_matrices(b, b_dims);
    sizes = matmul_sizes(ctx, a_dims, b_dims);
    return multiply(sizes, a, b);
  };
  MatMulSizes sizes;
  if (is_integer(dtype)) {
    const auto scaled = [](int64_t x, double by) {
      return by == 1.0 ? x : static_cast<int64_t>(static_cast<double>(x) * by);
    };
    auto product = multiplied(ctx.ints(0), ctx.ints(1), sizes);
    for (int64_t& x : product) x = scaled(x, alpha);
    if (ctx.has_input(2)) {
      const auto c = broadcast_ints(ctx, 2, sizes.output);
      for (size_t i = 0; i < product.size(); ++i) product[i] = wrap_add(product[i], scaled(c[i], beta));
    }
    return store_ints(ctx.output(0, dtype, sizes.output), product);
  }
  auto product = multiplied(ctx.doubles(0), ctx.doubles(1), sizes);
  for (double& x : product) x *= alpha;
  if (ctx.has_input(2)) {
    const auto c = broadcast_doubles(ctx, 2, sizes.output);
    for (size_t i = 0; i < product.size(); ++i) product[i] += beta * c[i];
  }
  const NamedActivation activation = gemm_activation(ctx.node());
  std::transform(product.begin(), product.end(), product.begin(), activation);
  clamp_result(ctx.node(), product);
  store_doubles(ctx.output(0, dtype, sizes.output), product);
}

Work gemm_work(const Node& node) {
  return matrix_product_work(node, 0, node.int_attr("transA", 0) != 0);
}

}  // namespace

Shape matrix_product_shape(InferContext& ctx, const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape();
  ctx.check(a.rank() >= 1 && b.rank() >= 1,
            str("both operands must have a rank of at least 1. Got ", a.to_string(), " and ", b.to_string()));
  ctx.require_equal(a[a.rank() - 1], b[std::max(0, b.rank() - 2)], "the summed sizes must be equal");
  const auto batch = [](const Shape& shape) {
    const auto& dims = shape.dims();
    return Shape(std::vector<Dim>(dims.begin(), dims.end() - std::min<int64_t>(2, shape.rank())));
  };
  std::vector<Dim> dims = ctx.broadcast(batch(a), batch(b)).dims();
  if (a.rank() > 1) dims.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) dims.push_back(b[b.rank() - 1]);
  return Shape(std::move(dims));
}

void infer_matrix_product(InferContext& ctx, int a, int b, DType output) {
  ctx.set_output(0, output, matrix_product_shape(ctx, ctx.shape(a), ctx.shape(b)));
}

MatMulSizes matmul_sizes(const ReferenceContext& ctx, const Dims& a, const Dims& b) {
  MatMulSizes sizes;
  ctx.check(!a.empty() && !b.empty() && a.back() == b[b.size() - std::min<size_t>(2, b.size())],
            str("the summed sizes must be equal. Got ", to_string(a), " and ", to_string(b)));
  sizes.k = a.back();
  if (a.size() > 1) sizes.m = a[a.size() - 2];
  if (b.size() > 1) sizes.n = b.back();
  const auto batch = [](const Dims& dims) {
    return Dims(dims.begin(), dims.end() - static_cast<int64_t>(std::min<size_t>(2, dims.size())));
  };
  sizes.batch = broadcast_dims(ctx, batch(a), batch(b));
  sizes.a_matrices = broadcast_indices(ctx, batch(a), sizes.batch);
  sizes.b_matrices = broadcast_indices(ctx, batch(b), sizes.batch);
  sizes.output = sizes.batch;
  if (a.size() > 1) sizes.output.push_back(sizes.m);
  if (b.size() > 1) sizes.output.push_back(sizes.n);
  return sizes;
}

template <class T>
std::vector<T> multiply(const MatMulSizes& sizes, const std::vector<T>& a, const std::vector<T>& b) {
  // Unsigned arithmetic wraps where signed overflow would be undefined.
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  std::vector<T> y(sizes.a_matrices.size() * static_cast<size_t>(sizes.m * sizes.n));
  auto row = make_scratch<Sum>(sizes.n);
  for (size_t matrix = 0; matrix < sizes.a_matrices.size(); ++matrix) {
    for (int64_t i = 0; i < sizes.m; ++i) {
      checkpoint();
      const T* left = a.data() + (sizes.a_matrices[matrix] * sizes.m + i) * sizes.k;
      std::fill(row.begin(), row.end(), Sum{0});
      for (int64_t p = 0; p < sizes.k; ++p) {
        const T* right = b.data() + (sizes.b_matrices[matrix] * sizes.k + p) * sizes.n;
        const Sum factor = static_cast<Sum>(left[p]);
        for (size_t j = 0; j < row.size(); ++j) row[j] += factor * static_cast<Sum>(right[j]);
      }
      T* target = y.data() + (static_cast<int64_t>(matrix) * sizes.m + i) * sizes.n;
      for (size_t j = 0; j < row.size(); ++j) target[j] = static_cast<T>(row[j]);
    }
  }
  return y;
}

template std::vector<double> multiply(const MatMulSizes&, const std::vector<double>&, const std::vector<double>&);
template std::vector<int64_t> multiply(const MatMulSizes&, const std::vector<int64_t>&, const std::vector<int64_t>&);

template <class T>
std::vector<T> transpose_matrices(const std::vector<T>& x, Dims& dims) {
  const int64_t columns = dims[dims.size() - 1];
  const int64_t rows = dims[dims.size() - 2];
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  std::vector<T> y(x.size());
  if (x.empty()) return y;
  for (int64_t first = 0; first < static_cast<int64_t>(x.size()); first += rows * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        checkpoint();
        y[static_cast<size_t>(first + j * rows + i)] = x[static_cast<size_t>(first + i * columns + j)];
      }
    }
  }
  return y;
}

template std::vector<double> transpose_matrices(const std::vector<double>&, Dims&);
template std::vector<int64_t> transpose_matrices(const std::vector<int64_t>&, Dims&);

Work matrix_product_work(const Node& node, size_t a, bool transposed) {
  const Value* operand = node.input(a);
  if (!operand || !operand->shape().has_rank() || operand->shape().rank() == 0) return {0, operand_bytes(node)};
  const Shape& shape = operand->shape();
  const Dim& summed = shape[transposed && shape.rank() > 1 ? shape.rank() - 2 : shape.rank() - 1];
  return {Dim(2) * element_count_or_zero(node.output(0)) * summed, operand_bytes(node)};
}

void add_matmul_ops(OpRegistry& ops) {
  ops.add({.name = "MatMul",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = infer_matmul,
           .reference = reference_matmul,
           .work = matmul_work});
  ops.add({.name = "com.microsoft.FusedMatMul",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_fused_matmul,
           .reference = reference_fused_matmul,
           .work = fused_matmul_work});
  for (const char* name : {"Gemm", "com.microsoft.FusedGemm"}) {
    ops.add({.name = name,
             .min_inputs = 2,
             .max_inputs = 3,
             .infer = infer_gemm,
             .reference = reference_gemm,
             .work = gemm_work});
  }
}

}  // namespace neo
