#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neo::kernel {

// A closed interval of integers; kUnbounded and its negative stand for none.
inline constexpr int64_t kUnbounded = int64_t{1} << 62;
struct Interval {
  int64_t lo = -kUnbounded;
  int64_t hi = kUnbounded;
  bool inside(int64_t a, int64_t b) const { return lo >= a && hi <= b; }
};

// A product of atoms: their numbers, ascending, at most kMaxAtoms of them. A string, so that a short one owns no
// memory.
using Monomial = std::u16string;
inline constexpr int kMaxAtoms = 1 << 16;

// A polynomial with integer coefficients over atoms: variables, quotients, minima, and whatever is opaque. Its terms
// ascend by monomial; no coefficient is zero.
class Poly {
 public:
  using Term = std::pair<Monomial, int64_t>;
  Poly() = default;
  // Terms in any order, each monomial once; zeros are left out.
  explicit Poly(std::vector<Term> terms);

  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  size_t size() const { return terms_.size(); }
  bool empty() const { return terms_.empty(); }
  int64_t coefficient(const Monomial& m) const;
  // Behind all terms there are.
  void append(Monomial m, int64_t coefficient) { terms_.emplace_back(std::move(m), coefficient); }
  void reserve(size_t terms) { terms_.reserve(terms); }
  // By what all coefficients are multiples of; nothing changes where they have no factor in common.
  void divide_by_common_factor();
  uint64_t hash() const;

 private:
  std::vector<Term> terms_;
};

// Arithmetic of polynomials. A coefficient beyond kUnbounded is an Internal error.
Monomial atom_monomial(int atom);
Poly constant_poly(int64_t value);
Poly atom_poly(int atom);
Poly add(const Poly& a, const Poly& b, int64_t factor = 1);  // a + factor * b
Poly multiply(const Poly& a, const Poly& b);
Poly multiply(const Poly& a, const Monomial& m, int64_t factor);
// a / b where every atom of b is in a.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b);
std::string key_of(const Poly& p);

// Interval arithmetic; saturates.
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval join(Interval a, Interval b);

}  // namespace neo::kernel
