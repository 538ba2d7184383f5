#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/rewriter.h"

namespace neo {

// Questions of recognition to a graph.

// The node that makes a value, where it is one of this operator; else null.
Node* made_by(const Value* value, std::string_view op);

// The number that every element of a floating point or integer constant holds.
std::optional<double> uniform(const Value* value);

// Equal up to the digits that exporters round constants to.
bool is_near(double a, double b);

// A value as number * product of factors / product of divisors, read through Mul, Div, Neg, Reciprocal and Pow by a
// whole number, as far as nobody else reads the parts.
struct Product {
  double number = 1;
  std::vector<Value*> factors;
  std::vector<Value*> divisors;

  bool is(double expected_number, std::vector<Value*> expected_factors) const;
};
Product as_product(const Rewriter& rewriter, Value* value);
// The same of a value that others may read too.
Product as_whole_product(const Rewriter& rewriter, Value* value);

// u + number, where a value is written as that: Add, or Sub of a constant.
struct Shifted {
  Value* value = nullptr;
  double number = 0;
};
std::optional<Shifted> as_shifted(const Value* value);

// The bounds of a Relu or of a Clip by constants; infinite where there is none.
struct Bounds {
  double lo;
  double hi;
};
std::optional<Bounds> bounds_of(const Node& node);
// clamp(clamp(x, inner), outer)
Bounds within(Bounds inner, Bounds outer);

// The axes of a reduction over known axes, from 0 on and in order; keepdims must be as given.
std::optional<std::vector<int64_t>> reduced_axes(const Node& node, bool keepdims);

}  // namespace neo
