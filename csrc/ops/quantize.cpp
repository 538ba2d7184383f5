#include "ops/quantize.h"

#include <algorithm>
#include <cmath>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Granularity: one scale for the tensor, one per position of an axis, or one per block of an axis.

void infer_scales(InferContext& ctx, int scale_input, int zero_input) {
  if (!ctx.ranked(0) || !ctx.ranked(scale_input)) return;
  const Shape& x = ctx.shape(0);
  const Shape& scale = ctx.shape(scale_input);
  const int64_t block = ctx.node().int_attr("block_size", 0);
  ctx.check(block >= 0, str("attribute block_size must not be negative. Got ", block));
  if (ctx.has_input(zero_input) && ctx.ranked(zero_input)) {
    // A scalar may also be written as a vector of one.
    ctx.require_equal(ctx.shape(zero_input).element_count(), scale.element_count(),
                      "scale and zero point must have one shape");
  }
  if (block == 0) {
    ctx.check(scale.rank() <= 1,
              str("a scale without block_size must be a scalar or a vector. Got ", scale.to_string()));
    if (scale.rank() == 0 || scale[0].is(1)) return;
    const int axis = ctx.axis(ctx.node().int_attr("axis", 1), x.rank());
    return ctx.require_equal(scale[0], x[axis], "a vector of scales must have one per position of the axis");
  }
  const int axis = ctx.axis(ctx.node().int_attr("axis", 1), x.rank());
  ctx.check_rank(scale_input, x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    ctx.require_equal(scale[i], i == axis ? ceildiv(x[i], Dim(block)) : x[i], "there must be one scale per block");
  }
}

// Which scale every element has; empty: the first one.
std::vector<int64_t> scale_indices(const ReferenceContext& ctx, int scale_input) {
  const Dims dims = ctx.input(0).dims();
  const Tensor& scale = ctx.input(scale_input);
  const int64_t block = std::max<int64_t>(0, ctx.node().int_attr("block_size", 0));
  if (scale.size() == 1 && scale.rank() <= 1) return {};
  const AxisView view(dims, ctx.axis(ctx.node().int_attr("axis", 1), static_cast<int>(dims.size())));
  Dims expected = dims;
  const int64_t blocks = block == 0 ? view.size : (view.size + block - 1) / block;
  if (block == 0) {
    expected = {view.size};
  } else {
    expected[static_cast<size_t>(ctx.axis(ctx.node().int_attr("axis", 1), static_cast<int>(dims.size())))] = blocks;
  }
  ctx.check(scale.dims() == expected,
            str("the scale must have dims ", to_string(expected), ". Got ", to_string(scale.dims())));
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(element_count(dims)));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.size; ++i) {
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        indices.push_back(block == 0 ? i : (o * blocks + i / block) * view.inner + inner);
      }
    }
  }
  return indices;
}

std::vector<double> zero_points(const ReferenceContext& ctx, int input, int64_t count) {
  if (!ctx.has_input(input)) return std::vector<double>(static_cast<size_t>(count));
  auto zeros = ctx.doubles(input);
  ctx.check(static_cast<int64_t>(zeros.size()) == count,
            str("scale and zero point must have one shape. Got ", count, " and ", zeros.size(), " elements"));
  return zeros;
}

// The element type an attribute names; the fallback where it is absent or ONNX's number for none.
DType optional_dtype(const Node& node, std::string_view key, DType fallback) {
  const auto found = node.attrs.find(key);
  const int64_t* number = found == node.attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return number && *number == 0 ? fallback : dtype_attr(node, key, fallback);
}

// QuantizeLinear

DType quantized_dtype(DType zero_point, const Node& node) {
  return zero_point != DType::Undefined ? zero_point : optional_dtype(node, "output_dtype", DType::UInt8);
}

bool is_quantized(DType dtype) {
  return (is_integer(dtype) && dtype != DType::Int64 && dtype != DType::UInt64 && dtype != DType::UInt32) ||
         (is_float(dtype) && item_bytes(dtype) == 1 && dtype != DType::Float8E8M0);
}

void infer_quantize(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_dtype(ctx, 1, DTypeClass::Number);
  const DType zero = ctx.has_input(2) ? ctx.dtype(2) : DType::Undefined;
  const DType dtype = quantized_dtype(zero, ctx.node());
  ctx.check(is_quantized(dtype), str("the quantized type must be an integer or a small float. Got ", name(dtype)));
  const DType asked = optional_dtype(ctx.node(), "output_dtype", dtype);
  ctx.check(asked == dtype,
            str("output_dtype must be the type of the zero point. Got ", name(asked), " and ", name(dtype)));
  infer_scales(ctx, 1, 2);
  ctx.set_output(0, dtype, ctx.shape(0));
}

void reference_quantize(ReferenceContext& ctx) {
  const DType dtype = quantized_dtype(ctx.has_input(2) ? ctx.input(2).dtype() : DType::Undefined, ctx.node());
  DType precision = optional_dtype(ctx.node(), "precision", ctx.input(1).dtype());
  if (precision == DType::Float8E8M0) precision = DType::Float32;
  if (is_integer(precision)) precision = DType::Float64;
  auto x = ctx.doubles(0);
  auto scale = ctx.doubles(1);
  const auto zero = zero_points(ctx, 2, static_cast<int64_t>(scale.size()));
  const auto indices = scale_indices(ctx, 1);
  for (double& element : scale) element = round_to(precision, element);
  const bool saturate = ctx.node().int_attr("saturate", 1) != 0;
  const Tensor& y = ctx.output(0, dtype, ctx.input(0).dims());
  auto* element = static_cast<char*>(y.data());
  for (size_t i = 0; i < x.size(); ++i, element += item_bytes(dtype)) {
    const size_t at = indices.empty() ? 0 : static_cast<size_t>(indices[i]);
    const double steps = round_to(precision, round_to(precision, x[i]) / scale[at]);
    store_double(dtype, element, quantize_steps(dtype, steps, zero[at]), saturate);
  }
}

