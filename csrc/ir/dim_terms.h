#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace neo {

// A factor of a polynomial's term: a symbol, an operation that is not a polynomial, or a sum in parentheses that would
// have too many terms multiplied out.
struct Atom {
  enum class Kind : uint8_t { Symbol, FloorDiv, Mod, Min, Max, Broadcast, Group };
  Kind kind = Kind::Symbol;
  Symbol symbol;          // Kind::Symbol
  std::vector<Dim> args;  // one for Group, two for FloorDiv and Mod, at least two for the rest
  std::string key;        // the printed form; equal keys are equal atoms
  int size = 1;           // nodes of the expression
};
using AtomRef = std::shared_ptr<const Atom>;

// coefficient * product of atoms, which are sorted by key and repeated for powers.
struct Term {
  int64_t coefficient = 0;
  std::vector<AtomRef> atoms;
};

// terms + constant: terms of distinct products in the order of compare_products, no coefficient zero, at least one
// term.
struct Dim::Terms {
  std::vector<Term> terms;
  int64_t constant = 0;
  int size = 1;
};

// Higher degree first, then by keys: < 0, 0 or > 0.
int compare_products(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b);

struct DimAccess {
  static const Dim::Terms* terms(const Dim& d) { return d.terms_.get(); }
  static int64_t constant(const Dim& d) { return d.terms_ ? d.terms_->constant : d.constant_; }
  static Dim make(Dim::Terms terms) { return Dim::from_terms(std::move(terms)); }
};

}  // namespace neo
