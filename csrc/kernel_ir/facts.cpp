#include "kernel_ir/facts.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace neo::kernel {
namespace {

constexpr int kDepth = 6;  // steps of a proof
constexpr int kBudget = 1500;
constexpr int kQuickDepth = 3;
constexpr int kQuickBudget = 40;
constexpr int64_t kMaxCoefficient = int64_t{1} << 40;

bool is_index(const Expr& e) {
  return is_integer(e->type.dtype) && e->type.lanes == 1;
}

}  // namespace

Interval type_range(DType dtype) {
  if (dtype == DType::Int64 || dtype == DType::UInt64) {
    return {dtype == DType::UInt64 ? 0 : -kUnbounded, kUnbounded};
  }
  return dtype == DType::Bool ? Interval{0, 1} : Interval{integer_min(dtype), integer_max(dtype)};
}

Facts::Facts(const Kernel& kernel, Effort effort) : effort_(effort) {
  for (const Parameter& parameter : kernel.parameters) {
    const auto* scalar = std::get_if<ScalarParameter>(&parameter);
    if (scalar == nullptr || !is_integer(scalar->variable->type.dtype)) continue;
    variables_[scalar->variable.get()] = atom_poly(new_atom({scalar->lo, scalar->hi}, variable(scalar->variable)));
  }
  for (const auto& axes : {kernel.groups, kernel.locals}) {
    for (const Axis& axis : axes) {
      if (axis.variable != nullptr) bind_loop(axis.variable, 0, axis.extent);
    }
  }
}

void Facts::rewind(const Mark& mark) {
  facts_.resize(mark.facts);
  for (size_t i = mark.live; i < live_order_.size(); ++i) live_.erase(live_order_[i]);
  live_order_.resize(mark.live);
}

int Facts::new_atom(Interval range, Expr expr) {
  atoms_.push_back({range, std::move(expr)});
  return static_cast<int>(atoms_.size()) - 1;
}

int Facts::named_atom(const std::string& key, Interval range, const Expr& expr) {
  const auto [at, fresh] = named_.try_emplace(key, 0);
  if (fresh) at->second = new_atom(range, expr);
  return at->second;
}

// True once until rewind: the caller then adds the atom's facts.
bool Facts::make_live(int atom) {
  if (!live_.emplace(atom, true).second) return false;
  live_order_.push_back(atom);
  return true;
}

void Facts::bind_loop(const Variable& v, const Expr& begin, const Expr& end) {
  const Poly lo = poly(begin), hi = add(poly(end), constant_poly(-1));
  const Interval bounds{range(lo).lo, range(hi).hi};
  const Poly self = atom_poly(new_atom(bounds, variable(v)));
  variables_[v.get()] = self;
  kept_.push_back(v);
  add_fact(add(self, lo, -1));
  add_fact(add(hi, self, -1));
}

void Facts::bind_let(const Variable& v, const Expr& value) {
  kept_.push_back(v);
  if (is_index(value)) variables_[v.get()] = poly(value);
}

void Facts::assume(const Expr& condition, bool truth) {
  const auto both = [&](bool wanted) {
    if (truth != wanted) return;
    for (const Expr& e : condition->operands) assume(e, truth);
  };
  switch (condition->op) {
    case Op::And:
      return both(true);
    case Op::Or:
      return both(false);
    case Op::Not:
      return assume(condition->operands[0], !truth);
    default:
      break;
  }
  if (condition->operands.size() != 2 || !is_index(condition->operands[0])) return;
  const Poly difference = add(poly(condition->operands[1]), poly(condition->operands[0]), -1);  // b - a
  const Poly one = constant_poly(1), none;
  switch (condition->op) {
    case Op::Less:
      return add_fact(truth ? add(difference, one, -1) : add(none, difference, -1));
    case Op::LessEqual:
      return add_fact(truth ? difference : add(constant_poly(-1), difference, -1));
    case Op::Equal:
    case Op::NotEqual:
      if (truth != (condition->op == Op::Equal)) return;
      add_fact(difference);
      return add_fact(add(none, difference, -1));
    default:
      return;
  }
}

