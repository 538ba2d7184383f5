// The range, the hint and the value of an expression over sizes.

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "ir/dim.h"
#include "ir/dim_terms.h"

namespace neo {
namespace {

constexpr int64_t kNoLower = std::numeric_limits<int64_t>::min();
constexpr int64_t kNoUpper = std::numeric_limits<int64_t>::max();

int64_t saturate(__int128 x) {
  if (x >= kNoUpper) return kNoUpper;
  if (x <= -static_cast<__int128>(kNoUpper)) return kNoLower;
  return static_cast<int64_t>(x);
}

// A lower bound of kNoLower and an upper bound of kNoUpper stand for none; the opposite ones are never rounded up to.
Range enclose(int64_t lo, int64_t hi) {
  return {lo, std::max(hi, -kNoUpper)};
}

Range add(const Range& a, const Range& b) {
  const int64_t lo = a.lo == kNoLower || b.lo == kNoLower ? kNoLower : saturate(static_cast<__int128>(a.lo) + b.lo);
  const int64_t hi = a.hi == kNoUpper || b.hi == kNoUpper ? kNoUpper : saturate(static_cast<__int128>(a.hi) + b.hi);
  return enclose(lo, hi);
}

Range multiply(const Range& a, const Range& b) {
  const auto product = [](int64_t x, int64_t y) { return saturate(static_cast<__int128>(x) * y); };
  const int64_t corners[] = {product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)};
  return enclose(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Range negate(const Range& a) {
  return enclose(saturate(-static_cast<__int128>(a.hi)), saturate(-static_cast<__int128>(a.lo)));
}

__int128 floor_quotient(__int128 a, __int128 b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

Range divide(const Range& a, const Range& b) {
  if (b.hi < 0) return divide(negate(a), negate(b));
  if (b.lo < 0) {
    const int64_t magnitude = std::max(saturate(-static_cast<__int128>(a.lo)), a.hi);
    return {saturate(-static_cast<__int128>(magnitude)), magnitude};
  }
  const int64_t smallest = std::max<int64_t>(b.lo, 1);  // a zero divisor throws
  const auto towards_zero = [&](int64_t x) {
    if (b.hi == kNoUpper) return int64_t{x < 0 ? -1 : 0};
    return static_cast<int64_t>(floor_quotient(x, std::max(b.hi, smallest)));
  };
  const auto away_from_zero = [&](int64_t x) { return static_cast<int64_t>(floor_quotient(x, smallest)); };
  const int64_t lo = a.lo == kNoLower ? kNoLower : a.lo < 0 ? away_from_zero(a.lo) : towards_zero(a.lo);
  const int64_t hi = a.hi == kNoUpper ? kNoUpper : a.hi < 0 ? towards_zero(a.hi) : away_from_zero(a.hi);
  return {lo, hi};
}

Range modulo(const Range& a, const Range& b) {
  if (b.hi < 0) return negate(modulo(negate(a), negate(b)));
  if (b.lo < 0) return {b.lo, b.hi};
  const int64_t largest = b.hi == kNoUpper ? kNoUpper : std::max<int64_t>(b.hi - 1, 0);
  return {0, a.lo >= 0 ? std::min(a.hi, largest) : largest};
}

Range range_of(const Atom& atom) {
  if (atom.kind == Atom::Kind::Symbol) return atom.symbol.range;
  Range r = atom.args[0].range();
  for (size_t i = 1; i < atom.args.size(); ++i) {
    const Range s = atom.args[i].range();
    switch (atom.kind) {
      case Atom::Kind::FloorDiv:
        r = divide(r, s);
        break;
      case Atom::Kind::Mod:
        r = modulo(r, s);
        break;
      case Atom::Kind::Min:
        r = {std::min(r.lo, s.lo), std::min(r.hi, s.hi)};
        break;
      case Atom::Kind::Max:
        r = {std::max(r.lo, s.lo), std::max(r.hi, s.hi)};
        break;
      default:
        r = {std::min(r.lo, s.lo), std::max(r.hi, s.hi)};
        break;
    }
  }
  return r;
}

// Calls value(symbol) for each symbol. Null where it overflows or divides by zero.
template <class F>
std::optional<int64_t> evaluate_with(const Dim& d, const F& value) {
  const Dim::Terms* terms = DimAccess::terms(d);
  if (!terms) return d.value();
  int64_t sum = terms->constant;
  for (const Term& t : terms->terms) {
    int64_t product = t.coefficient;
    for (const AtomRef& atom : t.atoms) {
      std::optional<int64_t> x;
      if (atom->kind == Atom::Kind::Symbol) {
        x = value(atom->symbol);
      } else {
        x = evaluate_with(atom->args[0], value);
        for (size_t i = 1; i < atom->args.size() && x; ++i) {
          const auto y = evaluate_with(atom->args[i], value);
          if (!y) return std::nullopt;
          switch (atom->kind) {
            case Atom::Kind::FloorDiv:
            case Atom::Kind::Mod:
              if (*y == 0 || (*y == -1 && *x == kNoLower)) return std::nullopt;
              x = atom->kind == Atom::Kind::FloorDiv ? static_cast<int64_t>(floor_quotient(*x, *y))
                                                     : static_cast<int64_t>(*x - floor_quotient(*x, *y) * *y);
              break;
            case Atom::Kind::Min:
              x = std::min(*x, *y);
              break;
            case Atom::Kind::Max:
              x = std::max(*x, *y);
              break;
            default:
              x = *x == 1 ? *y : *x;
              break;
          }
        }
      }
      if (!x || __builtin_mul_overflow(product, *x, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

}  // namespace

Range Dim::range() const {
  if (!terms_) return {constant_, constant_};
  Range sum{terms_->constant, terms_->constant};
  for (const Term& t : terms_->terms) {
    Range product{t.coefficient, t.coefficient};
    for (const AtomRef& atom : t.atoms) product = multiply(product, range_of(*atom));
    sum = add(sum, product);
  }
  return sum;
}

int64_t Dim::hint() const {
  const auto value = evaluate_with(*this, [](const Symbol& s) {
    return s.hint != 0 ? s.hint : std::max(s.range.lo, std::min(s.range.hi, kDefaultHint));
  });
  return value ? *value : std::max<int64_t>(range().lo, 1);
}

int64_t Dim::evaluate(const SymbolValues& values) const {
  if (!terms_) return constant_;
  const auto value = evaluate_with(*this, [&](const Symbol& s) {
    const auto it = values.find(s.name);
    NEO_ASSERT(it != values.end(), "the size ", to_string(), " needs a value for ", s.name);
    return it->second;
  });
  NEO_CHECK(value.has_value(), Shape, "size", "a size must fit in 64 bits and have no zero divisor. Got ", to_string());
  return *value;
}

}  // namespace neo
