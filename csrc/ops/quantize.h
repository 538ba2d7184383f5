#pragma once

#include "ops/op.h"

// Linear quantization as its operators share it. Scales are float32 numbers; a quotient or product by one is rounded to
// float32, and only then to the nearest integer, halves to even.

namespace neo {

// The integer that stands for `steps` scales, saturated; or, for a floating point type, steps + zero_point itself.
double quantize_steps(DType dtype, double steps, double zero_point);

// The scale and zero point of a tensor held in two scalar inputs; a zero point left out is 0.
struct TensorScale {
  double scale = 1;
  double zero_point = 0;

  double real(double code) const;
};
TensorScale read_scale(const ReferenceContext& ctx, int scale_input, int zero_point_input);
// Real numbers as codes of an output.
void store_quantized(const Tensor& y, const TensorScale& scale, const std::vector<double>& real);

// The results of DynamicQuantizeLinear: uint8 codes over the range of x and 0.
struct DynamicQuantization {
  std::vector<double> offsets;  // codes less the zero point
  double scale = 1;
  double zero_point = 0;
};
DynamicQuantization quantize_dynamically(const std::vector<double>& x);

// An input that has to hold one element, where its shape is known.
void require_scalar(InferContext& ctx, int input);

}  // namespace neo