std::optional<bool> Facts::decide(const Expr& condition) {
  if (const auto value = condition.constant()) return *value != 0;
  if (condition->type.lanes != 1) return std::nullopt;
  if (condition->op == Op::Not) {
    const auto inner = decide(condition->operands[0]);
    return inner ? std::optional(!*inner) : inner;
  }
  if (condition->op == Op::And || condition->op == Op::Or) {
    const bool ends = condition->op == Op::Or;  // what one operand alone decides
    const auto a = decide(condition->operands[0]), b = decide(condition->operands[1]);
    if ((a && *a == ends) || (b && *b == ends)) return ends;
    return a && b ? std::optional(!ends) : std::nullopt;
  }
  if (condition->operands.size() != 2 || !is_index(condition->operands[0])) return std::nullopt;
  const Poly a = poly(condition->operands[0]), b = poly(condition->operands[1]);
  const auto less = [&](const Poly& x, const Poly& y) {
    return proves(add(add(y, x, -1), constant_poly(-1)), effort_);
  };
  const auto at_most = [&](const Poly& x, const Poly& y) { return proves(add(y, x, -1), effort_); };
  switch (condition->op) {
    case Op::Less:
      if (less(a, b)) return true;
      return at_most(b, a) ? std::optional(false) : std::nullopt;
    case Op::LessEqual:
      if (at_most(a, b)) return true;
      return less(b, a) ? std::optional(false) : std::nullopt;
    case Op::Equal:
    case Op::NotEqual: {
      const bool same = condition->op == Op::Equal;
      if (at_most(a, b) && at_most(b, a)) return same;
      return less(a, b) || less(b, a) ? std::optional(!same) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool Facts::nonnegative(const Expr& e) {
  return proves(poly(e), effort_);
}

Interval Facts::range(const Expr& e) {
  return range(poly(e));
}

bool Facts::is_multiple(const Expr& e, int64_t factor) {
  const Poly p = poly(e);
  return std::all_of(p.begin(), p.end(), [&](const auto& term) { return term.second % factor == 0; });
}

Interval Facts::range(const Monomial& m) const {
  Interval out{1, 1};
  for (size_t i = 0; i < m.size(); ++i) {
    const Interval atom = atoms_[m[i]].range;
    if (i + 1 < m.size() && m[i] == m[i + 1]) {  // a square
      const Interval square = multiply(atom, atom);
      out = multiply(out, {atom.lo <= 0 && atom.hi >= 0 ? 0 : square.lo, square.hi});
      ++i;
    } else {
      out = multiply(out, atom);
    }
  }
  return out;
}

Interval Facts::range(const Poly& p) const {
  Interval out{0, 0};
  for (const auto& [m, c] : p) out = add(out, multiply(range(m), {c, c}));
  return out;
}

bool Facts::proves(const Poly& p, Effort effort) const {
  // Short proofs first: a wrong first step would else be followed to its end.
  const bool deep = effort == Effort::Deep;
  Attempt attempt;
  for (int depth = 0; depth <= (deep ? kDepth : kQuickDepth); ++depth) {
    attempt.budget = deep ? kBudget : kQuickBudget;
    if (search(p, depth, attempt)) return true;
  }
  return false;
}

// p >= 0, by subtracting multiples of facts until the ranges tell: if fact >= 0, q >= 0 and p - q * fact >= 0, then
// p >= 0. Each step removes an atom, or one term.
bool Facts::search(const Poly& p, int depth, Attempt& attempt) const {
  if (range(p).lo >= 0) return true;
  if (depth == 0) return false;
  int& tried = attempt.in_vain[p.hash()];
  if (tried >= depth || --attempt.budget < 0) return false;
  const auto large = [](const Poly& q) {
    return std::any_of(q.begin(), q.end(), [](const auto& term) { return std::abs(term.second) > kMaxCoefficient; });
  };
  if (large(p)) return false;
  const auto goes_on = [&](Poly rest) {
    rest.divide_by_common_factor();
    return search(rest, depth - 1, attempt);
  };
  Monomial atoms;
  for (const auto& [m, c] : p) atoms += m;
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  for (const char16_t atom : atoms) {
    // p = slope * atom + rest, where the slope has one sign.
    std::vector<Poly::Term> terms;
    bool linear = true;
    for (const auto& [m, c] : p) {
      const auto count = std::count(m.begin(), m.end(), atom);
      linear = linear && count <= 1;
      if (count == 1) terms.emplace_back(*quotient(m, {atom}), c);
    }
    if (!linear) continue;
    const Poly slope(std::move(terms));
    const Interval signs = range(slope);
    if (signs.lo < 0 && signs.hi > 0) continue;
    const int64_t sign = signs.lo >= 0 ? 1 : -1;
    for (const Poly& fact : facts_) {
      const int64_t found = fact.coefficient({atom});
      if (found == 0 || (found > 0) != (sign > 0)) continue;
      const bool alone = std::none_of(fact.begin(), fact.end(), [&](const auto& term) {
        return term.first.size() > 1 && std::binary_search(term.first.begin(), term.first.end(), atom);
      });
      if (!alone || large(fact)) continue;
      const Poly scaled = multiply(p, Monomial{}, std::abs(found));
      if (goes_on(add(scaled, multiply(slope, fact), -sign))) return true;
    }
  }
  for (const auto& [m, c] : p) {
    if (m.size() < 2) continue;
    for (const Poly& fact : facts_) {
      for (const auto& [n, d] : fact) {
        if (n.size() < 2 || (d < 0) != (c < 0)) continue;
        const auto q = quotient(m, n);
        if (!q || range(*q).lo < 0 || large(fact)) continue;
        const int64_t g = std::gcd(c, d);
        const Poly taken = multiply(fact, *q, std::abs(c) / g);
        if (goes_on(add(multiply(p, Monomial{}, std::abs(d) / g), taken, -1))) return true;
      }
    }
  }
  // A proof that ran out of budget was not tried to the end.
  if (attempt.budget >= 0) attempt.in_vain[p.hash()] = depth;
  return false;
}

Poly Facts::poly(const Expr& e) {
  NEO_ASSERT(e->type.lanes == 1, "Got ", to_string(e));
  switch (e->op) {
    case Op::Integer:
      return constant_poly(e->integer);
    case Op::Variable: {
      const auto found = variables_.find(e->variable.get());
      if (found != variables_.end()) return found->second;
      kept_.push_back(e->variable);
      return variables_[e->variable.get()] = atom_poly(new_atom(type_range(e->type.dtype), e));
    }
    case Op::Add:
      return add(poly(e->operands[0]), poly(e->operands[1]));
    case Op::Sub:
      return add(poly(e->operands[0]), poly(e->operands[1]), -1);
    case Op::Neg:
      return add(Poly{}, poly(e->operands[0]), -1);
    case Op::Mul:
      return multiply(poly(e->operands[0]), poly(e->operands[1]));
    case Op::ShiftLeft:
      if (const auto bits = e->operands[1].constant(); bits && *bits >= 0 && *bits < 31) {
        return multiply(poly(e->operands[0]), Monomial{}, int64_t{1} << *bits);
      }
      return opaque_poly(e);
    case Op::Div:
    case Op::Mod:
      return quotient_poly(e);
    case Op::Min:
    case Op::Max:
      return extremum_poly(e);
    case Op::Cast: {
      if (!is_integer(e->operands[0]->type.dtype)) return opaque_poly(e);
      const Poly inner = poly(e->operands[0]);
      const Interval fits = type_range(e->type.dtype);
      return range(inner).inside(fits.lo, fits.hi) ? inner : opaque_poly(e);
    }
    default:
      return opaque_poly(e);
  }
}

// a = d * q + r with 0 <= r < d, term by term.
bool Facts::split(const Poly& dividend, const Poly& divisor, Poly* q, Poly* r) {
  *q = *r = Poly();
  if (divisor.size() != 1) return false;
  const auto& [m, d] = *divisor.begin();
  if (d <= 0) return false;
  std::vector<Poly::Term> whole, left;
  for (const auto& [n, c] : dividend) {
    const auto rest = quotient(n, m);
    int64_t times = rest ? c / d : 0;
    if (rest && c % d < 0) --times;  // the remainder's coefficient stays positive
    if (rest) whole.emplace_back(*rest, times);
    left.emplace_back(n, c - times * d);
  }
  *q = Poly(std::move(whole));
  *r = Poly(std::move(left));
  return proves(*r) && proves(add(add(divisor, *r, -1), constant_poly(-1)));
}

Poly Facts::quotient_poly(const Expr& e) {
  const Poly a = poly(e->operands[0]), d = poly(e->operands[1]);
  const bool wants_quotient = e->op == Op::Div;
  if (!proves(add(d, constant_poly(-1))) || !proves(a)) return opaque_poly(e);
  Poly q, r;
  if (split(a, d, &q, &r)) return wants_quotient ? q : r;
  if (!proves(r) || q.empty()) {
    q = Poly();
    r = a;
  }
  // a = d * q + r and r = d * floor(r / d) + what is left.
  const Interval of_r = range(r), of_d = range(d);
  const int64_t least = std::max<int64_t>(of_d.lo, 1);
  const Interval bounds{0, of_r.hi >= kUnbounded ? kUnbounded : std::max<int64_t>(of_r.hi, 0) / least};
  const Expr whole = q.empty() ? make(Op::Div, {e->operands[0], e->operands[1]}) : Expr();
  const int id = named_atom("div " + key_of(r) + " by " + key_of(d), bounds, whole);
  const Poly floor = atom_poly(id);
  const Poly left = add(r, multiply(d, floor), -1);
  if (make_live(id)) {
    add_fact(left);
    add_fact(add(add(d, left, -1), constant_poly(-1)));
  }
  return wants_quotient ? add(q, floor) : left;
}

Poly Facts::extremum_poly(const Expr& e) {
  const Poly a = poly(e->operands[0]), b = poly(e->operands[1]);
  const bool least = e->op == Op::Min;
  const Poly b_minus_a = add(b, a, -1);
  if (proves(b_minus_a)) return least ? a : b;
  if (proves(add(Poly{}, b_minus_a, -1))) return least ? b : a;
  const Interval of_a = range(a), of_b = range(b);
  const Interval bounds = least ? Interval{std::min(of_a.lo, of_b.lo), std::min(of_a.hi, of_b.hi)}
                                : Interval{std::max(of_a.lo, of_b.lo), std::max(of_a.hi, of_b.hi)};
  const int id = named_atom((least ? "min " : "max ") + key_of(a) + " and " + key_of(b), bounds, e);
  const Poly self = atom_poly(id);
  if (make_live(id)) {
    for (const Poly& operand : {a, b}) add_fact(least ? add(operand, self, -1) : add(self, operand, -1));
    // Bounds that both operands have and that the interval cannot hold are those of the facts around.
    if (least && proves(a) && proves(b)) add_fact(self);
  }
  return self;
}

Poly Facts::opaque_poly(const Expr& e) {
  const Interval fits = type_range(e->type.dtype);
  bool changing = false;  // reads memory that a store may change in between
  walk(e, [&](const Expr& part) {
    changing = changing || (part->op == Op::Load && part->buffer->access != Access::Read) || part->op == Op::BlockRead;
    return true;
  });
  Interval bounds = fits;
  if (e->op == Op::Mod) {
    const Interval divisor = range(poly(e->operands[1]));
    if (divisor.lo > 0 && divisor.hi < kUnbounded) bounds = {-(divisor.hi - 1), divisor.hi - 1};
  } else if (e->op == Op::Select) {
    bounds = join(range(poly(e->operands[1])), range(poly(e->operands[2])));
  } else if (e->op == Op::BitAnd) {
    if (const auto mask = e->operands[1].constant(); mask && *mask >= 0) bounds = {0, *mask};
  } else if (e->op == Op::ShiftLeft) {  // a shift that is no number of bits has no value
    const Interval of_a = range(poly(e->operands[0]));
    const Poly bits = poly(e->operands[1]);
    const int64_t most = range(bits).hi;
    if (of_a.inside(0, 1) && most >= 0 && most <= 30 && proves(bits)) bounds = {of_a.lo, of_a.hi << most};
  } else if (e->op == Op::ShiftRight) {
    const Interval of_a = range(poly(e->operands[0]));
    const auto bits = e->operands[1].constant();
    if (of_a.lo >= 0 && bits && *bits >= 0 && *bits < 63) bounds = {of_a.lo >> *bits, of_a.hi >> *bits};
  } else if (e->op == Op::Cast && e->operands[0]->type.dtype == DType::Bool) {
    bounds = {0, 1};
  }
  if (changing) return atom_poly(new_atom(bounds, e));
  const auto [at, fresh] = opaque_.try_emplace(e, 0);
  if (fresh) at->second = new_atom(bounds, e);
  return atom_poly(at->second);
}

std::optional<Expr> Facts::to_expr(const Poly& p) const {
  Expr sum = 0;
  // Positive terms first, so that no difference starts with a negation.
  for (const bool positive : {true, false}) {
    for (const auto& [m, c] : p) {
      if ((c > 0) != positive) continue;
      Expr term = integer(std::abs(c));
      for (const int atom : m) {
        if (!atoms_[atom].expr.defined() || atoms_[atom].expr->type != kInt) return std::nullopt;
        term = atoms_[atom].expr * term;
      }
      sum = positive ? sum + term : sum - term;
    }
  }
  return sum;
}

bool Facts::divides(const Expr& dividend, const Expr& divisor, Expr* q, Expr* r) {
  const Poly a = poly(dividend), d = poly(divisor);
  Poly whole, left;
  if (!proves(a) || !split(a, d, &whole, &left)) return false;
  const auto whole_expr = to_expr(whole), left_expr = to_expr(left);
  if (!whole_expr || !left_expr) return false;
  *q = *whole_expr;
  *r = *left_expr;
  return true;
}

}  // namespace neo::kernel
