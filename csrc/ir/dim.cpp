#include "ir/dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "ir/dim_terms.h"
#include "ir/text.h"

namespace neo {
namespace {

// Bounds what hostile sizes can cost: an expression may have this many nodes.
constexpr int kMaxExpression = 16384;
// A product of two sums that has more terms keeps the longer one as a factor in parentheses.
constexpr size_t kMaxProducts = 128;
constexpr size_t kMaxDegree = 64;
constexpr int kMaxDivisionSteps = 64;

using Product = std::vector<AtomRef>;

constexpr std::string_view kLargeRule = "an expression over sizes must be small";

[[noreturn]] void overflow(std::string_view operation) {
  fail(ErrorKind::Shape, "size", str("arithmetic on sizes must fit in 64 bits. Got an overflow in ", operation));
}

int64_t add_checked(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) overflow(str(a, " + ", b));
  return r;
}

int64_t multiply_checked(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) overflow(str(a, " * ", b));
  return r;
}

int64_t floordiv_checked(int64_t a, int64_t b) {
  NEO_CHECK(b != 0, Shape, "size", "a divisor must not be zero. Got ", a, " / 0");
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) overflow(str(a, " / ", b));
    return -a;
  }
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

int64_t mod_checked(int64_t a, int64_t b) {
  NEO_CHECK(b != 0, Shape, "size", "a divisor must not be zero. Got ", a, " mod 0");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::vector<Term> terms_of(const Dim& d) {
  const Dim::Terms* terms = DimAccess::terms(d);
  return terms ? terms->terms : std::vector<Term>{};
}

// Sorts, merges equal products and drops zeros.
Dim make_sum(std::vector<Term> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_products(a.atoms, b.atoms) < 0; });
  Dim::Terms sum;
  sum.constant = constant;
  for (Term& t : terms) {
    if (!sum.terms.empty() && compare_products(sum.terms.back().atoms, t.atoms) == 0) {
      sum.terms.back().coefficient = add_checked(sum.terms.back().coefficient, t.coefficient);
      if (sum.terms.back().coefficient == 0) sum.terms.pop_back();
    } else if (t.coefficient != 0) {
      sum.terms.push_back(std::move(t));
    }
  }
  return DimAccess::make(std::move(sum));
}

Dim make_atom(Atom::Kind kind, std::vector<Dim> args) {
  auto atom = std::make_shared<Atom>();
  atom->kind = kind;
  constexpr std::string_view kNames[] = {"", "floordiv", "mod", "min", "max", "broadcast", ""};
  atom->key = std::string(kNames[static_cast<size_t>(kind)]) + "(";
  for (size_t i = 0; i < args.size(); ++i) {
    atom->key += (i ? ", " : "") + args[i].to_string();
    const Dim::Terms* terms = DimAccess::terms(args[i]);
    atom->size += terms ? terms->size : 1;
  }
  atom->key += ")";
  atom->args = std::move(args);
  return make_sum({{1, {std::move(atom)}}}, 0);
}

// The one atom that this is, with coefficient one and nothing added; null otherwise.
const Atom* as_atom(const Dim& d) {
  const Dim::Terms* terms = DimAccess::terms(d);
  if (!terms || terms->constant != 0 || terms->terms.size() != 1) return nullptr;
  const Term& t = terms->terms[0];
  return t.coefficient == 1 && t.atoms.size() == 1 ? t.atoms[0].get() : nullptr;
}

// product / divisor, where the divisor's atoms are all in it.
std::optional<Product> divide_product(const Product& product, const Product& divisor) {
  Product quotient;
  size_t j = 0;
  for (const AtomRef& atom : product) {
    if (j < divisor.size() && divisor[j]->key == atom->key) {
      ++j;
    } else {
      quotient.push_back(atom);
    }
  }
  if (j < divisor.size()) return std::nullopt;
  return quotient;
}

// q with a == q * b, where polynomial division finds one.
std::optional<Dim> divide_exactly(Dim a, const Dim& b) {
  const Dim::Terms* divisor = DimAccess::terms(b);
  Dim quotient = 0;
  for (int step = 0; step < kMaxDivisionSteps; ++step) {
    if (a.is(0)) return quotient;
    const Dim::Terms* rest = DimAccess::terms(a);
    if (!rest) return std::nullopt;
    const Term& lead = rest->terms[0];
    const Term& by = divisor->terms[0];
    if (lead.coefficient == std::numeric_limits<int64_t>::min() || lead.coefficient % by.coefficient != 0)
      return std::nullopt;
    const auto product = divide_product(lead.atoms, by.atoms);
    if (!product) return std::nullopt;
    const int64_t coefficient = lead.coefficient / by.coefficient;
    const Dim q = product->empty() ? Dim(coefficient) : make_sum({{coefficient, *product}}, 0);
    quotient = quotient + q;
    a = a - q * b;
  }
  return std::nullopt;
}

