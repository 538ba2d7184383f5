#include <unordered_map>

#include "base/check.h"
#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

// Copies statements with other variables and registers in place of those they declare.
class Copier {
 public:
  std::map<const VariableInfo*, Expr> values;

  Body copy(const Body& body) {
    Body out;
    for (const auto& stmt : body) {
      std::visit([&](const auto& s) { out.push_back(make_stmt(copy(s))); }, stmt->what);
    }
    return out;
  }

 private:
  Expr expr(const Expr& e) {
    if (!e.defined()) return e;
    return rewrite(e, [&](const Expr& part) -> Expr {
      if (part->op == Op::Variable) {
        const auto found = values.find(part->variable.get());
        return found == values.end() ? Expr() : found->second;
      }
      if (part->op == Op::Load && buffers_.contains(part->buffer.get())) {
        const Memory& m = buffers_.at(part->buffer.get());
        return load(m, expr(part->operands[0]), part->type.lanes / m->type.lanes);
      }
      return {};
    });
  }
  Variable fresh(const Variable& v) {
    if (v == nullptr) return v;
    auto made = std::make_shared<const VariableInfo>(*v);
    values[v.get()] = variable(made);
    return made;
  }
  Memory buffer(const Memory& m) const {
    const auto found = buffers_.find(m.get());
    return found == buffers_.end() ? m : found->second;
  }

  Let copy(const Let& s) {
    Expr value = expr(s.value);
    return {fresh(s.variable), std::move(value)};
  }
  Declare copy(const Declare& s) {
    auto made = std::make_shared<const BufferInfo>(*s.buffer);
    buffers_[s.buffer.get()] = made;
    return {std::move(made)};
  }
  Store copy(const Store& s) { return {buffer(s.buffer), expr(s.index), expr(s.value), s.block}; }
  Loop copy(const Loop& s) {
    Expr begin = expr(s.begin), end = expr(s.end);
    Variable v = fresh(s.variable);
    return {std::move(v), std::move(begin), std::move(end), s.kind, copy(s.body)};
  }
  If copy(const If& s) { return {expr(s.condition), copy(s.then_body), copy(s.else_body)}; }
  Barrier copy(const Barrier& s) { return s; }
  Atomic copy(const Atomic& s) {
    Expr index = expr(s.index), value = expr(s.value);
    return {s.op, buffer(s.buffer), std::move(index), std::move(value), fresh(s.old)};
  }
  Collective copy(const Collective& s) {
    Expr value = expr(s.value), lane = expr(s.lane);
    return {s.op, fresh(s.result), std::move(value), std::move(lane)};
  }
  MatrixMultiply copy(const MatrixMultiply& s) {
    Expr a = expr(s.a), b = expr(s.b), c = expr(s.c);
    return {fresh(s.result), std::move(a), std::move(b), std::move(c)};
  }

  std::unordered_map<const BufferInfo*, Memory> buffers_;
};

Body unroll(const Body& body) {
  Body out;
  for (const auto& stmt : body) {
    if (const auto* branch = std::get_if<If>(&stmt->what)) {
      out.push_back(make_stmt(If{branch->condition, unroll(branch->then_body), unroll(branch->else_body)}));
      continue;
    }
    const auto* loop = std::get_if<Loop>(&stmt->what);
    if (loop == nullptr) {
      out.push_back(stmt);
      continue;
    }
    const Body inside = unroll(loop->body);
    if (loop->kind != LoopKind::Unroll) {
      out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, inside}));
      continue;
    }
    const auto begin = loop->begin.constant(), end = loop->end.constant();
    NEO_ASSERT(begin && end, "for the unrolled loop ", loop->variable->name);
    for (int64_t i = *begin; i < *end; ++i) {
      const Body copy = renamed(inside, {{loop->variable.get(), integer(i)}});
      out.insert(out.end(), copy.begin(), copy.end());
    }
  }
  return out;
}

}  // namespace

Body renamed(const Body& body, const std::map<const VariableInfo*, Expr>& values) {
  Copier copier;
  copier.values = values;
  return copier.copy(body);
}

Kernel unroll(const Kernel& kernel) {
  Kernel out = kernel;
  out.body = unroll(kernel.body);
  return out;
}

}  // namespace neo::kernel
