#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace neo {

// The numbers that codes of one scale and zero point stand for.
struct Grid {
  DType dtype = DType::Undefined;
  double scale = 1;
  double zero = 0;
  friend bool operator==(const Grid&, const Grid&) = default;
};

// int8 and uint8
bool is_byte(DType dtype);

// The grid of codes, where scale and zero point (null: 0) are constants of one element and a code survives the way to
// float32 and back.
std::optional<Grid> read_grid(DType dtype, const Value* scale, const Value* zero);

// Codes less their zero point times their scale, as float32. Scale and zero point have one element, or one for each
// position of the axis (negative: from the end); nothing where they fit neither. Computed where somebody reads them:
// routines that multiply codes do not.
std::optional<Tensor> dequantized(const Tensor& codes, const Tensor& scale, const Tensor* zero, int axis);

// The same of codes of 4 or 8 bits with a scale and a zero point for each `block` of positions of the axis.
std::optional<Tensor> dequantized_blocks(const Tensor& codes, const Tensor& scale, const Tensor* zero, int axis,
                                         int64_t block);

// Elements of float16 or bfloat16 as float32, computed where somebody reads them.
Tensor widened(const Tensor& halves);

// Moves the codes instead of the numbers they stand for: a DequantizeLinear by one scale goes behind the Reshape,
// Slice, Concat and the like that reads it, any of a table behind the Gather of its rows.
bool sink_dequantization(Rewriter& rewriter);

// Rounds the parts of a Concat of codes' numbers in place of the whole, so that codes are joined.
bool round_before_concat(Rewriter& rewriter);

// Removes a DequantizeLinear of a QuantizeLinear by the same scale and zero point of a value that lies on that grid
// already, and a QuantizeLinear of such a value's codes.
bool drop_requantization(Rewriter& rewriter);

}  // namespace neo
