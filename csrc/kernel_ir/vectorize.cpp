#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

// One vector loop. Everything is refused rather than guessed: `failed` says that the loop has no vector form.
class Lanes {
 public:
  Lanes(const Variable& v, int count) : variable_(v), count_(count) {}
  bool failed = false;

  Body body(const Body& statements) {
    Body out;
    for (const auto& stmt : statements) std::visit([&](const auto& s) { add(s, out); }, stmt->what);
    return out;
  }

 private:
  bool varies(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& part) {
      found =
          found || (part->op == Op::Variable && (part->variable == variable_ || lets_.contains(part->variable.get())));
      found = found || (part->op == Op::Load && registers_.contains(part->buffer.get()));
      return !found;
    });
    return found;
  }

  // The expression's growth from one iteration to the next.
  std::optional<int64_t> stride(const Expr& e) const {
    if (!varies(e)) return 0;
    const auto of = [&](int i) { return stride(e->operands[i]); };
    switch (e->op) {
      case Op::Variable:
        return e->variable == variable_ ? std::optional<int64_t>(1) : std::nullopt;
      case Op::Add:
      case Op::Sub: {
        const auto a = of(0), b = of(1);
        if (!a || !b) return std::nullopt;
        return e->op == Op::Add ? *a + *b : *a - *b;
      }
      case Op::Mul: {
        const auto a = of(0);
        const auto factor = e->operands[1].constant();
        return a && factor ? std::optional(*a * *factor) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  // The scalar of one iteration.
  Expr at(const Expr& e, int number) {
    return rewrite(e, [&](const Expr& part) -> Expr {
      if (part->op == Op::Variable) {
        if (part->variable == variable_) return integer(number);
        const auto found = lets_.find(part->variable.get());
        if (found != lets_.end()) return lane(found->second, number);
      }
      if (part->op == Op::Load) {
        const auto found = registers_.find(part->buffer.get());
        if (found != registers_.end()) return lane(load(found->second, part->operands[0]), number);
      }
      return {};
    });
  }

  Expr wide(const Expr& e) {
    if (!varies(e)) return broadcast(e, count_);
    switch (e->op) {
      case Op::Variable:
        if (e->variable != variable_) return lets_.at(e->variable.get());
        break;
      case Op::Load: {
        const auto found = registers_.find(e->buffer.get());
        if (found != registers_.end()) {
          failed = failed || varies(e->operands[0]);
          return load(found->second, e->operands[0]);
        }
        if (e->type.lanes == 1 && stride(e->operands[0]) == 1) return load(e->buffer, at(e->operands[0], 0), count_);
        break;
      }
      case Op::BlockRead:
      case Op::Bitcast:
      case Op::ToTf32:
      case Op::Dot4:
        break;
      case Op::Cast:
        return cast(wide(e->operands[0]), e->type.dtype);
      default: {
        if (e->type.lanes != 1) break;
        std::vector<Expr> operands;
        for (const Expr& operand : e->operands) operands.push_back(wide(operand));
        return with_operands(e, std::move(operands));
      }
    }
    if (e->type.lanes != 1 || e->op == Op::BlockRead) {
      failed = true;
      return e;
    }
    std::vector<Expr> lanes;
    for (int i = 0; i < count_; ++i) lanes.push_back(at(e, i));
    return vector(std::move(lanes));
  }

  void add(const Let& s, Body& out) {
    if (s.value->type.lanes != 1) failed = true;
    if (failed) return;
    if (!varies(s.value)) return out.push_back(make_stmt(s));
    const auto v =
        std::make_shared<const VariableInfo>(VariableInfo{s.variable->name, s.variable->type.with_lanes(count_)});
    Expr value = wide(s.value);
    if (failed) return;
    out.push_back(make_stmt(Let{v, std::move(value)}));
    lets_[s.variable.get()] = variable(v);
  }
  void add(const Declare& s, Body& out) {
    if (s.buffer->type.lanes != 1) failed = true;
    auto made = std::make_shared<BufferInfo>(*s.buffer);
    made->type.lanes = count_;
    registers_[s.buffer.get()] = made;
    out.push_back(make_stmt(Declare{made}));
  }
  void add(const Store& s, Body& out) {
    if (s.value->type.lanes != 1 || s.block) failed = true;
    if (failed) return;
    const auto found = registers_.find(s.buffer.get());
    if (found != registers_.end()) {
      failed = failed || varies(s.index);
      out.push_back(make_stmt(Store{found->second, s.index, wide(s.value)}));
    } else if (stride(s.index) == 1) {
      out.push_back(make_stmt(Store{s.buffer, at(s.index, 0), wide(s.value)}));
    } else if (varies(s.index)) {
      for (int i = 0; i < count_; ++i) out.push_back(make_stmt(Store{s.buffer, at(s.index, i), at(s.value, i)}));
    } else {
      failed = true;  // every iteration writes one place
    }
  }
  void add(const Loop& s, Body& out) {
    if (s.kind == LoopKind::Vector || varies(s.begin) || varies(s.end)) failed = true;
    if (failed) return;
    out.push_back(make_stmt(Loop{s.variable, s.begin, s.end, s.kind, body(s.body)}));
  }
  void add(const If& s, Body& out) {
    if (varies(s.condition)) failed = true;
    if (failed) return;
    Body yes = body(s.then_body);
    out.push_back(make_stmt(If{s.condition, std::move(yes), body(s.else_body)}));
  }
  void add(const Barrier&, Body&) { failed = true; }
  void add(const Atomic&, Body&) { failed = true; }
  void add(const Collective&, Body&) { failed = true; }
  void add(const MatrixMultiply&, Body&) { failed = true; }

  Variable variable_;
  int count_;
  std::unordered_map<const VariableInfo*, Expr> lets_;  // of the loop's own, as vectors
  std::unordered_map<const BufferInfo*, Memory> registers_;
};

Body vectorize(const Body& body) {
  Body out;
  for (const auto& stmt : body) {
    if (const auto* branch = std::get_if<If>(&stmt->what)) {
      out.push_back(make_stmt(If{branch->condition, vectorize(branch->then_body), vectorize(branch->else_body)}));
      continue;
    }
    const auto* loop = std::get_if<Loop>(&stmt->what);
    if (loop == nullptr) {
      out.push_back(stmt);
    } else if (loop->kind != LoopKind::Vector) {
      out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, vectorize(loop->body)}));
    } else {
      Lanes lanes(loop->variable, static_cast<int>(*loop->end.constant()));
      const Body wide = lanes.body(loop->body);
      if (lanes.failed) {
        out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, LoopKind::Unroll, vectorize(loop->body)}));
      } else {
        out.insert(out.end(), wide.begin(), wide.end());
      }
    }
  }
  return out;
}

}  // namespace

Kernel vectorize(const Kernel& kernel) {
  Kernel out = kernel;
  out.body = vectorize(kernel.body);
  return out;
}

}  // namespace neo::kernel
