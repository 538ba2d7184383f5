#include <unordered_map>
#include <unordered_set>

#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

struct Found {
  int count = 0;
  bool in_loop = false;
  int order = 0;
};
using Table = std::unordered_map<Expr, Found, ExprHash, ExprEqual>;
using Known = std::unordered_set<const VariableInfo*>;

class Hoister {
 public:
  explicit Hoister(const Kernel& kernel) {
    for (const Parameter& p : kernel.parameters) {
      const auto* scalar = std::get_if<ScalarParameter>(&p);
      if (scalar == nullptr) continue;
      known_.insert(scalar->variable.get());
      if (scalar->lo > 0) positive_.insert(scalar->variable.get());
    }
    for (const auto& axes : {kernel.groups, kernel.locals}) {
      for (const Axis& axis : axes) {
        if (axis.variable != nullptr) known_.insert(axis.variable.get());
      }
    }
  }

  Body body(const Body& statements) {
    Table table;
    for (const auto& stmt : statements) collect(*stmt, false, table);
    std::vector<std::pair<Expr, Found>> chosen;
    for (const auto& [e, found] : table) {
      if (found.count > 1 || found.in_loop) chosen.emplace_back(e, found);
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
    Body out;
    std::unordered_map<Expr, Expr, ExprHash, ExprEqual> names;
    for (const auto& [e, found] : chosen) {
      const auto v = std::make_shared<const VariableInfo>(VariableInfo{"i", e->type});
      names[e] = variable(v);
      known_.insert(v.get());
      out.push_back(make_stmt(Let{v, e}));
    }
    const Body named = names.empty() ? statements : map_expressions(statements, [&](const Expr& whole) {
      return rewrite(whole, [&](const Expr& e) {
        const auto at = names.find(e);
        return at == names.end() ? Expr() : at->second;
      });
    });
    // Later statements know the variable, too.
    for (size_t i = 0; i < named.size(); ++i) {
      const Stmt& stmt = *named[i];
      if (const auto* let = std::get_if<Let>(&stmt.what)) {
        out.push_back(named[i]);
        known_.insert(let->variable.get());
        if (!is_integer(let->value->type.dtype)) continue;
        const Body rest = body(Body(named.begin() + static_cast<int64_t>(i) + 1, named.end()));
        out.insert(out.end(), rest.begin(), rest.end());
        return out;
      }
      if (const auto* loop = std::get_if<Loop>(&stmt.what)) {
        known_.insert(loop->variable.get());
        out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, body(loop->body)}));
      } else if (const auto* branch = std::get_if<If>(&stmt.what)) {
        Body yes = body(branch->then_body);
        out.push_back(make_stmt(If{branch->condition, std::move(yes), body(branch->else_body)}));
      } else {
        out.push_back(named[i]);
      }
    }
    return out;
  }

 private:
  // Integers made of what is known here, that take an operation and cannot fault.
  bool movable(const Expr& e) const {
    bool yes = true;
    walk(e, [&](const Expr& part) {
      switch (part->op) {
        case Op::Integer:
          break;
        case Op::Variable:
          yes = yes && known_.contains(part->variable.get());
          break;
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::Min:
        case Op::Max:
        case Op::ShiftLeft:
        case Op::ShiftRight:
        case Op::BitAnd:
          yes = yes && is_integer(part->type.dtype);
          break;
        case Op::Div:
        case Op::Mod: {
          const Expr& by = part->operands[1];
          const bool nonzero =
              by.constant().value_or(0) > 0 || (by->op == Op::Variable && positive_.contains(by->variable.get()));
          yes = yes && is_integer(part->type.dtype) && nonzero;
          break;
        }
        default:
          yes = false;
      }
      yes = yes && part->type.lanes == 1;
      return yes;
    });
    return yes && e->op != Op::Integer && e->op != Op::Variable;
  }

  void collect(const Expr& whole, bool in_loop, Table& table) {
    walk(whole, [&](const Expr& e) {
      if (!movable(e)) return true;
      Found& found = table[e];
      if (found.count++ == 0) found.order = static_cast<int>(table.size());
      found.in_loop = found.in_loop || in_loop;
      return false;
    });
  }

  void collect(const Stmt& stmt, bool in_loop, Table& table) {
    each_expression(stmt, [&](const Expr& e) { collect(e, in_loop, table); });
    if (const auto* loop = std::get_if<Loop>(&stmt.what)) {
      for (const auto& s : loop->body) collect(*s, true, table);
    } else if (const auto* branch = std::get_if<If>(&stmt.what)) {
      for (const Body* b : {&branch->then_body, &branch->else_body}) {
        for (const auto& s : *b) collect(*s, in_loop, table);
      }
    }
  }

  Known known_;
  Known positive_;
};

}  // namespace

Kernel hoist(const Kernel& kernel) {
  Kernel out = kernel;
  out.body = Hoister(kernel).body(kernel.body);
  return out;
}

}  // namespace neo::kernel
