#include "kernel_ir/facts.h"
#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

class Simplifier {
 public:
  explicit Simplifier(const Kernel& kernel) : facts_(kernel, Facts::Effort::Quick) {}

  Body body(const Body& statements) {
    const Facts::Mark mark = facts_.mark();
    Body out;
    for (const auto& stmt : statements) std::visit([&](const auto& s) { add(s, out); }, stmt->what);
    facts_.rewind(mark);
    return out;
  }

  Expr expr(const Expr& e) {
    return rewrite(e, [&](const Expr& part) -> Expr {
      const bool scalar = part->type.lanes == 1;
      if (!scalar) return {};
      switch (part->op) {
        case Op::Div:
        case Op::Mod:
          return quotient(part);
        case Op::Min:
        case Op::Max: {
          if (!is_integer(part->type.dtype)) return {};
          const Expr a = expr(part->operands[0]), b = expr(part->operands[1]);
          const auto first = facts_.decide(part->op == Op::Min ? a <= b : b <= a);
          if (first) return *first ? a : b;
          return make(part->op, {a, b});
        }
        case Op::Less:
        case Op::LessEqual:
        case Op::Equal:
        case Op::NotEqual: {
          const auto known = facts_.decide(part);
          return known ? integer(*known, kBool) : Expr();
        }
        default:
          return {};
      }
    });
  }

 private:
  Expr quotient(const Expr& e) {
    if (!is_integer(e->type.dtype)) return {};
    const Expr a = expr(e->operands[0]), b = expr(e->operands[1]);
    Expr q, r;
    if (e->type == kInt && facts_.divides(a, b, &q, &r)) return e->op == Op::Div ? q : r;
    return make(e->op, {a, b});
  }

  void add(const Let& s, Body& out) {
    const Expr value = expr(s.value);
    facts_.bind_let(s.variable, value);
    out.push_back(make_stmt(Let{s.variable, value}));
  }
  void add(const Declare& s, Body& out) { out.push_back(make_stmt(s)); }
  void add(const Barrier& s, Body& out) { out.push_back(make_stmt(s)); }
  void add(const Store& s, Body& out) {
    out.push_back(make_stmt(Store{s.buffer, expr(s.index), expr(s.value), s.block}));
  }
  void add(const Atomic& s, Body& out) {
    out.push_back(make_stmt(Atomic{s.op, s.buffer, expr(s.index), expr(s.value), s.old}));
  }
  void add(const Collective& s, Body& out) {
    out.push_back(make_stmt(Collective{s.op, s.result, expr(s.value), s.lane.defined() ? expr(s.lane) : s.lane}));
  }
  void add(const MatrixMultiply& s, Body& out) {
    out.push_back(make_stmt(MatrixMultiply{s.result, expr(s.a), expr(s.b), expr(s.c)}));
  }
  void add(const Loop& s, Body& out) {
    const Expr begin = expr(s.begin), end = expr(s.end);
    if (facts_.decide(begin < end) == false) return;
    if (facts_.decide(end == begin + 1) == true && begin.constant()) {
      const Body once = body(renamed(s.body, {{s.variable.get(), begin}}));
      out.insert(out.end(), once.begin(), once.end());
      return;
    }
    const Facts::Mark mark = facts_.mark();
    facts_.bind_loop(s.variable, begin, end);
    Body inside = body(s.body);
    facts_.rewind(mark);
    if (!inside.empty()) out.push_back(make_stmt(Loop{s.variable, begin, end, s.kind, std::move(inside)}));
  }
  void add(const If& s, Body& out) {
    const Expr condition = conjunction(expr(s.condition));
    if (const auto known = facts_.decide(condition)) {
      const Body taken = body(*known ? s.then_body : s.else_body);
      out.insert(out.end(), taken.begin(), taken.end());
      return;
    }
    Body bodies[2];
    for (const bool truth : {true, false}) {
      const Facts::Mark mark = facts_.mark();
      facts_.assume(condition, truth);
      bodies[truth ? 0 : 1] = body(truth ? s.then_body : s.else_body);
      facts_.rewind(mark);
    }
    if (bodies[0].empty() && bodies[1].empty()) return;
    out.push_back(make_stmt(If{condition, std::move(bodies[0]), std::move(bodies[1])}));
  }

  // a && b where a decides b.
  Expr conjunction(const Expr& e) {
    if (e->op != Op::And || e->type.lanes != 1) return e;
    const Expr a = conjunction(e->operands[0]);
    const Facts::Mark mark = facts_.mark();
    facts_.assume(a);
    const auto known = facts_.decide(e->operands[1]);
    facts_.rewind(mark);
    return known ? (*known ? a : integer(0, kBool)) : make(Op::And, {a, e->operands[1]});
  }

  Facts facts_;
};

}  // namespace

Kernel simplify(const Kernel& kernel) {
  Simplifier simplifier(kernel);
  Kernel out = kernel;
  for (Axis& axis : out.groups) axis.extent = simplifier.expr(axis.extent);
  out.body = simplifier.body(kernel.body);
  return out;
}

}  // namespace neo::kernel