struct Split {
  Dim quotient;
  Dim rest;
};

// a == quotient * k + rest with every coefficient of rest in [0, k).
Split split_by_constant(const Dim& a, int64_t k) {
  std::vector<Term> quotient;
  std::vector<Term> rest;
  for (const Term& t : terms_of(a)) {
    quotient.push_back({floordiv_checked(t.coefficient, k), t.atoms});
    rest.push_back({mod_checked(t.coefficient, k), t.atoms});
  }
  const int64_t c = DimAccess::constant(a);
  return {make_sum(std::move(quotient), floordiv_checked(c, k)), make_sum(std::move(rest), mod_checked(c, k))};
}

// a == quotient * b + rest, where b is one term: the terms of a that it divides.
Split split_by_term(const Dim& a, const Term& b) {
  std::vector<Term> quotient;
  std::vector<Term> rest;
  int64_t constant = 0;
  for (const Term& t : terms_of(a)) {
    const auto product = divide_product(t.atoms, b.atoms);
    if (product && t.coefficient != std::numeric_limits<int64_t>::min() && t.coefficient % b.coefficient == 0) {
      const int64_t coefficient = t.coefficient / b.coefficient;
      if (product->empty()) {
        constant = add_checked(constant, coefficient);
      } else {
        quotient.push_back({coefficient, *product});
      }
    } else {
      rest.push_back(t);
    }
  }
  return {make_sum(std::move(quotient), constant), make_sum(std::move(rest), DimAccess::constant(a))};
}

// The greatest common divisor of the coefficients of terms, starting from g.
int64_t content(const Dim& a, int64_t g) {
  if (const Dim::Terms* terms = DimAccess::terms(a)) {
    for (const Term& t : terms->terms) {
      if (t.coefficient == std::numeric_limits<int64_t>::min()) return 1;
      g = std::gcd(g, t.coefficient);
    }
  }
  return g;
}

// Every coefficient over g, which divides them; the constant rounded down.
Dim divide_content(const Dim& a, int64_t g) {
  std::vector<Term> terms = terms_of(a);
  for (Term& t : terms) t.coefficient /= g;
  return make_sum(std::move(terms), floordiv_checked(DimAccess::constant(a), g));
}

// floor((floor(x / d) + c) / k) == floor((x + c * d) / (d * k)): nested divisions by constants become one.
std::optional<Dim> merge_divisions(const Dim& a, int64_t k) {
  const Dim::Terms* terms = DimAccess::terms(a);
  if (!terms || terms->terms.size() != 1 || terms->terms[0].coefficient != 1 || terms->terms[0].atoms.size() != 1) {
    return std::nullopt;
  }
  const Atom& atom = *terms->terms[0].atoms[0];
  if (atom.kind != Atom::Kind::FloorDiv || !atom.args[1].is_constant()) return std::nullopt;
  const int64_t d = atom.args[1].value();
  int64_t divisor = 0;
  int64_t shift = 0;
  if (__builtin_mul_overflow(d, k, &divisor) || __builtin_mul_overflow(terms->constant, d, &shift)) return std::nullopt;
  return floordiv(atom.args[0] + shift, divisor);
}

// Arguments of mod(x, d) atoms with coefficient c, where k divides c * d: mod k they equal c * x.
Dim unwrap_mods(const Dim& a, int64_t k) {
  Dim result = DimAccess::constant(a);
  for (const Term& t : terms_of(a)) {
    const Atom& atom = *t.atoms[0];
    if (t.atoms.size() == 1 && atom.kind == Atom::Kind::Mod && atom.args[1].is_constant() &&
        atom.args[1].value() % k == 0) {
      result = result + atom.args[0] * t.coefficient;
    } else {
      result = result + make_sum({t}, 0);
    }
  }
  return result;
}

