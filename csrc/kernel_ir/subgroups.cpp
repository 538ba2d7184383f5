#include "base/check.h"
#include "kernel_ir/passes.h"

namespace neo::kernel {
namespace {

Expr axis_of(const Axis& axis) {
  return axis.variable == nullptr ? Expr(0) : variable(axis.variable);
}

// This thread's place in its subgroup.
Expr place(const Kernel& kernel) {
  const Expr x = axis_of(kernel.locals[0]);
  return kernel.locals[0].extent.is(kernel.subgroup_size) ? x : x % kernel.subgroup_size;
}

Expr thread_of(const Kernel& kernel) {
  Expr thread = 0;
  for (int i = 2; i >= 0; --i) thread = thread * kernel.locals[i].extent + axis_of(kernel.locals[i]);
  return thread;
}

using Replace = std::function<bool(const Stmt&, Body&)>;  // false: stays

Body replace(const Body& body, const Replace& change) {
  Body out;
  for (const auto& stmt : body) {
    if (change(*stmt, out)) continue;
    if (const auto* loop = std::get_if<Loop>(&stmt->what)) {
      out.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, replace(loop->body, change)}));
    } else if (const auto* branch = std::get_if<If>(&stmt->what)) {
      out.push_back(
          make_stmt(If{branch->condition, replace(branch->then_body, change), replace(branch->else_body, change)}));
    } else {
      out.push_back(stmt);
    }
  }
  return out;
}

}  // namespace

Kernel lower_reductions(const Kernel& kernel) {
  Kernel out = kernel;
  out.body = replace(kernel.body, [&](const Stmt& stmt, Body& body) {
    const auto* s = std::get_if<Collective>(&stmt.what);
    if (s == nullptr || s->op == CollectiveOp::Shuffle) return false;
    Expr value = s->value;
    for (int distance = kernel.subgroup_size / 2; distance > 0; distance /= 2) {
      const Variable mine = make_variable("part", value->type), other = make_variable("other", value->type);
      body.push_back(make_stmt(Let{mine, value}));
      body.push_back(
          make_stmt(Collective{CollectiveOp::Shuffle, other, variable(mine), place(kernel) ^ Expr(distance)}));
      value = s->op == CollectiveOp::Sum ? variable(mine) + variable(other) : max(variable(mine), variable(other));
    }
    body.push_back(make_stmt(Let{s->result, value}));
    return true;
  });
  return out;
}

Kernel lower_blocks(const Kernel& kernel) {
  if (kernel.subgroup_size == 0) return kernel;
  Kernel out = kernel;
  const Expr mine = place(kernel);
  const int size = kernel.subgroup_size;
  const Body body = replace(kernel.body, [&](const Stmt& stmt, Body& to) {
    const auto* s = std::get_if<Store>(&stmt.what);
    if (s == nullptr || !s->block) return false;
    for (int i = 0; i < s->value->type.lanes; ++i) {
      const Expr value = s->value->type.lanes == 1 ? s->value : lane(s->value, i);
      to.push_back(make_stmt(Store{s->buffer, s->index + i * size + mine, value}));
    }
    return true;
  });
  const std::function<Expr(const Expr&)> change = [&](const Expr& e) -> Expr {
    if (e->op != Op::BlockRead) return {};
    std::vector<Expr> lanes;
    const Expr index = rewrite(e->operands[0], change);
    for (int i = 0; i < e->type.lanes; ++i) lanes.push_back(load(e->buffer, index + i * size + mine));
    return lanes.size() == 1 ? lanes[0] : vector(std::move(lanes));
  };
  out.body = map_expressions(body, [&](const Expr& e) { return rewrite(e, change); });
  return out;
}

