#pragma once

// The functions of gates, in the precision of float32.

#include "routines/patterns/cell_kind.h"
#include "simd/math.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Gates share divisions: sigmoid(x) = 1 / sigmoid_divisor(x), and tanh(x) is
// copy_sign(a / (a + 2), x) with a = tanh_part(x). Each is within 3 ulp, but for sigmoids below 1e-17, which stay
// there. Products of two divisors do not overflow.
NEO_INLINE F32 sigmoid_divisor(F32 x) {
  return broadcast(1.0f) + exp_bounded<-1>(min(broadcast(40.0f), max(broadcast(-40.0f), x)));
}

// e^(2 |x|) - 1, where tanh is not 1.
NEO_INLINE F32 tanh_part(F32 x) {
  const F32 t = min(broadcast(10.0f), abs(x));
  const detail::ExpParts<F32> e = detail::exp_parts(t + t);
  const F32 power = exp2_of(round_to_i32(e.n));
  return fma(power, e.r + detail::exp_tail(e.r), power - broadcast(1.0f));
}

NEO_INLINE F32 sigmoid_times_tanh(F32 x, F32 y) {
  const F32 part = tanh_part(y);
  return copy_sign(quotient(part, sigmoid_divisor(x) * (part + broadcast(2.0f))), y);
}

NEO_INLINE F32 tanh_gate(F32 x) {
  const F32 part = tanh_part(x);
  return copy_sign(quotient(part, part + broadcast(2.0f)), x);
}

struct Sigmoids {
  F32 first, second;

  NEO_INLINE Sigmoids(F32 x, F32 y) {
    const F32 a = sigmoid_divisor(x), b = sigmoid_divisor(y);
    const F32 inverse = quotient(broadcast(1.0f), a * b);
    first = b * inverse;
    second = a * inverse;
  }
};

template <class F>
NEO_INLINE void map_values(float* values, int64_t count, F&& f) {
  for (int64_t i = 0; i < count; ++i) store(values + i * kLanes, f(load(values + i * kLanes)));
}

// A function of `count` vectors, after the bound of its arguments.
__attribute__((noinline)) void apply_function(const CellRules& rules, int which, float* values, int64_t count) {
  const F32 a = broadcast(rules.a[which]), b = broadcast(rules.b[which]), one = broadcast(1.0f);
  if (rules.clip < __builtin_inff()) {
    const F32 bound = broadcast(rules.clip);
    map_values(values, count, [&](F32 x) NEO_LAMBDA { return min(bound, max(neg(bound), x)); });
  }
  switch (rules.functions[which]) {
    case CellFunction::Affine:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return fma(a, x, b); });
    case CellFunction::Clip:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return min(b, max(a, x)); });
    case CellFunction::Elu:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return select(lt(x, zero()), a * expm1(x), x); });
    case CellFunction::HardSigmoid:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return min(one, max(zero(), fma(a, x, b))); });
    case CellFunction::LeakyRelu:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return select(lt(x, zero()), a * x, x); });
    case CellFunction::Relu:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return max(zero(), x); });
    case CellFunction::ScaledTanh:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return a * tanh_gate(b * x); });
    case CellFunction::Sigmoid:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return quotient(one, sigmoid_divisor(x)); });
    case CellFunction::Softplus:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return softplus(x); });
    case CellFunction::Softsign:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return quotient(x, one + abs(x)); });
    case CellFunction::Tanh:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return tanh_gate(x); });
    case CellFunction::ThresholdedRelu:
      return map_values(values, count, [&](F32 x) NEO_LAMBDA { return select(lt(x, a), zero(), x); });
  }
}

}  // namespace
}  // namespace neo::NEO_ISA
