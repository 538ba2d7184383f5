#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/pattern.h"

namespace neo {

// The sums that make the gates of a written-out recurrent cell.

// leaf [rows, depth] times rows `first_row` on of a constant matrix [.., ..], or of its transpose.
struct GateTerm {
  Value* leaf = nullptr;
  const Value* weights = nullptr;  // null: the leaf itself, which no matrix multiplies
  bool transposed = false;
  int64_t first_row = 0;
  int64_t depth = 0;
  int64_t first_column = 0;

  bool has_weights_of(const GateTerm& other) const;
};

// Terms and a bias of `width` columns.
struct GateSum {
  int64_t width = 0;
  std::vector<GateTerm> terms;
  std::vector<double> bias;
};

// A floating point value as such a sum, read through Gemm, MatMul, Add, Split, Slice, Concat and changes of rank. A
// value that is none of these is a sum of itself. None where its last axis is not known.
std::optional<GateSum> read_gate_sum(Value* value);

// A function that recurrent operators take, and what it is applied to.
struct GateFunction {
  std::string name;
  std::vector<double> numbers;  // alpha, beta
  Value* input = nullptr;

  bool is_same(const GateFunction& other) const { return name == other.name && numbers == other.numbers; }
};
std::optional<GateFunction> read_gate_function(Value* value);

// The value that is only given another rank: through Squeeze, Unsqueeze, Identity and Reshape that leave the last axis.
Value* unranked(Value* value);
// A constant whose rows are all alike, as numbers of one row of `width`.
std::optional<std::vector<double>> as_row(const Value* value, int64_t width);
// Whether every element is zero, as a constant or as a ConstantOfShape.
bool is_zero(Value* value);
// The same elements, or both zero.
bool is_same_state(Value* a, Value* b);

// Columns `first` on of a term's matrix as [width][depth] elements of `to`.
void copy_columns(const GateTerm& term, int64_t width, bool negate, double* to, int64_t stride);

}  // namespace neo
