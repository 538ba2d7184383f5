#pragma once

// The rarer elementary functions on F32, in every tier, with the conventions of simd/math.h. Errors, for every float
// where the function is defined:
//
//   tan                                                       4 ulp
//   asin, acos, atan, sinh, cosh, asinh, acosh, atanh         3 ulp
//   pow                                                       1 ulp

#include "simd/math.h"
#include "simd/math64.h"

namespace neo::NEO_ISA {

namespace detail {

constexpr float kHalfPi = 0x1.921fb6p+0f;

// asin(x) for |x| <= 1/2.
NEO_INLINE F32 asin_near_zero(F32 x) {
  constexpr float kP[] = {0x1.5555cap-3f, 0x1.330136p-4f, 0x1.748efep-5f, 0x1.8b86bp-6f, 0x1.59f3d8p-5f};
  const F32 square = x * x;
  return fma(x * square, polynomial(square, kP), x);
}
// asin(sqrt((1 - t) / 2)), half the angle whose cosine is t, for 1/2 <= t <= 1.
NEO_INLINE F32 half_angle(F32 t) {
  return asin_near_zero(sqrt((broadcast(1.0f) - t) * broadcast(0.5f)));
}

// e^t / 2 for t >= 0, infinite only where that is.
NEO_INLINE F32 half_exp(F32 t) {
  const ExpParts<F32> e = exp_parts(min(broadcast(90.0f), t));
  return scale_by_exp2(exp_near_zero(e.r), e.n - broadcast(1.0f));
}

}  // namespace detail

NEO_INLINE F32 tan(F32 x) {
  return sin(x) / cos(x);
}

NEO_INLINE F32 asin(F32 x) {
  const F32 t = abs(x);
  const F32 far = broadcast(detail::kHalfPi) - broadcast(2.0f) * detail::half_angle(t);
  return copy_sign(select(lt(t, broadcast(0.5f)), detail::asin_near_zero(t), far), x);
}

NEO_INLINE F32 acos(F32 x) {
  const F32 angle = broadcast(2.0f) * detail::half_angle(abs(x));
  const F32 far = select(lt(x, zero()), broadcast(2.0f * detail::kHalfPi) - angle, angle);
  return select(lt(abs(x), broadcast(0.5f)), broadcast(detail::kHalfPi) - detail::asin_near_zero(x), far);
}

NEO_INLINE F32 atan(F32 x) {
  constexpr float kP[] = {-0x1.55554ap-2f, 0x1.9991a6p-3f, -0x1.23b636p-3f, 0x1.b1fa0ep-4f, -0x1.f22aecp-5f};
  const F32 one = broadcast(1.0f), t = abs(x);
  const Mask large = gt(t, one);
  const F32 z = select(large, one / t, t);
  // Beyond tan(pi / 8) what an eighth of a turn leaves.
  const Mask turned = gt(z, broadcast(0.41421356f));
  const F32 rest = select(turned, (z - one) / (z + one), z);
  const F32 square = rest * rest;
  const F32 near = fma(rest * square, polynomial(square, kP), rest);
  const F32 angle = select(turned, near + broadcast(0.5f * detail::kHalfPi), near);
  return copy_sign(select(large, broadcast(detail::kHalfPi) - angle, angle), x);
}

NEO_INLINE F32 sinh(F32 x) {
  const F32 t = abs(x), one = broadcast(1.0f);
  const F32 e = expm1(min(one, t));
  const F32 small = broadcast(0.5f) * (e + e / (e + one));
  const F32 half = detail::half_exp(t);
  return copy_sign(select(lt(t, one), small, half - broadcast(0.25f) / half), x);
}

NEO_INLINE F32 cosh(F32 x) {
  const F32 half = detail::half_exp(abs(x));
  return half + broadcast(0.25f) / half;
}

NEO_INLINE F32 asinh(F32 x) {
  const F32 t = abs(x), one = broadcast(1.0f);
  const F32 far = broadcast(0x1p30f), square = t * t;
  const F32 near = log1p(t + square / (one + sqrt(one + square)));
  return copy_sign(select(lt(t, far), near, log(t) + broadcast(0x1.62e43p-1f)), x);
}

NEO_INLINE F32 acosh(F32 x) {
  const F32 one = broadcast(1.0f), u = x - one;
  const F32 near = log1p(u + sqrt(u * (x + one)));
  const F32 y = select(lt(x, broadcast(0x1p30f)), near, log(x) + broadcast(0x1.62e43p-1f));
  return select(lt(x, one), broadcast(NAN), y);
}

NEO_INLINE F32 atanh(F32 x) {
  const F32 t = abs(x);
  return copy_sign(broadcast(0.5f) * log1p((t + t) / (broadcast(1.0f) - t)), x);
}

// Powers of positive numbers by way of double, which has digits to spare; the C library's powf knows the others.
NEO_INLINE F32 pow(F32 x, F32 y) {
  float a[kLanes], b[kLanes];
  store(a, x);
  store(b, y);
  const F32 infinity = broadcast(INFINITY);
  if (all(gt(x, zero()) & lt(x, infinity) & lt(abs(y), infinity))) [[likely]] {
    for (int i = 0; i < kLanes; ++i) a[i] = (float)exp((double)b[i] * log((double)a[i]));
  } else {
    for (int i = 0; i < kLanes; ++i) a[i] = ::powf(a[i], b[i]);
  }
  return load(a);
}

}  // namespace neo::NEO_ISA