Dim floordiv_by_constant(const Dim& a, int64_t k) {
  if (k < 0) return floordiv(-1 * a, multiply_checked(k, -1));
  Split split = split_by_constant(a, k);
  if (split.rest.is_constant()) return split.quotient;  // in [0, k)
  const int64_t g = content(split.rest, k);
  const Dim rest = g > 1 ? divide_content(split.rest, g) : split.rest;
  k /= g;
  if (k == 1) return split.quotient + rest;
  const Range r = rest.range();
  if (r.lo != std::numeric_limits<int64_t>::min() && r.hi != std::numeric_limits<int64_t>::max() &&
      floordiv_checked(r.lo, k) == floordiv_checked(r.hi, k)) {
    return split.quotient + floordiv_checked(r.lo, k);
  }
  if (const auto merged = merge_divisions(rest, k)) return split.quotient + *merged;
  return split.quotient + make_atom(Atom::Kind::FloorDiv, {rest, k});
}

Dim mod_by_constant(const Dim& a, int64_t k) {
  if (k < 0) return -1 * mod(-1 * a, multiply_checked(k, -1));
  const Dim rest = split_by_constant(unwrap_mods(a, k), k).rest;
  if (rest.is_constant()) return rest;
  const Range r = rest.range();
  if (r.lo >= 0 && r.hi < k) return rest;
  const int64_t g = std::gcd(content(rest, k), DimAccess::constant(rest));
  if (g > 1) return g * mod(divide_content(rest, g), k / g);
  return make_atom(Atom::Kind::Mod, {rest, k});
}

// The range of a - b; unbounded where the difference would be too large an expression.
Range difference_range(const Dim& a, const Dim& b) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  const auto small = [](const Dim& d) {
    const Dim::Terms* terms = DimAccess::terms(d);
    const auto fits = [](int64_t x) { return x > -kLimit && x < kLimit; };
    return terms && fits(terms->constant) && terms->size < kMaxExpression / 2 &&
           std::all_of(terms->terms.begin(), terms->terms.end(), [&](const Term& t) { return fits(t.coefficient); });
  };
  if (small(a) && small(b)) return (a - b).range();
  return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
}

// a <= b for every value of the symbols.
bool surely_less_equal(const Dim& a, const Dim& b) {
  const Range ra = a.range();
  if (ra.hi <= b.range().lo && ra.hi != std::numeric_limits<int64_t>::max()) return true;
  return difference_range(a, b).hi <= 0;
}

// The operands of nested applications of an associative operation.
void flatten(Atom::Kind kind, const Dim& d, std::vector<Dim>& out) {
  const Atom* atom = as_atom(d);
  if (atom && atom->kind == kind) {
    out.insert(out.end(), atom->args.begin(), atom->args.end());
  } else {
    out.push_back(d);
  }
}

Dim make_extremum(Atom::Kind kind, const Dim& a, const Dim& b) {
  std::vector<Dim> operands;
  flatten(kind, a, operands);
  flatten(kind, b, operands);
  const auto wins = [&](const Dim& x, const Dim& y) {
    return kind == Atom::Kind::Min ? surely_less_equal(x, y) : surely_less_equal(y, x);
  };
  std::vector<Dim> kept;
  for (const Dim& x : operands) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& y) { return x == y || wins(y, x); })) continue;
    std::erase_if(kept, [&](const Dim& y) { return wins(x, y); });
    kept.push_back(x);
  }
  if (kept.size() == 1) return kept[0];
  std::vector<std::pair<std::string, Dim>> sorted;
  for (Dim& x : kept) sorted.emplace_back(x.to_string(), std::move(x));
  std::sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  kept.clear();
  for (auto& entry : sorted) kept.push_back(std::move(entry.second));
  return make_atom(kind, std::move(kept));
}

}  // namespace

int compare_products(const Product& a, const Product& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (const int order = a[i]->key.compare(b[i]->key)) return order;
  }
  return 0;
}

Dim Dim::from_terms(Terms terms) {
  if (terms.terms.empty()) return Dim(terms.constant);
  int size = 1;
  for (const Term& t : terms.terms) {
    size += 1;
    for (const AtomRef& atom : t.atoms) size += atom->size;
    NEO_CHECK(t.atoms.size() <= kMaxDegree && size <= kMaxExpression, Unsupported, "size", kLargeRule, ". Got ", size,
              " nodes and degree ", t.atoms.size(), ", expected at most ", kMaxExpression, " and ", kMaxDegree);
  }
  terms.size = size;
  return Dim(std::make_shared<const Terms>(std::move(terms)));
}

