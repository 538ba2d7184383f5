#include <algorithm>
#include <cmath>

#include "ops/conv.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/matmul.h"
#include "ops/quantize.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Scales and zero points of matrices: a vector belongs to the rows of the first operand, to the columns of the second.

std::vector<double> spread_rows(const ReferenceContext& ctx, int input, const Dims& to) {
  Dims from = ctx.input(input).dims();
  if (from.size() == 1 && from[0] != 1) from.push_back(1);
  const auto elements = ctx.doubles(input);
  const auto indices = broadcast_indices(ctx, from, to);
  std::vector<double> result(indices.size());
  std::transform(indices.begin(), indices.end(), result.begin(),
                 [&](int64_t index) { return elements[static_cast<size_t>(index)]; });
  return result;
}

// Whole numbers as doubles: sums of products of 8-bit codes stay exact. A scalar of rank 1 broadcasts as one of rank 0.
std::vector<double> spread_columns(const ReferenceContext& ctx, int input, const Dims& to) {
  return ctx.input(input).size() == 1
             ? std::vector<double>(static_cast<size_t>(element_count(to)), ctx.doubles(input).front())
             : broadcast_doubles(ctx, input, to);
}

std::vector<double> row_offsets(const ReferenceContext& ctx, int input, int zero_input) {
  auto elements = ctx.doubles(input);
  if (!ctx.has_input(zero_input)) return elements;
  const auto zero = spread_rows(ctx, zero_input, ctx.input(input).dims());
  for (size_t i = 0; i < elements.size(); ++i) elements[i] -= zero[i];
  return elements;
}

std::vector<double> column_offsets(const ReferenceContext& ctx, int input, int zero_input) {
  auto elements = ctx.doubles(input);
  if (!ctx.has_input(zero_input)) return elements;
  const auto zero = spread_columns(ctx, zero_input, ctx.input(input).dims());
  for (size_t i = 0; i < elements.size(); ++i) elements[i] -= zero[i];
  return elements;
}

// The codes of weights less the zero point of their output channel.
std::vector<int64_t> weight_offsets(const ReferenceContext& ctx, int input, int zero_input) {
  auto elements = ctx.ints(input);
  if (!ctx.has_input(zero_input) || elements.empty()) return elements;
  const auto zero = ctx.ints(zero_input);
  const int64_t channels = ctx.input(input).dims()[0];
  ctx.check(zero.size() == 1 || static_cast<int64_t>(zero.size()) == channels,
            str("the zero point of the weights must be one, or one per output channel. Got ", zero.size()));
  const size_t per_channel = elements.size() / static_cast<size_t>(channels);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] -= zero[zero.size() == 1 ? 0 : i / per_channel];
  return elements;
}

std::vector<int64_t> tensor_offsets(const ReferenceContext& ctx, int input, int zero_input) {
  auto elements = ctx.ints(input);
  const int64_t zero = ctx.has_input(zero_input) ? scalar_int(ctx, zero_input) : 0;
  for (int64_t& element : elements) element -= zero;
  return elements;
}

void check_codes(const InferContext& ctx, int input) {
  const DType dtype = ctx.dtype(input);
  ctx.check((is_integer(dtype) || is_float(dtype)) && item_bytes(dtype) == 1,
            str("input ", input, " must have an 8-bit type. Got ", name(dtype)));
}

// ConvInteger(x, w, x zero, w zero)

void infer_conv_integer(InferContext& ctx) {
  for (const int i : {0, 1}) check_codes(ctx, i);
  infer_convolution(ctx, 0, 1, DType::Int32);
  require_scalar(ctx, 2);
}

void reference_conv_integer(ReferenceContext& ctx) {
  const ConvSizes sizes = conv_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  const auto sums = convolve(sizes, tensor_offsets(ctx, 0, 2), weight_offsets(ctx, 1, 3));
  store_ints(ctx.output(0, DType::Int32, sizes.output_dims()), sums);
}

Work conv_integer_work(const Node& node) {
  return convolution_work(node, 1);
}

// QLinearConv(x, scale, zero, w, scale, zero, y scale, zero, bias)

void infer_qlinear_conv(InferContext& ctx) {
  for (const int i : {0, 3, 7}) check_codes(ctx, i);
  infer_convolution(ctx, 0, 3, ctx.dtype(7));
  for (const int i : {1, 2, 6, 7}) require_scalar(ctx, i);
  if (ctx.ranked(3)) infer_channel_vector(ctx, 8, ctx.shape(3)[0], "the bias");
}