Kernel lower_matrices(const Kernel& kernel) {
  Kernel out = kernel;
  constexpr int kOfA = 4, kOfB = 2;  // elements of a thread
  Memory held_a, held_b;             // element, thread
  const int threads = kernel.threads();
  const auto share = [&](const char* name, int elements) {
    out.local_buffers.push_back(std::make_shared<const BufferInfo>(
        BufferInfo{name, kFloat, Space::Local, Access::ReadWrite, integer(int64_t{elements} * threads)}));
    return out.local_buffers.back();
  };
  const Expr thread = thread_of(kernel), mine = place(kernel), first = thread - mine;
  const Expr group = mine / 4, within = mine % 4;
  out.body = replace(kernel.body, [&](const Stmt& stmt, Body& to) {
    const auto* s = std::get_if<MatrixMultiply>(&stmt.what);
    if (s == nullptr) return false;
    if (held_a == nullptr) {
      held_a = share("matrix_a", kOfA);
      held_b = share("matrix_b", kOfB);
    }
    const auto keep = [&](const Memory& held, const Expr& value) {
      for (int i = 0; i < value->type.lanes; ++i) {
        to.push_back(make_stmt(Store{held, thread + i * threads, make(Op::ToTf32, {lane(value, i)})}));
      }
    };
    keep(held_a, s->a);
    keep(held_b, s->b);
    to.push_back(make_stmt(Barrier{}));
    std::vector<Expr> results;
    for (int e = 0; e < kOfA; ++e) {
      Expr sum = lane(s->c, e);
      const Expr column = within * 2 + e % 2;
      for (int k = 0; k < 8; ++k) {
        const Expr a = load(held_a, first + group * 4 + (k % 4 + (e / 2 + k / 4 * 2) * threads));
        const Expr b = load(held_b, first + column * 4 + (k % 4 + k / 4 * threads));
        sum = fma(a, b, sum);
      }
      const Variable part = make_variable("part", kFloat);
      to.push_back(make_stmt(Let{part, sum}));
      results.push_back(variable(part));
    }
    to.push_back(make_stmt(Let{s->result, vector(std::move(results))}));
    to.push_back(make_stmt(Barrier{}));
    return true;
  });
  return out;
}

Kernel lower_subgroups(const Kernel& kernel) {
  if (kernel.subgroup_size == 0) return kernel;
  Kernel out = lower_reductions(lower_blocks(kernel));
  const Expr thread = thread_of(kernel);
  const Expr first = thread - place(kernel);  // thread of the subgroup

  std::map<DType, Memory> exchanges;
  const auto exchange = [&](DType dtype) {
    Memory& m = exchanges[dtype];
    if (m == nullptr) {
      m = std::make_shared<const BufferInfo>(BufferInfo{
          str("exchange_", name(dtype)), {dtype, 1}, Space::Local, Access::ReadWrite, integer(kernel.threads())});
      out.local_buffers.push_back(m);
    }
    return m;
  };
  // A value lies in the exchange until another one takes its place; shuffles of the same variable read it again.
  const std::function<Body(const Body&)> lowered = [&](const Body& body) {
    Body to;
    std::map<DType, Expr> held;
    const auto release = [&] {
      if (!held.empty()) to.push_back(make_stmt(Barrier{}));
      held.clear();
    };
    for (const auto& stmt : body) {
      if (const auto* s = std::get_if<Collective>(&stmt->what)) {
        const DType dtype = s->value->type.dtype;
        const Memory m = exchange(dtype);
        const auto at = held.find(dtype);
        if (at == held.end() || s->value->op != Op::Variable || !equal(at->second, s->value)) {
          release();
          to.push_back(make_stmt(Store{m, thread, s->value}));
          to.push_back(make_stmt(Barrier{}));
          held[dtype] = s->value;
        }
        to.push_back(make_stmt(Let{s->result, load(m, first + s->lane)}));
      } else if (const auto* loop = std::get_if<Loop>(&stmt->what)) {
        release();
        to.push_back(make_stmt(Loop{loop->variable, loop->begin, loop->end, loop->kind, lowered(loop->body)}));
      } else if (const auto* branch = std::get_if<If>(&stmt->what)) {
        release();
        Body yes = lowered(branch->then_body);
        to.push_back(make_stmt(If{branch->condition, std::move(yes), lowered(branch->else_body)}));
      } else {
        to.push_back(stmt);
      }
    }
    release();
    return to;
  };
  out.body = lowered(out.body);
  out.subgroup_size = 0;
  return out;
}

}  // namespace neo::kernel
