#include "routines/gpu/gemm/result.h"

#include <bit>

#include "base/check.h"

namespace neo::gpu {
namespace {

using kernel::Expr;
using kernel::make;
using kernel::Op;

Expr like(float value, const Expr& x) {
  const Expr number = kernel::real(value);
  return x->type.lanes == 1 ? number : kernel::broadcast(number, x->type.lanes);
}

// NaN stays.
Expr clamp(const Expr& x, const Expr& lo, const Expr& hi) {
  const Expr least = select(x < lo, lo, x);
  return select(least > hi, hi, least);
}

Expr sigmoid_of(const Expr& x) {
  return like(1.0f, x) / (like(1.0f, x) + make(Op::Exp, {-x}));
}

Expr softplus_of(const Expr& x) {
  const Expr magnitude = make(Op::Abs, {x});
  return select(x > like(0.0f, x), x, like(0.0f, x)) + make(Op::Log, {like(1.0f, x) + make(Op::Exp, {-magnitude})});
}

// exp(x) - 1, also where x is small.
Expr expm1_of(const Expr& x) {
  const Expr half = make(Op::Tanh, {x * like(0.5f, x)});
  const Expr near = like(2.0f, x) * half / (like(1.0f, x) - half);
  return select(make(Op::Abs, {x}) < like(1.0f, x), near, make(Op::Exp, {x}) - like(1.0f, x));
}

}  // namespace

Expr apply_step(const EltwiseStep& step, const Expr& x) {
  const Expr zero = like(0.0f, x), one = like(1.0f, x), p = like(step.p, x), q = like(step.q, x);
  switch (step.op) {
    case EltwiseOp::Relu:
      return select(x < zero, zero, x);
    case EltwiseOp::Clip:
      return clamp(x, p, q);
    case EltwiseOp::LeakyRelu:
      return select(x < zero, p * x, x);
    case EltwiseOp::Elu:
      return select(x < zero, p * expm1_of(x), x);
    case EltwiseOp::Sigmoid:
      return sigmoid_of(x);
    case EltwiseOp::Tanh:
      return make(Op::Tanh, {x});
    case EltwiseOp::HardSigmoid:
      return clamp(p * x + q, zero, one);
    case EltwiseOp::HardSwish:
      return x * clamp(x * like(1.0f / 6, x) + like(0.5f, x), zero, one);
    case EltwiseOp::Softplus:
      return softplus_of(x);
    case EltwiseOp::Gelu:
      return x * like(0.5f, x) * (one + make(Op::Erf, {x * like(0.70710678f, x)}));
    case EltwiseOp::GeluTanh:
      return x * like(0.5f, x) * (one + make(Op::Tanh, {like(0.79788456f, x) * (x + like(0.044715f, x) * x * x * x)}));
    case EltwiseOp::Mish:
      return x * make(Op::Tanh, {softplus_of(x)});
    case EltwiseOp::Swish:
      return x * sigmoid_of(p * x);
    default:
      NEO_ASSERT(false, "the step is not one of an epilogue. Got ", static_cast<int>(step.op));
  }
}

std::string ResultForm::tag() const {
  std::string out;
  if (has_bias) out += "b";
  if (has_residual) out += "r";
  if (has_clamp) out += "c";
  if (activation) {
    const auto bits = [](float v) { return static_cast<int64_t>(std::bit_cast<uint32_t>(v)); };
    out += str("a", static_cast<int>(activation->op), "x", bits(activation->p), "x", bits(activation->q));
  }
  return out.empty() ? "n" : out;
}

ResultParameters::ResultParameters(kernel::Builder& b, const ResultForm& form, const Expr& biases, const Expr& results)
    : form_(form) {
  if (form.has_bias) bias_ = b.input("bias", DType::Float32, biases);
  if (form.has_residual) residual_ = b.input("residual", DType::Float32, results);
  if (!form.has_clamp) return;
  lo_ = b.number("lo", DType::Float32);
  hi_ = b.number("hi", DType::Float32);
}

Expr ResultParameters::bias(const Expr& index, int lanes) const {
  if (bias_) return bias_->at(index, lanes);
  return lanes == 1 ? kernel::real(0) : kernel::broadcast(kernel::real(0), lanes);
}

Expr ResultParameters::residual(const Expr& index, int lanes) const {
  return residual_->at(index, lanes);
}

Expr ResultParameters::shape(Expr value) const {
  const int lanes = value->type.lanes;
  const auto wide = [&](const Expr& e) { return lanes == 1 ? e : kernel::broadcast(e, lanes); };
  if (form_.has_clamp) value = clamp(value, wide(lo_), wide(hi_));
  return form_.activation ? apply_step(*form_.activation, value) : value;
}

Expr ResultParameters::finish(const Expr& sums, const Expr& index) const {
  return shape(form_.has_residual ? sums + residual(index, sums->type.lanes) : sums);
}

void append_result_arguments(const ResultForm& form, LaunchArgument bias, LaunchArgument residual,
                             std::vector<LaunchArgument>& arguments) {
  if (form.has_bias) arguments.push_back(bias);
  if (form.has_residual) arguments.push_back(residual);
  if (!form.has_clamp) return;
  arguments.emplace_back(static_cast<double>(form.lo));
  arguments.emplace_back(static_cast<double>(form.hi));
}

}  // namespace neo::gpu