void reference_qlinear_conv(ReferenceContext& ctx) {
  const ConvSizes sizes = conv_sizes(ctx, ctx.input(0).dims(), ctx.input(3).dims());
  const auto sums = convolve(sizes, tensor_offsets(ctx, 0, 2), weight_offsets(ctx, 3, 5));
  const int64_t channels = sizes.groups * sizes.out_channels;
  const TensorScale x = read_scale(ctx, 1, 2);
  const TensorScale y = read_scale(ctx, 6, 7);
  const auto w_scale = ctx.doubles(4);
  ctx.check(w_scale.size() == 1 || static_cast<int64_t>(w_scale.size()) == channels,
            str("the scale of the weights must be one, or one per output channel. Got ", w_scale.size()));
  const auto bias = ctx.has_input(8) ? ctx.ints(8) : std::vector<int64_t>(static_cast<size_t>(channels));
  ctx.check(static_cast<int64_t>(bias.size()) == channels,
            str("the bias must have one element per output channel. Got ", bias.size(), ", expected ", channels));
  const DType dtype = ctx.input(7).dtype();
  const auto plane = static_cast<size_t>(element_count(sizes.window.output));
  std::vector<double> codes(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t c = i / plane % static_cast<size_t>(channels);
    const double multiplier = as_float(as_float(x.scale * w_scale[w_scale.size() == 1 ? 0 : c]) / y.scale);
    codes[i] =
        quantize_steps(dtype, as_float(as_float(static_cast<double>(sums[i] + bias[c])) * multiplier), y.zero_point);
  }
  store_doubles(ctx.output(0, dtype, sizes.output_dims()), codes);
}

Work qlinear_conv_work(const Node& node) {
  return convolution_work(node, 3);
}

// MatMulInteger(a, b, a zero, b zero)

void infer_matmul_integer(InferContext& ctx) {
  for (const int i : {0, 1}) check_codes(ctx, i);
  infer_matrix_product(ctx, 0, 1, DType::Int32);
}

void reference_matmul_integer(ReferenceContext& ctx) {
  const MatMulSizes sizes = matmul_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  const auto sums = multiply(sizes, row_offsets(ctx, 0, 2), column_offsets(ctx, 1, 3));
  store_doubles(ctx.output(0, DType::Int32, sizes.output), sums);
}

Work first_product_work(const Node& node) {
  return matrix_product_work(node, 0);
}

// QLinearMatMul(a, scale, zero, b, scale, zero, y scale, zero)

void infer_qlinear_matmul(InferContext& ctx) {
  for (const int i : {0, 3, 7}) check_codes(ctx, i);
  infer_matrix_product(ctx, 0, 3, ctx.dtype(7));
}

void reference_qlinear_matmul(ReferenceContext& ctx) {
  const MatMulSizes sizes = matmul_sizes(ctx, ctx.input(0).dims(), ctx.input(3).dims());
  auto sums = multiply(sizes, row_offsets(ctx, 0, 2), column_offsets(ctx, 3, 5));
  const DType dtype = ctx.input(7).dtype();
  const auto a_scale = spread_rows(ctx, 1, sizes.output);
  const auto b_scale = spread_columns(ctx, 4, sizes.output);
  const auto y_scale = spread_rows(ctx, 6, sizes.output);
  const auto y_zero = spread_rows(ctx, 7, sizes.output);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double multiplier = as_float(as_float(a_scale[i] * b_scale[i]) / y_scale[i]);
    sums[i] = quantize_steps(dtype, as_float(as_float(sums[i]) * multiplier), y_zero[i]);
  }
  store_doubles(ctx.output(0, dtype, sizes.output), sums);
}

// com.microsoft.MatMulIntegerToFloat(a, b, a scale, b scale, a zero, b zero, bias)

void infer_matmul_to_float(InferContext& ctx) {
  for (const int i : {0, 1}) check_codes(ctx, i);
  infer_matrix_product(ctx, 0, 1, ctx.dtype(2));
}

// sums * multiplier + the bias of an input
void store_scaled(ReferenceContext& ctx, DType dtype, const Dims& dims, std::vector<double>& sums,
                  const std::vector<double>& multiplier, int bias_input) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = as_float(as_float(sums[i]) * as_float(multiplier[i]));
  if (ctx.has_input(bias_input)) {
    const auto bias = broadcast_doubles(ctx, bias_input, dims);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i];
  }
  store_doubles(ctx.output(0, dtype, dims), sums);
}

void reference_matmul_to_float(ReferenceContext& ctx) {
  const MatMulSizes sizes = matmul_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  auto sums = multiply(sizes, row_offsets(ctx, 0, 4), column_offsets(ctx, 1, 5));
  auto multiplier = spread_rows(ctx, 2, sizes.output);
  const auto b_scale = spread_columns(ctx, 3, sizes.output);
  for (size_t i = 0; i < multiplier.size(); ++i) multiplier[i] *= b_scale[i];
  store_scaled(ctx, ctx.input(2).dtype(), sizes.output, sums, multiplier, 6);
}

// com.microsoft.DynamicQuantizeMatMul(a, b, b scale, b zero, bias)

void infer_dynamic_matmul(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_codes(ctx, 1);
  infer_matrix_product(ctx, 0, 1, ctx.dtype(0));
}

void reference_dynamic_matmul(ReferenceContext& ctx) {
  const MatMulSizes sizes = matmul_sizes(ctx, ctx.input(0).dims(), ctx.input(1).dims());
  const DynamicQuantization a = quantize_dynamically(ctx.doubles(0));
  auto sums = multiply(sizes, a.offsets, column_offsets(ctx, 1, 3));
  auto multiplier = spread_columns(ctx, 2, sizes.output);
  for (double& scale : multiplier) scale *= a.scale;
  store_scaled(ctx, ctx.input(0).dtype(), sizes.output, sums, multiplier, 4);
}

