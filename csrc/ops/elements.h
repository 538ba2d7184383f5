#pragma once

#include "ops/op.h"

// Arithmetic on elements that the references of several families share.

namespace neo {

// The kinds of elements that an operand may have.
enum class DTypeClass : uint8_t { Number, Float, Integer, Bool };  // Number: Float or Integer
// A Model error that names the input when its element type is outside the class.
void check_dtype(const InferContext& ctx, int input, DTypeClass allowed);
// A Model error unless both inputs have one element type.
void check_same_dtype(const InferContext& ctx, int a, int b);

// The dims that two operands broadcast to (NumPy's rule); a Shape error where they do not.
Dims broadcast_dims(const ReferenceContext& ctx, const Dims& a, const Dims& b);
// The same for all inputs that are given.
Dims broadcast_all_dims(const ReferenceContext& ctx);

// For every element of `to`, in row-major order, where it is found in an array of `from`, which broadcasts to `to`.
std::vector<int64_t> broadcast_indices(const ReferenceContext& ctx, const Dims& from, const Dims& to);
// The elements of an input repeated to fill `to`.
std::vector<double> broadcast_doubles(const ReferenceContext& ctx, int input, const Dims& to);
std::vector<int64_t> broadcast_ints(const ReferenceContext& ctx, int input, const Dims& to);

// An array seen along one axis: `outer` x `size` x `inner`.
struct AxisView {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  AxisView(const Dims& dims, int axis);
  int64_t lines() const { return outer * inner; }
  // The position of the first element of a line; its elements are `inner` apart.
  int64_t start(int64_t line) const { return line / inner * size * inner + line % inner; }
};

// The nearest float32: what a float attribute of this value holds.
inline double as_float(double x) {
  return static_cast<double>(static_cast<float>(x));
}
// Rounded to the nearest value of a floating point type, in double.
double round_to(DType dtype, double x);

// Comparison and division as an integer type has them; elements of uint64 are held as their bits.
bool int_less(DType dtype, int64_t a, int64_t b);
// Towards zero; division by zero gives zero.
int64_t int_divide(DType dtype, int64_t a, int64_t b);
// Sums, differences and products that wrap.
inline int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrap_subtract(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

inline int64_t whole_abs(DType dtype, int64_t x) {
  return dtype != DType::UInt64 && x < 0 ? wrap_subtract(0, x) : x;
}
inline int64_t wrap_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The elements of `x` as those of `y`, which has the same dims: what Cast makes of them.
void cast_elements(const ReferenceContext& ctx, const Tensor& x, const Tensor& y);

// How many elements a value has; zero where it is left out or unranked.
Dim element_count_or_zero(const Value* value);
// Bytes of all inputs and outputs.
Dim operand_bytes(const Node& node);

}  // namespace neo