// DequantizeLinear

DType dequantized_dtype(DType scale, const Node& node) {
  return optional_dtype(node, "output_dtype", scale == DType::Float8E8M0 ? DType::Float32 : scale);
}

void infer_dequantize(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_dtype(ctx, 1, DTypeClass::Float);
  if (ctx.has_input(2)) check_same_dtype(ctx, 0, 2);
  const DType dtype = dequantized_dtype(ctx.dtype(1), ctx.node());
  ctx.check(is_float(dtype), str("the result must be a floating point type. Got ", name(dtype)));
  infer_scales(ctx, 1, 2);
  ctx.set_output(0, dtype, ctx.shape(0));
}

void reference_dequantize(ReferenceContext& ctx) {
  const DType dtype = dequantized_dtype(ctx.input(1).dtype(), ctx.node());
  auto x = ctx.doubles(0);
  const auto scale = ctx.doubles(1);
  const auto zero = zero_points(ctx, 2, static_cast<int64_t>(scale.size()));
  const auto indices = scale_indices(ctx, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = indices.empty() ? 0 : static_cast<size_t>(indices[i]);
    x[i] = as_float(as_float(x[i] - zero[at]) * scale[at]);
  }
  store_doubles(ctx.output(0, dtype, ctx.input(0).dims()), x);
}

// DynamicQuantizeLinear

void infer_dynamic_quantize(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  ctx.set_output(0, DType::UInt8, ctx.shape(0));
  ctx.set_output(1, DType::Float32, Shape(std::vector<Dim>{}));
  ctx.set_output(2, DType::UInt8, Shape(std::vector<Dim>{}));
}

void reference_dynamic_quantize(ReferenceContext& ctx) {
  DynamicQuantization quantized = quantize_dynamically(ctx.doubles(0));
  for (double& offset : quantized.offsets) offset += quantized.zero_point;
  if (ctx.has_output(0)) store_doubles(ctx.output(0, DType::UInt8, ctx.input(0).dims()), quantized.offsets);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, DType::Float32, {}), std::vector<double>{quantized.scale});
  if (ctx.has_output(2)) store_doubles(ctx.output(2, DType::UInt8, {}), std::vector<double>{quantized.zero_point});
}

Work quantize_work(const Node& node) {
  return {Dim(3) * element_count_or_zero(node.input(0)), operand_bytes(node)};
}

}  // namespace

double quantize_steps(DType dtype, double steps, double zero_point) {
  if (is_float(dtype)) return steps + zero_point;
  if (std::isnan(steps)) return zero_point;
  const double code = std::nearbyint(steps) + zero_point;
  const auto low = static_cast<double>(integer_min(dtype));
  const auto high = static_cast<double>(integer_max(dtype));
  return code < low ? low : code > high ? high : code;
}

double TensorScale::real(double code) const {
  return as_float(as_float(code - zero_point) * scale);
}

TensorScale read_scale(const ReferenceContext& ctx, int scale_input, int zero_point_input) {
  TensorScale result;
  result.scale = as_float(scalar_double(ctx, scale_input));
  if (ctx.has_input(zero_point_input)) result.zero_point = scalar_double(ctx, zero_point_input);
  return result;
}

void store_quantized(const Tensor& y, const TensorScale& scale, const std::vector<double>& real) {
  std::vector<double> codes(real.size());
  std::transform(real.begin(), real.end(), codes.begin(), [&](double x) {
    return quantize_steps(y.dtype(), as_float(as_float(x) / scale.scale), scale.zero_point);
  });
  store_doubles(y, codes);
}

DynamicQuantization quantize_dynamically(const std::vector<double>& x) {
  double low = 0;
  double high = 0;
  for (const double element : x) {
    low = std::min(low, element);
    high = std::max(high, element);
  }
  DynamicQuantization result;
  result.scale = low == high ? 1.0 : as_float(as_float(high - low) / 255.0);
  result.zero_point = quantize_steps(DType::UInt8, as_float(0.0 - as_float(low / result.scale)), 0);
  result.offsets.reserve(x.size());
  for (const double element : x) {
    const double code = quantize_steps(DType::UInt8, as_float(element / result.scale), result.zero_point);
    result.offsets.push_back(code - result.zero_point);
  }
  return result;
}

void require_scalar(InferContext& ctx, int input) {
  if (!ctx.has_input(input) || !ctx.ranked(input)) return;
  ctx.require_equal(ctx.shape(input).element_count(), 1, str("input ", input, " must hold one element"));
}

void add_quantize_ops(OpRegistry& ops) {
  for (const char* name : {"QuantizeLinear", "com.microsoft.QuantizeLinear"}) {
    ops.add({.name = name,
             .min_inputs = 2,
             .max_inputs = 3,
             .infer = infer_quantize,
             .reference = reference_quantize,
             .work = quantize_work});
  }
  for (const char* name : {"DequantizeLinear", "com.microsoft.DequantizeLinear"}) {
    ops.add({.name = name,
             .min_inputs = 2,
             .max_inputs = 3,
             .infer = infer_dequantize,
             .reference = reference_dequantize,
             .work = quantize_work});
  }
  ops.add({.name = "DynamicQuantizeLinear",
           .max_outputs = 3,
           .infer = infer_dynamic_quantize,
           .reference = reference_dynamic_quantize,
           .work = quantize_work});
}

}  // namespace neo
