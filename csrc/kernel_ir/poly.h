#pragma once

#include "kernel_ir/facts.h"

namespace neo::kernel {

// Arithmetic of polynomials. A coefficient beyond kUnbounded is an Internal error.
Poly constant_poly(int64_t value);
Poly atom_poly(int atom);
Poly add(const Poly& a, const Poly& b, int64_t factor = 1);  // a + factor * b
Poly multiply(const Poly& a, const Poly& b);
Poly multiply(const Poly& a, const Monomial& m, int64_t factor);
std::optional<int64_t> constant_of(const Poly& p);
// a / b where every atom of b is in a.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b);
std::string key_of(const Poly& p);

// Interval arithmetic; saturates.
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval join(Interval a, Interval b);

}  // namespace neo::kernel
