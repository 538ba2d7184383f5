#include "kernel_ir/stmt.h"

#include <limits>

#include "base/check.h"
#include "kernel_ir/evaluate.h"

namespace neo::kernel {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

std::string_view name(Space space) {
  static constexpr std::string_view kNames[] = {"global", "image", "local", "register"};
  return kNames[static_cast<int>(space)];
}

int Kernel::threads() const {
  int64_t count = 1;
  for (const Axis& axis : locals) count *= axis.extent.constant().value_or(1);
  return static_cast<int>(count);
}

int64_t Kernel::local_bytes() const {
  int64_t bytes = 0;
  for (const Memory& m : local_buffers) bytes += m->elements.constant().value_or(0) * item_bytes(m->type.dtype);
  return bytes;
}

Geometry geometry(const Kernel& kernel, const std::map<std::string, int64_t, std::less<>>& sizes) {
  std::map<const VariableInfo*, int64_t> values;
  const std::string where = "kernel " + kernel.name;
  for (const Parameter& parameter : kernel.parameters) {
    const auto* scalar = std::get_if<ScalarParameter>(&parameter);
    if (scalar == nullptr || !is_integer(scalar->variable->type.dtype)) continue;
    const auto found = sizes.find(scalar->variable->name);
    if (found == sizes.end()) continue;  // a number that no size depends on
    NEO_CHECK(found->second >= scalar->lo && found->second <= scalar->hi, Shape, where, "size ", found->first,
              " must lie in its range. Got ", found->second, ", expected ", scalar->lo, " ... ", scalar->hi);
    values[scalar->variable.get()] = found->second;
  }
  Geometry out;
  for (int i = 0; i < 3; ++i) {
    out.groups[i] = evaluate(kernel.groups[i].extent, values);
    out.locals[i] = evaluate(kernel.locals[i].extent, values);
    NEO_CHECK(out.groups[i] >= 0 && out.groups[i] <= std::numeric_limits<int32_t>::max(), Shape, where,
              "the number of groups must fit. Got ", out.groups[i], " along axis ", i);
  }
  for (const Parameter& parameter : kernel.parameters) {
    const auto* memory = std::get_if<Memory>(&parameter);
    const int64_t elements = memory == nullptr ? -1 : evaluate((*memory)->elements, values);
    NEO_CHECK(memory == nullptr || (elements >= 0 && elements <= kMaxBufferElements), Shape, where,
              "a buffer has at most ", kMaxBufferElements, " elements. Got ", elements, " in ", (*memory)->name);
    out.elements.push_back(elements);
  }
  return out;
}

Body map_expressions(const Body& body, FunctionRef<Expr(const Expr&)> change) {
  Body out;
  for (const auto& stmt : body) {
    out.push_back(std::visit(
        Overloaded{
            [&](const Let& s) {
              return make_stmt(Let{s.variable, change(s.value)});
            },
            [&](const Declare&) { return stmt; },
            [&](const Store& s) {
              return make_stmt(Store{s.buffer, change(s.index), change(s.value), s.block});
            },
            [&](const Loop& s) {
              return make_stmt(
                  Loop{s.variable, change(s.begin), change(s.end), s.kind, map_expressions(s.body, change)});
            },
            [&](const If& s) {
              return make_stmt(
                  If{change(s.condition), map_expressions(s.then_body, change), map_expressions(s.else_body, change)});
            },
            [&](const Barrier&) { return stmt; },
            [&](const Atomic& s) {
              return make_stmt(Atomic{s.op, s.buffer, change(s.index), change(s.value), s.old});
            },
            [&](const Collective& s) {
              return make_stmt(Collective{s.op, s.result, change(s.value), s.lane.defined() ? change(s.lane) : s.lane});
            },
            [&](const MatrixMultiply& s) {
              return make_stmt(MatrixMultiply{s.result, change(s.a), change(s.b), change(s.c)});
            }},
        stmt->what));
  }
  return out;
}

void walk(const Body& body, FunctionRef<void(const Stmt&)> visit) {
  for (const auto& stmt : body) {
    visit(*stmt);
    if (const auto* loop = std::get_if<Loop>(&stmt->what)) walk(loop->body, visit);
    if (const auto* branch = std::get_if<If>(&stmt->what)) {
      walk(branch->then_body, visit);
      walk(branch->else_body, visit);
    }
  }
}

void each_expression(const Stmt& stmt, FunctionRef<void(const Expr&)> visit) {
  std::visit(Overloaded{[&](const Let& s) { visit(s.value); }, [&](const Declare&) {},
                        [&](const Store& s) {
                          visit(s.index);
                          visit(s.value);
                        },
                        [&](const Loop& s) {
                          visit(s.begin);
                          visit(s.end);
                        },
                        [&](const If& s) { visit(s.condition); }, [&](const Barrier&) {},
                        [&](const Atomic& s) {
                          visit(s.index);
                          visit(s.value);
                        },
                        [&](const Collective& s) {
                          visit(s.value);
                          if (s.lane.defined()) visit(s.lane);
                        },
                        [&](const MatrixMultiply& s) {
                          for (const Expr* e : {&s.a, &s.b, &s.c}) visit(*e);
                        }},
             stmt.what);
}

bool has_barrier(const Body& body) {
  bool found = false;
  walk(body, [&](const Stmt& stmt) { found = found || std::holds_alternative<Barrier>(stmt.what); });
  return found;
}

}  // namespace neo::kernel