Dim Dim::symbol(std::string name, Range range, int64_t hint) {
  return symbol(Symbol{std::move(name), range, hint, nullptr});
}

Dim Dim::symbol(Symbol symbol) {
  const Range range = symbol.range;
  NEO_CHECK(range.lo <= range.hi, Shape, "size", "the range of a symbol must not be empty. Got \"", symbol.name,
            "\" in [", range.lo, ", ", range.hi, "]");
  if (range.lo == range.hi) return Dim(range.lo);
  auto atom = std::make_shared<Atom>();
  atom->key = print_name(symbol.name);
  atom->symbol = std::move(symbol);
  return make_sum({{1, {std::move(atom)}}}, 0);
}

int Dim::node_count() const {
  return terms_ ? terms_->size : 1;
}

int64_t Dim::value() const {
  NEO_ASSERT(is_constant(), "for the size ", to_string());
  return constant_;
}

std::optional<Symbol> Dim::as_symbol() const {
  const Atom* atom = as_atom(*this);
  if (!atom || atom->kind != Atom::Kind::Symbol) return std::nullopt;
  return atom->symbol;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.terms_ == b.terms_) return a.constant_ == b.constant_;
  if (!a.terms_ || !b.terms_) return false;
  const std::vector<Term>& x = a.terms_->terms;
  const std::vector<Term>& y = b.terms_->terms;
  return a.terms_->constant == b.terms_->constant &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Term& s, const Term& t) {
           return s.coefficient == t.coefficient && compare_products(s.atoms, t.atoms) == 0;
         });
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t constant = add_checked(DimAccess::constant(a), DimAccess::constant(b));
  if (a.is_constant() && b.is_constant()) return constant;
  std::vector<Term> terms = terms_of(a);
  const std::vector<Term> more = terms_of(b);
  terms.insert(terms.end(), more.begin(), more.end());
  return make_sum(std::move(terms), constant);
}

Dim operator*(const Dim& a, const Dim& b) {
  const int64_t ca = DimAccess::constant(a);
  const int64_t cb = DimAccess::constant(b);
  if (a.is_constant() && b.is_constant()) return multiply_checked(ca, cb);
  const std::vector<Term> ta = terms_of(a);
  const std::vector<Term> tb = terms_of(b);
  if (!ta.empty() && !tb.empty() && (ta.size() + 1) * (tb.size() + 1) > kMaxProducts) {
    return ta.size() < tb.size() ? a * make_atom(Atom::Kind::Group, {b}) : make_atom(Atom::Kind::Group, {a}) * b;
  }
  std::vector<Term> terms;
  for (const Term& t : ta) {
    if (cb != 0) terms.push_back({multiply_checked(t.coefficient, cb), t.atoms});
    for (const Term& u : tb) {
      Product product;
      std::merge(t.atoms.begin(), t.atoms.end(), u.atoms.begin(), u.atoms.end(), std::back_inserter(product),
                 [](const AtomRef& x, const AtomRef& y) { return x->key < y->key; });
      terms.push_back({multiply_checked(t.coefficient, u.coefficient), std::move(product)});
    }
  }
  for (const Term& u : tb) {
    if (ca != 0) terms.push_back({multiply_checked(u.coefficient, ca), u.atoms});
  }
  return make_sum(std::move(terms), multiply_checked(ca, cb));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t r = 0;
    if (__builtin_sub_overflow(a.constant_, b.constant_, &r)) overflow(str(a.constant_, " - ", b.constant_));
    return r;
  }
  return a + Dim(-1) * b;
}

Dim floordiv(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    const int64_t k = b.constant_;
    if (a.is_constant() || k == 0) return floordiv_checked(DimAccess::constant(a), k);
    return k == 1 ? a : floordiv_by_constant(a, k);
  }
  if (a.is(0)) return 0;
  if (const auto exact = divide_exactly(a, b)) return *exact;
  Dim quotient = 0;
  Dim rest = a;
  if (b.terms_->constant == 0 && b.terms_->terms.size() == 1) {
    Split split = split_by_term(a, b.terms_->terms[0]);
    quotient = split.quotient;
    rest = split.rest;
  }
  const Range r = rest.range();
  if (r.lo >= 0 && r.hi < b.range().lo) return quotient;
  const int64_t g = std::gcd(content(b, content(rest, 0)), std::gcd(DimAccess::constant(rest), DimAccess::constant(b)));
  if (g > 1) return quotient + floordiv(divide_content(rest, g), divide_content(b, g));
  return quotient + make_atom(Atom::Kind::FloorDiv, {rest, b});
}

