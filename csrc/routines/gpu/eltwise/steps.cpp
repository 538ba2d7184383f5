#include "routines/gpu/eltwise/steps.h"

#include <cmath>

#include "base/check.h"
#include "routines/gpu/int8/codes.h"

namespace neo::gpu {

using kernel::broadcast;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;
using kernel::real;
using kernel::select;

namespace {

// A number in the lanes of `like`.
Expr number(double value, const Expr& like) {
  const Expr one = real(value, like->type.scalar());
  return like->type.lanes == 1 ? one : broadcast(one, like->type.lanes);
}

Expr whole(int64_t value) {
  return kernel::integer(value, {DType::Int64, 1});
}

Expr truth(const Expr& condition, const Expr& like) {
  return select(condition, number(1, like), number(0, like));
}

Expr is_true(const Expr& x) {
  return x != number(0, x);
}

// exp(x) - 1 without its cancellation: tanh(x / 2) (exp(x) + 1).
Expr expm1(Builder& builder, const Expr& x) {
  const Expr e = builder.let("e", call(Op::Exp, x));
  return select(x > number(30, x), e, call(Op::Tanh, x * number(0.5, x)) * (e + number(1, x)));
}

// log(1 + e) for e in [0, 1].
Expr log1p(Builder& builder, const Expr& e) {
  const Expr one = number(1, e), u = builder.let("u", e + one);
  return select(u == one, e, call(Op::Log, u) * e / select(u == one, one, u - one));
}

Expr softplus(Builder& builder, const Expr& x) {
  const Expr e = builder.let("e", call(Op::Exp, -call(Op::Abs, x)));
  return builder.let("plus", select(x < number(0, x), number(0, x), x) + log1p(builder, e));
}

}  // namespace

Expr call(Op function, const Expr& x) {
  return kernel::make(function, {x});
}

Expr max_nan(const Expr& a, const Expr& b) {
  return select(a < b, b, select(b == b, a, b));
}

Expr min_nan(const Expr& a, const Expr& b) {
  return select(b < a, b, select(b == b, a, b));
}

Expr clamp_nan(Builder& builder, const Expr& x, const Expr& lo, const Expr& hi) {
  const Expr low = builder.let("low", select(x < lo, lo, x));
  return select(hi < low, hi, low);
}

Expr sigmoid(const Expr& x) {
  return number(1, x) / (number(1, x) + call(Op::Exp, -x));
}

DType memory_dtype(EltwiseType type) {
  switch (type) {
    case EltwiseType::F32:
    case EltwiseType::F16:
    case EltwiseType::BF16:
      return DType::Float32;
    case EltwiseType::U8:
    case EltwiseType::Bool:
      return DType::UInt8;
    case EltwiseType::I8:
      return DType::Int8;
    case EltwiseType::I32:
      return DType::Int32;
    case EltwiseType::I64:
      return DType::Int64;
    default:
      return DType::Undefined;
  }
}

DType storage_dtype(EltwiseType type) {
  if (type == EltwiseType::F16) return DType::Float16;
  return type == EltwiseType::BF16 ? DType::BFloat16 : memory_dtype(type);
}

Expr apply_step(Builder& builder, const EltwiseStep& s, const Expr& a, const Expr& b, const Expr& c) {
  const auto n = [&](double value) { return number(value, a); };
  const Expr p = n(s.p), q = n(s.q), zero = n(0), one = n(1);
  const auto as_truth = [&](const Expr& condition) { return truth(condition, a); };
  switch (s.op) {
    case EltwiseOp::Copy:
      return a;
    case EltwiseOp::Neg:
      return -a;
    case EltwiseOp::Abs:
      return call(Op::Abs, a);
    case EltwiseOp::Sqrt:
      return call(Op::Sqrt, a);
    case EltwiseOp::Reciprocal:
      return one / a;
    case EltwiseOp::Exp:
      return call(Op::Exp, a);
    case EltwiseOp::Log:
      return call(Op::Log, a);
    case EltwiseOp::Tanh:
      return call(Op::Tanh, a);
    case EltwiseOp::Sigmoid:
      return sigmoid(a);
    case EltwiseOp::Erf:
      return call(Op::Erf, a);
    case EltwiseOp::Relu:
      return select(a < zero, zero, a);
    case EltwiseOp::LeakyRelu:
      return select(a < zero, p * a, a);
    case EltwiseOp::Elu:
      return select(a < zero, p * expm1(builder, a), a);
    case EltwiseOp::Selu:
      return q * select(a > zero, a, p * expm1(builder, a));
    case EltwiseOp::Celu:
      return select(a < zero, p * expm1(builder, a / p), a);
    case EltwiseOp::Clip:
      return clamp_nan(builder, a, p, q);
    case EltwiseOp::HardSigmoid:
      return clamp_nan(builder, builder.let("line", p * a + q), zero, one);
    case EltwiseOp::HardSwish:
      return a * clamp_nan(builder, builder.let("line", a * n(1.0 / 6) + n(0.5)), zero, one);
    case EltwiseOp::Softplus:
      return softplus(builder, a);
    case EltwiseOp::Softsign:
      return a / (one + call(Op::Abs, a));
    case EltwiseOp::Gelu:
      return n(0.5) * a * (one + call(Op::Erf, a * n(1 / std::sqrt(2.0))));
    case EltwiseOp::GeluTanh:
      return n(0.5) * a *
             (one + call(Op::Tanh, n(std::sqrt(2 / 3.14159265358979323846)) * (a + n(0.044715) * a * a * a)));
    case EltwiseOp::Mish:
      return a * call(Op::Tanh, softplus(builder, a));
    case EltwiseOp::Swish:
      return a * sigmoid(s.p == 1.0f ? a : p * a);
    case EltwiseOp::Floor:
      return call(Op::Floor, a);
    case EltwiseOp::Ceil:
      return call(Op::Ceil, a);
    case EltwiseOp::Round:
      return call(Op::Round, a);
    case EltwiseOp::Sign:
      return select(a > zero, one, select(a < zero, -one, a));
    case EltwiseOp::Sin:
      return call(Op::Sin, a);
    case EltwiseOp::Cos:
      return call(Op::Cos, a);
    case EltwiseOp::Square:
      return a * a;
    case EltwiseOp::Not:
      return as_truth(a == zero);
    case EltwiseOp::IsNan:
      return as_truth(a != a);
    case EltwiseOp::ThresholdedRelu:
      return select(a > p, a, zero);
    case EltwiseOp::Shrink:
      return select(a < -q, a + p, select(a > q, a - p, zero));
    case EltwiseOp::Scale:
      return p * a;
    case EltwiseOp::Add:
      return a + b;
    case EltwiseOp::Sub:
      return a - b;
    case EltwiseOp::Mul:
      return a * b;
    case EltwiseOp::Div:
      return a / b;
    case EltwiseOp::Min:
      return min_nan(a, b);
    case EltwiseOp::Max:
      return max_nan(a, b);
    case EltwiseOp::Pow:
      return kernel::make(Op::Pow, {a, b});
    case EltwiseOp::PRelu:
      return select(a < zero, a * b, a);
    case EltwiseOp::Equal:
      return as_truth(a == b);
    case EltwiseOp::Less:
      return as_truth(a < b);
    case EltwiseOp::LessEqual:
      return as_truth(a <= b);
    case EltwiseOp::Greater:
      return as_truth(a > b);
    case EltwiseOp::GreaterEqual:
      return as_truth(a >= b);
    case EltwiseOp::And:
      return select(is_true(a), truth(is_true(b), a), zero);
    case EltwiseOp::Or:
      return select(is_true(a), one, truth(is_true(b), a));
    case EltwiseOp::Xor:
      return as_truth(a != b);
    case EltwiseOp::Where:
      return select(is_true(a), b, c);
    case EltwiseOp::MulAdd:
      return a * b + c;
    case EltwiseOp::Quantize: {
      // Beyond this all codes are the last ones.
      const Expr most = builder.let("most", n(2.0 * (static_cast<double>(s.q) - s.p)) * b);
      const Expr bounded = builder.let("bounded", min(max(a, -most), most));
      const Expr steps = exact_quotient(builder, bounded, b, exact_inverse(builder, b));
      const Expr code = builder.let("code", call(Op::Round, steps) + c);
      return select(a == a, builder.let("held", clamp_nan(builder, code, p, q)), c);
    }
    default:
      break;
  }
  NEO_ASSERT(false, "Got step ", static_cast<int>(s.op));
}

Expr apply_whole_step(EltwiseOp op, const Expr& a, const Expr& b, const Expr& c) {
  const Expr zero = whole(0), one = whole(1);
  const auto as_truth = [&](const Expr& condition) { return select(condition, one, zero); };
  switch (op) {
    case EltwiseOp::Copy:
      return a;
    case EltwiseOp::Neg:
      return zero - a;
    case EltwiseOp::Abs:
      return select(a < zero, zero - a, a);
    case EltwiseOp::Sign:
      return select(a > zero, one, select(a < zero, whole(-1), zero));
    case EltwiseOp::Not:
      return as_truth(a == zero);
    case EltwiseOp::Add:
      return a + b;
    case EltwiseOp::Sub:
      return a - b;
    case EltwiseOp::Mul:
      return a * b;
    case EltwiseOp::Min:
      return select(a < b, a, b);
    case EltwiseOp::Max:
      return select(a < b, b, a);
    case EltwiseOp::Equal:
      return as_truth(a == b);
    case EltwiseOp::Less:
      return as_truth(a < b);
    case EltwiseOp::LessEqual:
      return as_truth(a <= b);
    case EltwiseOp::Greater:
      return as_truth(a > b);
    case EltwiseOp::GreaterEqual:
      return as_truth(a >= b);
    case EltwiseOp::And:
      return as_truth(a != zero && b != zero);
    case EltwiseOp::Or:
      return as_truth(a != zero || b != zero);
    case EltwiseOp::Xor:
      return as_truth((a != zero) != (b != zero));
    case EltwiseOp::Where:
      return select(a != zero, b, c);
    default:
      NEO_ASSERT(false, "Got step ", static_cast<int>(op));
  }
}

}  // namespace neo::gpu
