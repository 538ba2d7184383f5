#include "routines/gpu/conv/winograd_transform.h"

#include "base/check.h"

namespace neo::gpu {
namespace {

using kernel::Builder;
using kernel::Expr;
using Values = std::vector<Expr>;

size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

// factor * x + sum; the factors of few points are mostly powers of two, and often one.
Expr add_product(float factor, const Expr& x, const Expr& sum) {
  if (factor == 1.0f) return x + sum;
  if (factor == -1.0f) return sum - x;
  return fma(Expr(factor), x, sum);
}

}  // namespace

Values transform_winograd_input(Builder& b, const WinogradAxis& axis, const Values& d) {
  if (axis.kernel == 1) return d;
  NEO_ASSERT(static_cast<int64_t>(d.size()) == axis.points());
  const auto n = static_cast<int>(axis.pairs()), s = static_cast<int>(axis.stride);
  const WinogradTransform c = winograd_transform(n, n);
  Values t(d.size());
  Expr zeroth = d[at(2 * n * s)];
  for (int k = 0; k < n; ++k) zeroth = add_product(c.whole[k], d[at(2 * k * s)], zeroth);
  t[0] = b.let("t", zeroth);
  if (s == 1) {
    Expr infinite = d[at(2 * n + 1)];
    for (int k = 0; k < n; ++k) infinite = add_product(c.whole[k], d[at(2 * k + 1)], infinite);
    t[at(2 * n + 1)] = b.let("t", infinite);
  } else {
    for (int i = 0; i < 2 * n; ++i) t[at(2 * n + 1 + i)] = d[at(2 * i + 1)];
  }
  for (int i = 0; i < n; ++i) {
    Expr even = d[at(2 * n * s)], odd = d[at((2 * n - 1) * s)];
    for (int k = 0; k < n - 1; ++k) {
      even = add_product(c.part[i][k], d[at((2 * k + 2) * s)], even);
      odd = add_product(c.part[i][k], d[at((2 * k + 1) * s)], odd);
    }
    even = b.let("even", even);
    odd = b.let("odd", odd);
    t[at(1 + 2 * i)] = b.let("t", add_product(c.point[i], odd, even));
    t[at(2 + 2 * i)] = b.let("t", add_product(-c.point[i], odd, even));
  }
  return t;
}

Values transform_winograd_output(Builder& b, const WinogradAxis& axis, const Values& m) {
  if (axis.kernel == 1) return m;
  NEO_ASSERT(static_cast<int64_t>(m.size()) == axis.points());
  const auto n = static_cast<int>(axis.pairs()), tile = static_cast<int>(axis.tile);
  const WinogradTransform c = winograd_transform(n, n);
  Values sum, difference, y;
  for (int i = 0; i < n; ++i) {
    sum.push_back(b.let("sum", m[at(1 + 2 * i)] + m[at(2 + 2 * i)]));
    difference.push_back(b.let("difference", m[at(1 + 2 * i)] - m[at(2 + 2 * i)]));
  }
  for (int r = 0; r < tile; ++r) {
    const Values& terms = r % 2 == 0 ? sum : difference;
    Expr value = c.power[0][r] == 1.0f ? terms[0] : Expr(c.power[0][r]) * terms[0];
    for (int i = 1; i < n; ++i) value = add_product(c.power[i][r], terms[at(i)], value);
    if (r == 0) value = m[0] + value;
    if (axis.stride == 2) value = value + m[at(2 * n + 1 + r)];
    if (axis.stride == 1 && r == tile - 1) value = value + m[at(2 * n + 1)];
    y.push_back(b.let("y", value));
  }
  return y;
}

}  // namespace neo::gpu