Dim ceildiv(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    const int64_t floor = floordiv_checked(a.constant_, b.constant_);
    return floor + (mod_checked(a.constant_, b.constant_) != 0 ? 1 : 0);
  }
  if (b.range().lo >= 1) return floordiv(a + (b - 1), b);
  return Dim(-1) * floordiv(Dim(-1) * a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    const int64_t k = b.constant_;
    if (a.is_constant() || k == 0) return mod_checked(DimAccess::constant(a), k);
    return k == 1 ? Dim(0) : mod_by_constant(a, k);
  }
  if (a.is(0) || divide_exactly(a, b)) return 0;
  Dim rest = a;
  if (b.terms_->constant == 0 && b.terms_->terms.size() == 1) rest = split_by_term(a, b.terms_->terms[0]).rest;
  const Range r = rest.range();
  if (r.lo >= 0 && r.hi < b.range().lo) return rest;
  return make_atom(Atom::Kind::Mod, {rest, b});
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant_, b.constant_);
  return make_extremum(Atom::Kind::Min, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant_, b.constant_);
  return make_extremum(Atom::Kind::Max, a, b);
}

// The first operand that is not 1: associative, so nested ones are flattened.
Dim broadcast(const Dim& a, const Dim& b) {
  if (a.is_constant()) return a.constant_ == 1 ? b : a;
  std::vector<Dim> operands;
  flatten(Atom::Kind::Broadcast, a, operands);
  flatten(Atom::Kind::Broadcast, b, operands);
  std::vector<Dim> kept;
  for (const Dim& d : operands) {
    if (d.is(1) || std::find(kept.begin(), kept.end(), d) != kept.end()) continue;
    kept.push_back(d);
    const Range r = d.range();
    if (r.lo > 1 || r.hi < 1) break;
  }
  return kept.size() == 1 ? kept[0] : make_atom(Atom::Kind::Broadcast, std::move(kept));
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const Symbol&)>& replacement) const {
  if (!terms_) return *this;
  const auto replace = [&](const Atom& atom) -> std::optional<Dim> {
    if (atom.kind == Atom::Kind::Symbol) return replacement(atom.symbol);
    std::vector<Dim> args;
    for (const Dim& arg : atom.args) args.push_back(arg.substitute(replacement));
    if (args == atom.args) return std::nullopt;
    Dim result = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      switch (atom.kind) {
        case Atom::Kind::FloorDiv:
          result = floordiv(result, args[i]);
          break;
        case Atom::Kind::Mod:
          result = mod(result, args[i]);
          break;
        case Atom::Kind::Min:
          result = min(result, args[i]);
          break;
        case Atom::Kind::Max:
          result = max(result, args[i]);
          break;
        default:
          result = broadcast(result, args[i]);
          break;
      }
    }
    return result;
  };
  Dim result = terms_->constant;
  for (const Term& t : terms_->terms) {
    Dim product = t.coefficient;
    for (const AtomRef& atom : t.atoms) {
      const auto replaced = replace(*atom);
      product = product * (replaced ? *replaced : make_sum({{1, {atom}}}, 0));
    }
    result = result + product;
  }
  return result;
}

void Dim::collect_symbols(std::map<std::string, Symbol>& out) const {
  if (!terms_) return;
  for (const Term& t : terms_->terms) {
    for (const AtomRef& atom : t.atoms) {
      if (atom->kind == Atom::Kind::Symbol) out.emplace(atom->symbol.name, atom->symbol);
      for (const Dim& arg : atom->args) arg.collect_symbols(out);
    }
  }
}

bool is_large_expression(const Error& error) {
  return error.kind() == ErrorKind::Unsupported &&
         std::string_view(error.what()).starts_with(str("[size] ", kLargeRule));
}

std::optional<bool> prove_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  const Range ra = a.range();
  const Range rb = b.range();
  if (ra.hi < rb.lo || rb.hi < ra.lo) return false;
  const Range difference = difference_range(a, b);
  if (difference.lo > 0 || difference.hi < 0) return false;
  return std::nullopt;
}

std::optional<bool> prove_less(const Dim& a, const Dim& b) {
  if (a.range().hi < b.range().lo || difference_range(a, b).hi < 0) return true;
  if (surely_less_equal(b, a)) return false;
  return std::nullopt;
}

}  // namespace neo
