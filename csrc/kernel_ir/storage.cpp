#include <unordered_map>

#include "base/check.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {
namespace {

class Stored {
 public:
  Stored(const Kernel& kernel, DType storage) : storage_(storage) {
    for (const Parameter& parameter : kernel.parameters) {
      const auto* memory = std::get_if<Memory>(&parameter);
      if (memory == nullptr || !may_convert(**memory)) continue;
      auto made = std::make_shared<BufferInfo>(**memory);
      made->storage = storage;
      to_[memory->get()] = std::move(made);
    }
  }

  Kernel run(const Kernel& kernel) const {
    Kernel out = kernel;
    out.name += str("_", name(storage_));
    for (Parameter& parameter : out.parameters) {
      if (auto* memory = std::get_if<Memory>(&parameter)) *memory = at(*memory);
    }
    out.body = body(map_expressions(kernel.body, [&](const Expr& e) { return expression(e); }));
    return out;
  }

 private:
  static bool may_convert(const BufferInfo& m) {
    return m.space == Space::Global && m.type == kFloat && m.storage == DType::Undefined;
  }

  Memory at(const Memory& m) const {
    const auto found = to_.find(m.get());
    return found == to_.end() ? m : found->second;
  }

  Expr expression(const Expr& e) const {
    return rewrite(e, [&](const Expr& part) -> Expr {
      const bool reads = part->op == Op::Load || part->op == Op::BlockRead;
      if (!reads || to_.find(part->buffer.get()) == to_.end()) return {};
      const Expr index = expression(part->operands[0]);
      return part->op == Op::Load ? load(at(part->buffer), index, part->type.lanes)
                                  : block_read(at(part->buffer), index, part->type.lanes);
    });
  }

  // Expressions are done already.
  Body body(const Body& statements) const {
    Body out;
    for (const auto& stmt : statements) {
      if (const auto* s = std::get_if<Store>(&stmt->what)) {
        out.push_back(make_stmt(Store{at(s->buffer), s->index, s->value, s->block}));
      } else if (const auto* atomic = std::get_if<Atomic>(&stmt->what)) {
        NEO_ASSERT(at(atomic->buffer) == atomic->buffer, "atomics on ", atomic->buffer->name, " in ", name(storage_));
        out.push_back(stmt);
      } else if (const auto* loop = std::get_if<Loop>(&stmt->what)) {
        out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, body(loop->body)}));
      } else if (const auto* branch = std::get_if<If>(&stmt->what)) {
        out.push_back(make_stmt(If{branch->condition, body(branch->then_body), body(branch->else_body)}));
      } else {
        out.push_back(stmt);
      }
    }
    return out;
  }

  DType storage_;
  std::unordered_map<const BufferInfo*, Memory> to_;
};

}  // namespace

Kernel with_storage(const Kernel& kernel, DType storage) {
  return storage == DType::Float32 ? kernel : Stored(kernel, storage).run(kernel);
}

}  // namespace neo::kernel