// com.microsoft.QGemm(a, scale, zero, b, scale, zero, c, y scale, y zero); without a scale of y the result is float

void infer_qgemm(InferContext& ctx) {
  for (const int i : {0, 3}) {
    check_codes(ctx, i);
    ctx.check_rank(i, 2);
  }
  ctx.check(!ctx.has_input(7) || ctx.has_input(8), "a scale of the result needs its zero point. Got none");
  const DType dtype = ctx.has_input(7) ? ctx.dtype(8) : DType::Float32;
  if (!ctx.ranked(0) || !ctx.ranked(3)) return ctx.set_output(0, dtype, Shape());
  const int a = ctx.node().int_attr("transA", 0) != 0 ? 1 : 0;
  const int b = ctx.node().int_attr("transB", 0) != 0 ? 1 : 0;
  ctx.require_equal(ctx.shape(0)[1 - a], ctx.shape(3)[b], "the summed sizes must be equal");
  ctx.set_output(0, dtype, Shape({ctx.shape(0)[a], ctx.shape(3)[1 - b]}));
}

void reference_qgemm(ReferenceContext& ctx) {
  Dims a_dims = ctx.input(0).dims();
  Dims b_dims = ctx.input(3).dims();
  ctx.check(a_dims.size() == 2 && b_dims.size() == 2,
            str("both operands must be matrices. Got ", to_string(a_dims), " and ", to_string(b_dims)));
  const bool transposed_a = ctx.node().int_attr("transA", 0) != 0;
  const bool transposed_b = ctx.node().int_attr("transB", 0) != 0;
  const TensorScale a_scale = read_scale(ctx, 1, 2);
  auto a = ctx.doubles(0);
  for (double& element : a) element -= a_scale.zero_point;
  auto b = ctx.doubles(3);
  const auto b_scale = ctx.doubles(4);
  const auto columns = static_cast<size_t>(b_dims[transposed_b ? 0 : 1]);
  ctx.check(b_scale.size() == 1 || b_scale.size() == columns,
            str("the scale of B must be one, or one per column. Got ", b_scale.size()));
  if (transposed_a) a = transpose_matrices(a, a_dims);
  if (transposed_b) b = transpose_matrices(b, b_dims);
  if (ctx.has_input(5)) {
    const auto zero = ctx.doubles(5);
    ctx.check(zero.size() == 1 || zero.size() == columns,
              str("the zero point of B must be one, or one per column. Got ", zero.size()));
    for (size_t i = 0; i < b.size(); ++i) b[i] -= zero[i % columns % zero.size()];
  }
  const MatMulSizes sizes = matmul_sizes(ctx, a_dims, b_dims);
  auto sums = multiply(sizes, a, b);
  if (ctx.has_input(6)) {
    const auto c = broadcast_doubles(ctx, 6, sizes.output);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += c[i];
  }
  const double alpha = ctx.node().float_attr("alpha", 1.0);
  const bool quantized = ctx.has_input(7);
  const TensorScale y = quantized ? read_scale(ctx, 7, 8) : TensorScale{};
  const DType dtype = quantized ? ctx.input(8).dtype() : DType::Float32;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double scale = as_float(as_float(alpha * a_scale.scale) * b_scale[i % columns % b_scale.size()]);
    sums[i] = quantized ? quantize_steps(dtype, as_float(as_float(sums[i]) * as_float(scale / y.scale)), y.zero_point)
                        : as_float(as_float(sums[i]) * scale);
  }
  store_doubles(ctx.output(0, dtype, sizes.output), sums);
}

Work qgemm_work(const Node& node) {
  return matrix_product_work(node, 0, node.int_attr("transA", 0) != 0);
}

}  // namespace

void add_quantized_product_ops(OpRegistry& ops) {
  const auto add = [&ops](const char* name, int min_inputs, int max_inputs, auto infer, auto reference, auto work) {
    ops.add({.name = name,
             .min_inputs = min_inputs,
             .max_inputs = max_inputs,
             .infer = infer,
             .reference = reference,
             .work = work});
  };
  add("ConvInteger", 2, 4, infer_conv_integer, reference_conv_integer, conv_integer_work);
  add("QLinearConv", 8, 9, infer_qlinear_conv, reference_qlinear_conv, qlinear_conv_work);
  add("MatMulInteger", 2, 4, infer_matmul_integer, reference_matmul_integer, first_product_work);
  add("QLinearMatMul", 8, 8, infer_qlinear_matmul, reference_qlinear_matmul, first_product_work);
  add("com.microsoft.MatMulIntegerToFloat", 4, 7, infer_matmul_to_float, reference_matmul_to_float, first_product_work);
  add("com.microsoft.DynamicQuantizeMatMul", 3, 5, infer_dynamic_matmul, reference_dynamic_matmul, first_product_work);
  add("com.microsoft.QGemm", 6, 9, infer_qgemm, reference_qgemm, qgemm_work);
}

}  // namespace neo
