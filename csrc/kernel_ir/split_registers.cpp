#include <unordered_map>

#include "base/check.h"
#include "kernel_ir/facts.h"
#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

struct Use {
  bool numbered = true;  // every index is a number
  int lanes = 0;         // of every access; 0: none seen, -1: they differ
};

struct Split {
  std::vector<Memory> parts;  // one for each element
  Memory whole;               // or one array, of vectors
  int lanes = 1;              // of the scalars that one element now holds
};

class Splitter {
 public:
  explicit Splitter(const Kernel& kernel) : kernel_(kernel), facts_(kernel, Facts::Effort::Quick) {}

  Kernel run() {
    collect(kernel_.body);
    for (const Memory& m : declared_) plan(m);
    Kernel out = kernel_;
    out.body = rebuilt(kernel_.body);
    return out;
  }

 private:
  void note(const Memory& m, const Expr& index, int lanes) {
    if (m->space != Space::Register) return;
    Use& use = uses_[m.get()];
    use.numbered = use.numbered && index.constant().has_value();
    if (m->type.lanes > 1) lanes = 1;
    if (use.lanes == 0) use.lanes = lanes;
    if (use.lanes != lanes || !facts_.is_multiple(index, lanes)) use.lanes = -1;
  }

  void note(const Expr& e) {
    walk(e, [&](const Expr& part) {
      if (part->op == Op::Load) note(part->buffer, part->operands[0], part->type.lanes / part->buffer->type.lanes);
      return true;
    });
  }

  void collect(const Body& body) {
    walk(body, [&](const Stmt& stmt) {
      each_expression(stmt, [&](const Expr& e) { note(e); });
      if (const auto* d = std::get_if<Declare>(&stmt.what)) declared_.push_back(d->buffer);
      if (const auto* s = std::get_if<Store>(&stmt.what)) {
        note(s->buffer, s->index, s->value->type.lanes / s->buffer->type.lanes);
      }
    });
  }

  void plan(const Memory& m) {
    const Use use = uses_[m.get()];
    const int64_t elements = *m->elements.constant();
    if (use.lanes <= 0 || elements % use.lanes != 0) return;
    Split split;
    split.lanes = use.lanes;
    const ValueType type = use.lanes > 1 ? m->type.with_lanes(use.lanes) : m->type;
    const int64_t count = elements / use.lanes;
    if (use.numbered && count > 1) {
      for (int64_t i = 0; i < count; ++i) {
        split.parts.push_back(
            std::make_shared<const BufferInfo>(BufferInfo{str(m->name, i), type, m->space, m->access, integer(1)}));
      }
    } else if (use.lanes > 1) {
      split.whole = std::make_shared<const BufferInfo>(BufferInfo{m->name, type, m->space, m->access, integer(count)});
    } else {
      return;
    }
    splits_[m.get()] = std::move(split);
  }

  // The buffer and index that stand for an access.
  std::pair<Memory, Expr> place(const Memory& m, const Expr& index) const {
    const auto found = splits_.find(m.get());
    if (found == splits_.end()) return {m, index};
    const Split& split = found->second;
    if (split.whole != nullptr) return {split.whole, index / split.lanes};
    const int64_t at = *index.constant() / split.lanes;
    NEO_ASSERT(at >= 0 && at < std::ssize(split.parts), "Got ", m->name, "[", to_string(index), "]");
    return {split.parts[at], integer(0)};
  }

  Expr changed(const Expr& e) const {
    return rewrite(e, [&](const Expr& part) -> Expr {
      if (part->op != Op::Load || !splits_.contains(part->buffer.get())) return {};
      const auto [m, index] = place(part->buffer, changed(part->operands[0]));
      return load(m, index);
    });
  }

  Body rebuilt(const Body& body) const {
    Body out;
    for (const auto& stmt : map_expressions(body, [&](const Expr& e) { return changed(e); })) replace(stmt, out);
    return out;
  }

  // Declarations and stores; expressions are done already.
  void replace(const std::shared_ptr<const Stmt>& stmt, Body& out) const {
    const auto inside = [&](const Body& body) {
      Body made;
      for (const auto& s : body) replace(s, made);
      return made;
    };
    if (const auto* d = std::get_if<Declare>(&stmt->what)) {
      const auto found = splits_.find(d->buffer.get());
      if (found == splits_.end()) return out.push_back(stmt);
      for (const Memory& part : found->second.parts) out.push_back(make_stmt(Declare{part}));
      if (found->second.whole != nullptr) out.push_back(make_stmt(Declare{found->second.whole}));
    } else if (const auto* s = std::get_if<Store>(&stmt->what)) {
      const auto [m, index] = place(s->buffer, s->index);
      out.push_back(make_stmt(Store{m, index, s->value, s->block}));
    } else if (const auto* loop = std::get_if<Loop>(&stmt->what)) {
      out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, inside(loop->body)}));
    } else if (const auto* branch = std::get_if<If>(&stmt->what)) {
      out.push_back(make_stmt(If{branch->condition, inside(branch->then_body), inside(branch->else_body)}));
    } else {
      out.push_back(stmt);
    }
  }

  const Kernel& kernel_;
  Facts facts_;
  std::vector<Memory> declared_;
  std::unordered_map<const BufferInfo*, Use> uses_;
  std::unordered_map<const BufferInfo*, Split> splits_;
};

}  // namespace

Kernel split_registers(const Kernel& kernel) {
  return Splitter(kernel).run();
}

}  // namespace neo::kernel
