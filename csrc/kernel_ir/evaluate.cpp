#include "kernel_ir/evaluate.h"

#include <algorithm>

#include "base/check.h"

namespace neo::kernel {

int64_t evaluate(const Expr& e, const std::map<const VariableInfo*, int64_t>& values) {
  if (e->op == Op::Integer) return e->integer;
  if (e->op == Op::Variable) {
    const auto found = values.find(e->variable.get());
    NEO_CHECK(found != values.end(), Shape, "kernel", "every size of a launch must be given. Got no ",
              e->variable->name);
    return found->second;
  }
  NEO_ASSERT(e->operands.size() == 2, "for ", name(e->op));
  const int64_t a = evaluate(e->operands[0], values), b = evaluate(e->operands[1], values);
  int64_t result = 0;
  bool overflow = false;
  switch (e->op) {
    case Op::Add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::Sub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::Mul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::Div:
    case Op::Mod:
      NEO_CHECK(b > 0, Shape, "kernel", "a divisor must be positive. Got ", b, " in ", to_string(e));
      return e->op == Op::Div ? a / b : a % b;
    case Op::Min:
      return std::min(a, b);
    case Op::Max:
      return std::max(a, b);
    default:
      fail(ErrorKind::Internal, "kernel", str("a size is a sum of products. Got ", to_string(e)));
  }
  NEO_CHECK(!overflow, Shape, "kernel", "sizes must fit in 64 bits. Got ", to_string(e));
  return result;
}

}  // namespace neo::kernel
