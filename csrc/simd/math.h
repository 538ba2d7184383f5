#pragma once

// Elementary functions on F32, in every tier of simd/vec.h. Errors are against the exact value, for every float of the
// stated range (tests/cpp/test_simd.cpp holds them to these bounds). Infinities and NaN give what C's math library
// gives. Results round to subnormals and to zero like any other, but for those of exp_falling, sigmoid and softplus,
// which would be subnormal only far from all that is trained: many processors take tens of times as long for a vector
// that has one. They are zeros.
//
//   exp, expm1, log, log1p      2 ulp
//   sigmoid, tanh, erf          3 ulp; softplus 3 ulp
//   sin, cos                    2 ulp
//   gelu, gelu_tanh, silu       3 ulp of max(|x|, result): the cancellation of 1 + erf at negative x is not repaired

#include <math.h>

#include "simd/pack.h"

namespace neo::NEO_ISA {

// Horner's rule; coefficients from the constant term up.
template <class V, int N>
NEO_INLINE V polynomial(V x, const float (&c)[N]) {
  V y = constant<V>(c[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, constant<V>(c[i]));
  return y;
}

// A function of the C library per lane, where `lanes` holds; elsewhere `otherwise`.
template <float (*f)(float)>
NEO_INLINE F32 per_lane(F32 x, Mask lanes, F32 otherwise) {
  float in[kLanes], out[kLanes];
  store(in, x);
  for (int i = 0; i < kLanes; ++i) out[i] = f(in[i]);
  return select(lanes, load(out), otherwise);
}

namespace detail {

// sign x = n ln 2 + sign r with |r| <= ln 2 / 2, for a sign of 1 or -1 and |x| <= 10000.
template <class V>
struct ExpParts {
  V n, r;
};

// The rest r of x beside n.
template <int kSign, class V>
NEO_INLINE V exp_rest(V x, V n) {
  // The high part of ln 2 has 9 bits, so n times it is exact also without a fused multiply-add.
  const V high = fnma(n, constant<V>(kSign * 0x1.63p-1f), x);
  return fnma(n, constant<V>(kSign * -0x1.bd0106p-13f), high);
}

template <int kSign = 1, class V>
NEO_INLINE ExpParts<V> exp_parts(V x) {
  // Beside 1.5 * 2^23 there is no place for a fraction.
  const V whole = constant<V>(0x1.8p23f);
  const V n = fma(x, constant<V>(kSign * 0x1.715476p+0f), whole) - whole;
  return {n, exp_rest<kSign>(x, n)};
}

// e^r - 1 = r + tail for |r| <= ln 2 / 2.
NEO_INLINE F32 exp_tail(F32 r) {
  constexpr float kQ[] = {0.5f, 0x1.555486p-3f, 0x1.555454p-5f, 0x1.124148p-7f, 0x1.6dbc68p-10f};
  return r * r * polynomial(r, kQ);
}

// e^(sign r), the same polynomial.
template <int kSign = 1, class V>
NEO_INLINE V exp_near_zero(V r) {
  constexpr float kP[] = {1.0f,           kSign * 1.0f,           0.5f,           kSign * 0x1.555486p-3f,
                          0x1.555454p-5f, kSign * 0x1.124148p-7f, 0x1.6dbc68p-10f};
  return polynomial(r, kP);
}

// sign x = n ln 2 + sign r with n in steps of 1 / kExp2Steps and |r| <= ln 2 / 2 / kExp2Steps, and 2^n, for |n| <= 126.
template <class V>
struct ExpSteps {
  V n, power;
};

template <int kSign, class V>
NEO_INLINE ExpSteps<V> exp_steps(V x) {
  // Beside it there is no place for a fraction of a step.
  const V whole = constant<V>(0x1.8p23f / kExp2Steps);
  const V steps = fma(x, constant<V>(kSign * 0x1.715476p+0f), whole);
  return {steps - whole, exp2_of_steps(steps)};
}

}  // namespace detail

template <class V>
NEO_INLINE V exp(V x) {
  // Beyond these limits the result is 0 or infinity; min and max hand on a NaN in the second operand.
  const V limited = min(constant<V>(89.0f), max(constant<V>(-104.0f), x));
  const detail::ExpParts<V> e = detail::exp_parts(limited);
  return scale_by_exp2(detail::exp_near_zero(e.r), e.n);
}

// exp(sign x) for |x| <= 126 ln 2, where no step can overflow.
template <int kSign = 1, class V>
NEO_INLINE V exp_bounded(V x) {
  const detail::ExpSteps<V> e = detail::exp_steps<kSign>(x);
  const V r = detail::exp_rest<kSign>(x, e.n);
  if constexpr (kExp2Steps == 1) {
    return e.power * detail::exp_near_zero<kSign>(r);
  } else {
    constexpr float kP[] = {kSign * 1.0f, 0x1.0000a4p-1f, kSign * 0x1.5555d8p-3f};
    return fma(e.power, r * polynomial(r, kP), e.power);
  }
}

// exp(-|x|), or with a NaN.
template <class V>
NEO_INLINE V exp_falling(V x) {
  const V t = abs(x), most = constant<V>(87.33654f);  // -126 ln 2, the exponent of the least normal number
  return select(lt(most, t), constant<V>(0.0f), exp_bounded<-1>(min(most, t)));
}

NEO_INLINE F32 expm1(F32 x) {
  const F32 limited = min(broadcast(89.0f), max(broadcast(-104.0f), x));
  const detail::ExpParts<F32> e = detail::exp_parts(limited);
  const F32 part = e.r + detail::exp_tail(e.r);
  // Near zero 2^n - 1 is exact and 2^n (e^r - 1) small beside it; far away the 1 no longer counts.
  const F32 power = exp2_of(round_to_i32(min(broadcast(30.0f), max(broadcast(-30.0f), e.n))));
  const F32 near = fma(power, part, power - broadcast(1.0f));
  const F32 far = scale_by_exp2(broadcast(1.0f) + part, e.n) - broadcast(1.0f);
  return select(eq(x, zero()), x, select(lt(abs(e.n), broadcast(25.0f)), near, far));
}

NEO_INLINE F32 log(F32 x) {
  constexpr float kP[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b4p-3f,  -0x1.555c4ep-3f, 0x1.233776p-3f,
                          -0x1.fc21d2p-4f, 0x1.e6efa2p-4f,  -0x1.de3d8ep-4f, 0x1.145b0ap-4f};
  const Mask tiny = lt(x, broadcast(0x1p-126f));
  const F32 normal = select(tiny, x * broadcast(0x1p23f), x);
  // x = 2^e m with sqrt(1/2) <= m < sqrt(2).
  const I32 bits = bits_as_i32(normal) - broadcast_i32(0x3f3504f3);
  const I32 e = shift_right<23>(bits);
  const F32 m = bits_as_f32(bits_as_i32(normal) - shift_left<23>(e));
  const F32 exponent = to_f32(e) - select(tiny, broadcast(23.0f), zero());
  const F32 f = m - broadcast(1.0f);
  const F32 square = f * f;
  F32 y = fma(square * f, polynomial(f, kP), exponent * broadcast(-0x1.bd0106p-13f));
  y = fnma(square, broadcast(0.5f), y);
  y = fma(exponent, broadcast(0x1.63p-1f), f + y);
  y = select(eq(x, zero()), broadcast(-INFINITY), y);
  y = select(lt(x, zero()), broadcast(NAN), y);
  return select(lt(x, broadcast(INFINITY)), y, select(eq(x, broadcast(INFINITY)), x, broadcast(NAN)));
}

NEO_INLINE F32 log1p(F32 x) {
  const F32 u = broadcast(1.0f) + x;
  // The sum's rounding error, relative to u.
  const F32 lost = (x - (u - broadcast(1.0f))) / u;
  const F32 y = log(u) + lost;
  const Mask special = mask_not(lt(abs(x), broadcast(0x1p100f))) | eq(u, zero());
  return select(eq(x, zero()), x, select(special, log(u), y));
}

template <class V>
NEO_INLINE V sigmoid(V x) {
  const V e = exp_falling(x);
  const V one = constant<V>(1.0f);
  return quotient(select(lt(x, constant<V>(0.0f)), e, one), one + e);
}

template <class V>
NEO_INLINE V tanh(V x) {
  constexpr float kP[] = {-0x1.555534p-2f, 0x1.11076ap-3f, -0x1.b8447ap-5f, 0x1.5257a4p-6f, -0x1.76ae36p-8f};
  const V t = abs(x);
  const V square = x * x;
  const V small = fma(t * square, polynomial(square, kP), t);
  const V e = exp_bounded(min(constant<V>(10.0f), t) * constant<V>(2.0f));
  const V large = constant<V>(1.0f) - quotient(constant<V>(2.0f), e + constant<V>(1.0f));
  return copy_sign(select(lt(t, constant<V>(0.625f)), small, large), x);
}

template <class V>
NEO_INLINE V erf(V x) {
  constexpr float kSmall[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e1cp-4f, -0x1.b80ff2p-6f,
                              0x1.54d42cp-8f, -0x1.aaa2e0p-11f, 0x1.5e062cp-14f};
  // erfc(t) = exp(-t - t q(t)) for 0.92 <= t <= 4; beyond, erf rounds to 1.
  constexpr float kLarge[] = {0x1.077ac6p-3f, 0x1.45308ap-1f,   0x1.b340dep-4f, -0x1.85b294p-6f,
                              0x1.dee670p-9f, -0x1.5575aep-12f, 0x1.8295fap-17f};
  const V t = min(constant<V>(4.0f), abs(x));
  const V square = t * t;
  const V small = fma(x, polynomial(square, kSmall), x);
  const V large = constant<V>(1.0f) - exp_bounded<-1>(fma(t, polynomial(t, kLarge), t));
  return select(lt(t, constant<V>(0.925f)), small, copy_sign(large, x));
}

NEO_INLINE F32 softplus(F32 x) {
  return max(zero(), x) + log1p(exp_falling(x));
}
// Beside x an error of e^-x counts a quarter of itself at most, so that the constants need fewer digits than those of
// exp. Below -80 the result is a zero.
template <class V>
NEO_INLINE V silu(V x) {
  const V one = constant<V>(1.0f), far = constant<V>(80.0f);
  const V t = limit(x, far);
  const detail::ExpSteps<V> e = detail::exp_steps<-1>(t);
  const V r = fma(e.n, constant<V>(0x1.62e43p-1f), t);
  V near;
  if constexpr (kExp2Steps == 1) {
    constexpr float kP[] = {0x1.000002p+0f,  -0x1.fffff6p-1f, 0x1.fffd18p-2f,
                            -0x1.555a1cp-3f, 0x1.575ff6p-5f,  -0x1.0fe52ep-7f};
    near = polynomial(r, kP);
  } else {
    constexpr float kP[] = {1.0f, -0x1.0000f6p+0f, 0x1.00007ap-1f};
    near = polynomial(r, kP);
  }
  return quotient(x, fma(e.power, near, one), lt(neg(far), x));
}
template <class V>
NEO_INLINE V gelu(V x) {
  return constant<V>(0.5f) * x * (constant<V>(1.0f) + erf(x * constant<V>(0.70710678118654752f)));
}
// The approximation by tanh; 1/2 (1 + tanh u) is sigmoid(2 u), which does not cancel.
template <class V>
NEO_INLINE V gelu_tanh(V x) {
  const V u = x * fma(x * x, constant<V>(2.0f * 0.7978845608f * 0.044715f), constant<V>(2.0f * 0.7978845608f));
  return x * sigmoid(u);
}

namespace detail {

// x = k pi / 2 + r with |r| <= pi / 4, for |x| <= 10000; the sine or, shifted by one quarter, the cosine.
NEO_INLINE F32 sine_of_quarters(F32 x, int shift) {
  constexpr float kS[] = {-0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f32p-13f, 0x1.6cbed2p-19f};
  constexpr float kC[] = {0x1.55554ap-5f, -0x1.6c0c22p-10f, 0x1.99e35ep-16f};
  const F32 k = round_even(x * broadcast(0x1.45f306p-1f));
  F32 r = fnma(k, broadcast(0x1.921fb6p+0f), x);
  r = fnma(k, broadcast(-0x1.777a5cp-25f), r);
  r = fnma(k, broadcast(-0x1.ee59dap-50f), r);
  const F32 square = r * r;
  const F32 sine = fma(square * r, polynomial(square, kS), r);
  const F32 cosine = fma(square * square, polynomial(square, kC), fnma(square, broadcast(0.5f), broadcast(1.0f)));
  const I32 quarter = round_to_i32(k) + broadcast_i32(shift);
  const Mask even = eq(quarter & broadcast_i32(1), broadcast_i32(0));
  const I32 sign = shift_left<30>(quarter & broadcast_i32(2));
  return bits_as_f32(bits_as_i32(select(even, sine, cosine)) ^ sign);
}

// Without a fused multiply-add the products above are not exact; and far away the constants have too few digits.
constexpr float kQuarterLimit = kFusedMultiplyAdd ? 10000.0f : 0.0f;

}  // namespace detail

NEO_INLINE F32 sin(F32 x) {
  const Mask near = lt(abs(x), broadcast(detail::kQuarterLimit));
  F32 y = detail::sine_of_quarters(x, 0);
  if (!all(near)) [[unlikely]]
    y = per_lane<::sinf>(x, !near, y);
  return select(eq(x, zero()), x, y);
}
NEO_INLINE F32 cos(F32 x) {
  const Mask near = lt(abs(x), broadcast(detail::kQuarterLimit));
  F32 y = detail::sine_of_quarters(x, 1);
  if (!all(near)) [[unlikely]]
    y = per_lane<::cosf>(x, !near, y);
  return y;
}

}  // namespace neo::NEO_ISA
