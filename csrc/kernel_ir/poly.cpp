#include "kernel_ir/poly.h"

#include <algorithm>
#include <numeric>

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

Poly::Poly(std::vector<Term> terms) : terms_(std::move(terms)) {
  std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.first < b.first; });
  terms_.erase(std::remove_if(terms_.begin(), terms_.end(), [](const Term& t) { return t.second == 0; }), terms_.end());
}

int64_t Poly::coefficient(const Monomial& m) const {
  const auto at =
      std::lower_bound(terms_.begin(), terms_.end(), m, [](const Term& t, const Monomial& n) { return t.first < n; });
  return at == terms_.end() || at->first != m ? 0 : at->second;
}

void Poly::divide_by_common_factor() {
  int64_t factor = 0;
  for (const auto& [m, c] : terms_) {
    factor = std::gcd(factor, c);
    if (factor == 1) return;
  }
  for (auto& [m, c] : terms_) c /= factor;
}

uint64_t Poly::hash() const {
  uint64_t h = 0x9e3779b97f4a7c15;
  const auto mix = [&](uint64_t value) {
    h = (h ^ value) * 0xbf58476d1ce4e5b9;
    h ^= h >> 31;
  };
  for (const auto& [m, c] : terms_) {
    for (const char16_t atom : m) mix(atom);
    mix(static_cast<uint64_t>(c) ^ 0x94d049bb133111eb);
  }
  return h;
}

Monomial atom_monomial(int atom) {
  NEO_ASSERT(atom >= 0 && atom < kMaxAtoms, "a kernel has fewer than ", kMaxAtoms, " atoms. Got number ", atom);
  return {static_cast<char16_t>(atom)};
}

Poly constant_poly(int64_t value) {
  return Poly({{Monomial{}, value}});
}

Poly atom_poly(int atom) {
  return Poly({{atom_monomial(atom), 1}});
}

Poly add(const Poly& a, const Poly& b, int64_t factor) {
  Poly out;
  if (factor == 0) return a;
  out.reserve(a.size() + b.size());
  auto at_a = a.begin(), at_b = b.begin();
  while (at_a != a.end() || at_b != b.end()) {
    const int order = at_a == a.end() ? 1 : at_b == b.end() ? -1 : at_a->first.compare(at_b->first);
    if (order < 0) {
      out.append(at_a->first, at_a->second);
      ++at_a;
      continue;
    }
    const __int128 before = order == 0 ? at_a->second : 0;
    const int64_t sum = checked(before + static_cast<__int128>(at_b->second) * factor);
    if (sum != 0) out.append(at_b->first, sum);
    at_a += order == 0;
    ++at_b;
  }
  return out;
}

Poly multiply(const Poly& a, const Monomial& m, int64_t factor) {
  if (factor == 0) return {};
  std::vector<Poly::Term> terms;
  terms.reserve(a.size());
  for (const auto& [n, c] : a) {
    Monomial merged(n.size() + m.size(), 0);
    std::merge(n.begin(), n.end(), m.begin(), m.end(), merged.begin());
    terms.emplace_back(std::move(merged), checked(static_cast<__int128>(c) * factor));
  }
  return Poly(std::move(terms));
}

Poly multiply(const Poly& a, const Poly& b) {
  Poly out;
  for (const auto& [m, c] : b) out = add(out, multiply(a, m, c));
  return out;
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
    for (const int atom : m) key += "*" + std::to_string(static_cast<int>(atom));
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
