#pragma once

// Elementary functions on double, free of branches so that loops over them become vectors in every tier. Infinities,
// NaN, zeros and denormal numbers give what C's math library gives.
//
//   exp, log          1 ulp (without a fused multiply-add 2)
//   expm1, tanh       3 ulp
//   sigmoid           3 ulp
//   sin, cos          2 ulp, for |x| <= kDoubleQuarterLimit alone

#include <math.h>

#include "simd/vec.h"

namespace neo::NEO_ISA {

NEO_INLINE uint64_t bits_of(double x) {
  uint64_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}
NEO_INLINE double double_of(uint64_t u) {
  double x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}
NEO_INLINE double copy_sign(double magnitude, double sign) {
  const uint64_t top = (uint64_t)1 << 63;
  return double_of((bits_of(magnitude) & ~top) | (bits_of(sign) & top));
}
NEO_INLINE double fma(double a, double b, double c) {
  if constexpr (kFusedMultiplyAdd) {
    return __builtin_fma(a, b, c);
  } else {
    return a * b + c;
  }
}

namespace detail {

// Beside it there is no place for a fraction, and the last bits of a sum with it are the whole number.
constexpr double kWhole = 0x1.8p52;

// Horner's rule; coefficients from the constant term up.
template <int N>
NEO_INLINE double polynomial(double x, const double (&c)[N]) {
  double y = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, c[i]);
  return y;
}

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| <= 1000.
struct DoubleExpParts {
  double n, r;
};
NEO_INLINE DoubleExpParts exp_parts(double x) {
  const double n = fma(x, 0x1.71547652b82fep+0, kWhole) - kWhole;
  // The high part of ln 2 has 33 bits, so n times it is exact also without a fused multiply-add.
  const double high = x - n * 0x1.62e42feep-1;
  return {n, high - n * 0x1.a39ef35793c76p-33};
}

// e^r - 1 for |r| <= ln 2 / 2: its series.
NEO_INLINE double expm1_near_zero(double r) {
  constexpr double kP[] = {1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
                           1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  return fma(r * r, polynomial(r, kP), r);
}

// 2^n for -1022 <= n <= 1023.
NEO_INLINE double double_exp2_of(double n) {
  return double_of((bits_of(n + kWhole) + 1023) << 52);
}

// e^x - 1 for |x| <= 700.
NEO_INLINE double expm1_bounded(double x) {
  const DoubleExpParts e = exp_parts(x);
  const double power = double_exp2_of(e.n);
  return fma(power, expm1_near_zero(e.r), power - 1.0);
}

}  // namespace detail

NEO_INLINE double exp(double x) {
  // Beyond these limits the result is 0 or infinity; NaN passes.
  const double low = x < -746.0 ? -746.0 : x;
  const detail::DoubleExpParts e = detail::exp_parts(low > 710.0 ? 710.0 : low);
  const double half = (e.n * 0.5 + detail::kWhole) - detail::kWhole;
  return (1.0 + detail::expm1_near_zero(e.r)) * detail::double_exp2_of(half) * detail::double_exp2_of(e.n - half);
}

NEO_INLINE double expm1(double x) {
  const double low = x < -50.0 ? -50.0 : x;
  const double near = detail::expm1_bounded(low > 50.0 ? 50.0 : low);
  return x > 40.0 ? exp(x) : x == 0.0 ? x : near;
}

NEO_INLINE double log(double x) {
  // log((1 + s) / (1 - s)) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...)
  constexpr double kP[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                           2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const bool tiny = x < 0x1p-1022;
  const uint64_t u = bits_of(tiny ? x * 0x1p54 : x);
  // x = 2^e m with sqrt(1/2) <= m < sqrt(2); the exponent is kept positive.
  const uint64_t shifted = u - 0x3fe6a09e667f3bcd + ((uint64_t)2048 << 52);
  const uint64_t exponent = shifted >> 52;
  const double m = double_of(u - ((exponent - 2048) << 52));
  const double e = double_of(exponent | 0x4330000000000000) - (0x1p52 + 2048.0) - (tiny ? 54.0 : 0.0);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  const double tail = s * (half_square + z * detail::polynomial(z, kP)) + e * 0x1.a39ef35793c76p-33;
  const double y = e * 0x1.62e42feep-1 - ((half_square - tail) - f);
  const double positive = x < INFINITY ? y : x;
  return x > 0.0 ? positive : x == 0.0 ? -INFINITY : NAN;
}

NEO_INLINE double tanh(double x) {
  const double t = x < 0.0 ? -x : x;
  const double e = detail::expm1_bounded(2.0 * (t > 22.0 ? 22.0 : t));
  return copy_sign(e / (e + 2.0), x);
}

NEO_INLINE double sigmoid(double x) {
  const double e = exp(x < 0.0 ? x : -x);
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

// Beyond it, and without a fused multiply-add, the products of sine_of_quarters have too few digits.
constexpr double kDoubleQuarterLimit = kFusedMultiplyAdd ? 1e5 : -1.0;

namespace detail {

// x = k pi / 2 + r with |r| <= pi / 4; the sine or, shifted by one quarter, the cosine: their series.
NEO_INLINE double sine_of_quarters(double x, int shift) {
  constexpr double kS[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                           -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  constexpr double kC[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
                           1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  const double shifted = fma(x, 0x1.45f306dc9c883p-1, kWhole);
  const double k = shifted - kWhole;
  double r = fma(-k, 0x1.921fb54442d18p+0, x);
  r = fma(-k, 0x1.1a62633145c07p-54, r);
  const double square = r * r;
  const double sine = fma(square * r, polynomial(square, kS), r);
  const double cosine = fma(square * square, polynomial(square, kC), fma(square, -0.5, 1.0));
  const uint64_t quarter = bits_of(shifted) + (uint64_t)shift;
  const double y = (quarter & 1) == 0 ? sine : cosine;
  return double_of(bits_of(y) ^ (quarter & 2) << 62);
}

}  // namespace detail

NEO_INLINE double sin(double x) {
  const double y = detail::sine_of_quarters(x, 0);
  return x == 0.0 ? x : y;
}
NEO_INLINE double cos(double x) {
  return detail::sine_of_quarters(x, 1);
}

}  // namespace neo::NEO_ISA
