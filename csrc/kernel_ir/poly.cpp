#include "kernel_ir/poly.h"

#include <algorithm>

#include "base/check.h"

namespace neo::kernel {
namespace {

int64_t saturate(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kUnbounded, kUnbounded));
}

int64_t checked(__int128 value) {
  NEO_ASSERT(value < kUnbounded && value > -kUnbounded, "Got a coefficient beyond 2^62");
  return static_cast<int64_t>(value);
}

// An end of an interval: no bound stays no bound.
int64_t add_ends(int64_t a, int64_t b) {
  if (a >= kUnbounded || a <= -kUnbounded) return a;
  if (b >= kUnbounded || b <= -kUnbounded) return b;
  return saturate(static_cast<__int128>(a) + b);
}

}  // namespace

Poly constant_poly(int64_t value) {
  return value == 0 ? Poly{} : Poly{{Monomial{}, value}};
}

Poly atom_poly(int atom) {
  return {{Monomial{atom}, 1}};
}

Poly add(const Poly& a, const Poly& b, int64_t factor) {
  Poly out = a;
  for (const auto& [m, c] : b) {
    const auto [at, fresh] = out.try_emplace(m, 0);
    at->second = checked(static_cast<__int128>(at->second) + static_cast<__int128>(c) * factor);
    if (at->second == 0) out.erase(at);
  }
  return out;
}

Poly multiply(const Poly& a, const Monomial& m, int64_t factor) {
  Poly out;
  if (factor == 0) return out;
  for (const auto& [n, c] : a) {
    Monomial merged;
    std::merge(n.begin(), n.end(), m.begin(), m.end(), std::back_inserter(merged));
    out[merged] = checked(static_cast<__int128>(c) * factor);
  }
  return out;
}

Poly multiply(const Poly& a, const Poly& b) {
  Poly out;
  for (const auto& [m, c] : b) out = add(out, multiply(a, m, c));
  return out;
}

std::optional<int64_t> constant_of(const Poly& p) {
  if (p.empty()) return 0;
  if (p.size() == 1 && p.begin()->first.empty()) return p.begin()->second;
  return std::nullopt;
}

std::optional<Monomial> quotient(const Monomial& a, const Monomial& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  Monomial out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::string key_of(const Poly& p) {
  std::string key;
  for (const auto& [m, c] : p) {
    key += std::to_string(c);
    for (const int atom : m) key += "*" + std::to_string(atom);
    key += "+";
  }
  return key;
}

Interval add(Interval a, Interval b) {
  return {add_ends(a.lo, b.lo), add_ends(a.hi, b.hi)};
}

Interval multiply(Interval a, Interval b) {
  const auto product = [](int64_t x, int64_t y) { return saturate(static_cast<__int128>(x) * y); };
  const auto [lo, hi] =
      std::minmax({product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)});
  return {lo, hi};
}

Interval join(Interval a, Interval b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

}  // namespace neo::kernel
