#include "ops/elements.h"
#include "routines/cpu/eltwise/typed_compiler.h"

namespace neo {
namespace {

std::optional<Operand> double_input(TypedCompiler& c, size_t i = 0) {
  const auto x = c.input(i);
  return x && x->lane == Lane::F64 ? x : std::nullopt;
}

template <TypedOp kOp>
std::optional<Operand> emit_function(TypedCompiler& c) {
  const auto x = double_input(c);
  return x ? std::optional(c.step(kOp, *x)) : std::nullopt;
}

Operand plus(TypedCompiler& c, Operand a, Operand b) {
  return c.step(TypedOp::Add, a, b);
}
Operand times(TypedCompiler& c, Operand a, Operand b) {
  return c.step(TypedOp::Mul, a, b);
}
Operand is_below(TypedCompiler& c, Operand x, double bound) {
  return c.test(TypedOp::Less, x, c.real(bound));
}
Operand is_above(TypedCompiler& c, Operand x, double bound) {
  return c.test(TypedOp::Less, c.real(bound), x);
}
Operand magnitude(TypedCompiler& c, Operand x) {
  return c.step(TypedOp::Abs, x);
}
Operand unit_clamp(TypedCompiler& c, Operand x) {
  return c.step(TypedOp::Max, c.step(TypedOp::Min, x, c.real(1)), c.real(0));
}
Operand softplus_of(TypedCompiler& c, Operand x) {
  const Operand falling = c.step(TypedOp::Exp, c.mask(TypedOp::BitOr, x, sign_bit(Lane::F64)));
  const Operand tail = c.step(TypedOp::Log1p, falling);
  return plus(c, c.step(TypedOp::Max, x, c.real(0)), tail);
}
Operand gelu_of(TypedCompiler& c, Operand x, bool by_tanh) {
  if (by_tanh) {
    // 1/2 (1 + tanh u) is sigmoid(2 u).
    constexpr double kScale = 2 * 0.79788456080286535588;  // 2 sqrt(2 / pi)
    const Operand cubic = plus(c, times(c, times(c, x, x), c.real(kScale * 0.044715)), c.real(kScale));
    return times(c, x, c.step(TypedOp::Sigmoid, times(c, x, cubic)));
  }
  const Operand erf = c.step(TypedOp::Erf, times(c, x, c.real(0.70710678118654752440)));
  return times(c, times(c, x, c.real(0.5)), plus(c, erf, c.real(1)));
}

// f(c, x, p, q) of one float64 input and two attributes.
template <auto kFunction>
std::optional<Operand> emit_double(TypedCompiler& c) {
  const auto x = double_input(c);
  return x ? std::optional(kFunction(c, *x)) : std::nullopt;
}

Operand reciprocal(TypedCompiler& c, Operand x) {
  return c.step(TypedOp::Div, c.real(1), x);
}
Operand celu(TypedCompiler& c, Operand x) {
  const Operand alpha = c.real(c.attr("alpha", 1));
  const Operand falling = times(c, c.step(TypedOp::Expm1, c.step(TypedOp::Div, x, alpha)), alpha);
  return plus(c, c.step(TypedOp::Max, x, c.real(0)), c.step(TypedOp::Min, falling, c.real(0)));
}
Operand elu(TypedCompiler& c, Operand x) {
  const Operand falling = times(c, c.step(TypedOp::Expm1, x), c.real(c.attr("alpha", 1)));
  return c.select(is_below(c, x, 0), falling, x);
}
Operand selu(TypedCompiler& c, Operand x) {
  const Operand falling = times(c, c.step(TypedOp::Expm1, x), c.real(c.attr("alpha", 1.67326319217681884765625)));
  return times(c, c.select(is_above(c, x, 0), x, falling), c.real(c.attr("gamma", 1.05070102214813232421875)));
}
Operand hard_sigmoid(TypedCompiler& c, Operand x) {
  return unit_clamp(c, plus(c, times(c, x, c.real(c.attr("alpha", as_float(0.2)))), c.real(c.attr("beta", 0.5))));
}
Operand hard_swish(TypedCompiler& c, Operand x) {
  return times(c, unit_clamp(c, plus(c, c.step(TypedOp::Div, x, c.real(6)), c.real(0.5))), x);
}
Operand leaky_relu(TypedCompiler& c, Operand x) {
  return c.select(is_below(c, x, 0), times(c, x, c.real(c.attr("alpha", as_float(0.01)))), x);
}
Operand thresholded_relu(TypedCompiler& c, Operand x) {
  return c.select(is_above(c, x, c.attr("alpha", 1)), x, c.real(0));
}
Operand mish(TypedCompiler& c, Operand x) {
  return times(c, c.step(TypedOp::Tanh, softplus_of(c, x)), x);
}
Operand softsign(TypedCompiler& c, Operand x) {
  return c.step(TypedOp::Div, x, plus(c, magnitude(c, x), c.real(1)));
}
Operand swish(TypedCompiler& c, Operand x) {
  const double alpha = c.attr("alpha", c.node().op == "com.microsoft.QuickGelu" ? as_float(1.702) : 1);
  return times(c, c.step(TypedOp::Sigmoid, alpha == 1 ? x : times(c, x, c.real(alpha))), x);
}

std::optional<Operand> emit_gelu(TypedCompiler& c) {
  const bool fast = c.node().op == "com.microsoft.FastGelu" || c.node().string_attr("approximate", "none") == "tanh";
  const auto x = double_input(c);
  if (!x) return std::nullopt;
  return gelu_of(c, c.node().input(1) ? plus(c, *x, *c.input(1)) : *x, fast);
}

std::optional<Operand> emit_swiglu(TypedCompiler& c) {
  const auto x = double_input(c);
  return x ? std::optional(times(c, swish(c, *x), *c.input(1))) : std::nullopt;
}

constexpr NamedEmit kFunctions[] = {
    {"Acos", emit_function<TypedOp::Acos>},
    {"Acosh", emit_function<TypedOp::Acosh>},
    {"Asin", emit_function<TypedOp::Asin>},
    {"Asinh", emit_function<TypedOp::Asinh>},
    {"Atan", emit_function<TypedOp::Atan>},
    {"Atanh", emit_function<TypedOp::Atanh>},
    {"Ceil", emit_function<TypedOp::Ceil>},
    {"Celu", emit_double<celu>},
    {"Cos", emit_function<TypedOp::Cos>},
    {"Cosh", emit_function<TypedOp::Cosh>},
    {"Elu", emit_double<elu>},
    {"Erf", emit_function<TypedOp::Erf>},
    {"Exp", emit_function<TypedOp::Exp>},
    {"Floor", emit_function<TypedOp::Floor>},
    {"Gelu", emit_gelu},
    {"HardSigmoid", emit_double<hard_sigmoid>},
    {"HardSwish", emit_double<hard_swish>},
    {"LeakyRelu", emit_double<leaky_relu>},
    {"Log", emit_function<TypedOp::Log>},
    {"Mish", emit_double<mish>},
    {"Reciprocal", emit_double<reciprocal>},
    {"Round", emit_function<TypedOp::Round>},
    {"Selu", emit_double<selu>},
    {"Sigmoid", emit_function<TypedOp::Sigmoid>},
    {"Sin", emit_function<TypedOp::Sin>},
    {"Sinh", emit_function<TypedOp::Sinh>},
    {"Softplus", emit_double<softplus_of>},
    {"Softsign", emit_double<softsign>},
    {"Sqrt", emit_function<TypedOp::Sqrt>},
    {"SwiGLU", emit_swiglu},
    {"Swish", emit_double<swish>},
    {"Tan", emit_function<TypedOp::Tan>},
    {"Tanh", emit_function<TypedOp::Tanh>},
    {"ThresholdedRelu", emit_double<thresholded_relu>},
    {"com.microsoft.BiasGelu", emit_gelu},
    {"com.microsoft.FastGelu", emit_gelu},
    {"com.microsoft.Gelu", emit_gelu},
    {"com.microsoft.QuickGelu", emit_double<swish>},
};

}  // namespace

std::vector<NamedEmit> double_functions() {
  return {std::begin(kFunctions), std::end(kFunctions)};
}

}  // namespace neo
