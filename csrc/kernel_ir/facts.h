#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel_ir/poly.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {

// Facts about integer expressions at one place of a kernel: ranges of its sizes, axes and loops, guards around it.
// Every answer is a proof; no answer means "not proven".
class Facts {
 public:
  // Deep: proofs of many steps, for what must hold. Quick: for what is only better known.
  enum class Effort : uint8_t { Quick, Deep };
  Facts(const Kernel& kernel, Effort effort);

  // Everything assumed since then is forgotten by rewind.
  struct Mark {
    size_t facts;
    size_t live;
  };
  Mark mark() const { return {facts_.size(), live_order_.size()}; }
  void rewind(const Mark& mark);

  void bind_loop(const Variable& variable, const Expr& begin, const Expr& end);
  void bind_let(const Variable& variable, const Expr& value);
  void assume(const Expr& condition, bool truth = true);

  std::optional<bool> decide(const Expr& condition);
  bool nonnegative(const Expr& e);
  // From the ranges alone, without guards.
  Interval range(const Expr& e);
  // The quotient of two numbers, where the dividend is a sum of multiples of the divisor and of a remainder that is
  // proven to lie in [0, divisor); undefined otherwise. `remainder` gets that remainder.
  bool divides(const Expr& dividend, const Expr& divisor, Expr* quotient, Expr* remainder);
  // Is a multiple of `factor` for every value of its variables.
  bool is_multiple(const Expr& e, int64_t factor);

 private:
  struct Atom {
    Interval range;
    Expr expr;  // what it stands for
  };
  Poly poly(const Expr& e);
  Poly quotient_poly(const Expr& e);
  Poly extremum_poly(const Expr& e);
  Poly opaque_poly(const Expr& e);
  int new_atom(Interval range, Expr expr);
  int named_atom(const std::string& key, Interval range, const Expr& expr);
  bool make_live(int atom);
  void add_fact(Poly p) { facts_.push_back(std::move(p)); }
  Interval range(const Poly& p) const;
  Interval range(const Monomial& m) const;
  bool proves(const Poly& p, Effort effort = Effort::Quick) const;
  // Steps that are left to a proof, and what was tried in vain: by the hash of a polynomial, with how many steps. Facts
  // subtracted in another order give the same polynomial.
  struct Attempt {
    int budget = 0;
    std::unordered_map<uint64_t, int> in_vain;
  };
  bool search(const Poly& p, int depth, Attempt& attempt) const;
  std::optional<Expr> to_expr(const Poly& p) const;
  bool split(const Poly& dividend, const Poly& divisor, Poly* quotient, Poly* remainder);

  Effort effort_;
  std::vector<Atom> atoms_;
  std::unordered_map<const VariableInfo*, Poly> variables_;
  std::map<std::string, int> named_;
  std::unordered_map<Expr, int, ExprHash, ExprEqual> opaque_;
  std::vector<Poly> facts_;  // each >= 0
  std::vector<int> live_order_;
  std::map<int, bool> live_;
  std::vector<Variable> kept_;  // keeps the keys of variables_ alive
};

// The range of an integer type.
Interval type_range(DType dtype);

}  // namespace neo::kernel
