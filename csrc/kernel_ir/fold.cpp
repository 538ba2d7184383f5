#include "kernel_ir/fold.h"

#include <cmath>
#include <limits>

namespace neo::kernel {
namespace {

// `value` wrapped to the type's width, as every device computes.
int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::Int8:
      return static_cast<int8_t>(value);
    case DType::UInt8:
      return static_cast<uint8_t>(value);
    case DType::Int16:
      return static_cast<int16_t>(value);
    case DType::UInt16:
      return static_cast<uint16_t>(value);
    case DType::Int32:
      return static_cast<int32_t>(value);
    case DType::UInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

int64_t wrapping(Op op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Add:
      return static_cast<int64_t>(x + y);
    case Op::Sub:
      return static_cast<int64_t>(x - y);
    default:
      return static_cast<int64_t>(x * y);
  }
}

Expr fold_integers(const Expr& e, int64_t a, int64_t b) {
  const ValueType type = e->type;
  const auto made = [&](int64_t value) { return integer(wrap(value, type.dtype), type); };
  switch (e->op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
      return made(wrapping(e->op, a, b));
    case Op::Div:
      return b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()) ? Expr() : made(a / b);
    case Op::Mod:
      return b == 0 || b == -1 ? Expr() : made(a % b);
    case Op::Min:
      return made(std::min(a, b));
    case Op::Max:
      return made(std::max(a, b));
    case Op::BitAnd:
    case Op::And:
      return made(a & b);
    case Op::BitOr:
    case Op::Or:
      return made(a | b);
    case Op::BitXor:
      return made(a ^ b);
    case Op::ShiftLeft:
      return b < 0 || b > 31 ? Expr() : made(static_cast<int64_t>(static_cast<uint64_t>(a) << b));
    case Op::ShiftRight:
      return b < 0 || b > 31 ? Expr() : made(a >> b);
    case Op::Less:
      return made(a < b);
    case Op::LessEqual:
      return made(a <= b);
    case Op::Equal:
      return made(a == b);
    case Op::NotEqual:
      return made(a != b);
    default:
      return {};
  }
}

// One operand is a number.
Expr fold_neutral(const Expr& e) {
  const Expr& a = e->operands[0];
  const Expr& b = e->operands[1];
  const bool whole = is_integer(e->type.dtype) || e->type.dtype == DType::Bool;
  if (!whole) return {};  // x + 0 is not x for -0
  switch (e->op) {
    case Op::Add:
      if (a.is(0)) return b;
      if (b.is(0)) return a;
      // (x + 1) + 2
      if (b.constant() && a->op == Op::Add && a->operands[1].constant()) {
        return make(Op::Add, {a->operands[0], make(Op::Add, {a->operands[1], b})});
      }
      if (a.constant()) return make(Op::Add, {b, a});
      return {};
    case Op::Sub:
      return b.is(0) ? a : Expr();
    case Op::Mul:
      if (a.is(0) || b.is(1)) return a;
      if (b.is(0) || a.is(1)) return b;
      if (a.constant()) return make(Op::Mul, {b, a});
      return {};
    case Op::Div:
      return b.is(1) ? a : Expr();
    case Op::Mod:
      return b.is(1) ? integer(0, e->type) : Expr();
    case Op::ShiftLeft:
    case Op::ShiftRight:
      return b.is(0) ? a : Expr();
    case Op::And:
      if (a.is(0) || b.is(1)) return a;
      if (b.is(0) || a.is(1)) return b;
      return {};
    case Op::Or:
      if (a.is(1) || b.is(0)) return a;
      if (b.is(1) || a.is(0)) return b;
      return {};
    default:
      return {};
  }
}

Expr fold_cast(const Expr& e) {
  const Expr& a = e->operands[0];
  const DType to = e->type.dtype;
  if (const auto value = a.constant()) {
    if (to == DType::Bool) return integer(*value != 0, e->type);
    if (is_integer(to)) return integer(wrap(*value, to), e->type);
    if (to == DType::Float32 && std::abs(*value) <= (1 << 24)) return real(static_cast<double>(*value), e->type);
  }
  return {};
}

}  // namespace

Expr fold(const Expr& e) {
  if (e->op == Op::Cast) return fold_cast(e);
  if (e->op == Op::Select) {
    if (const auto condition = e->operands[0].constant()) return *condition != 0 ? e->operands[1] : e->operands[2];
    return equal(e->operands[1], e->operands[2]) ? e->operands[1] : Expr();
  }
  if (e->op == Op::Not) {
    const Expr& a = e->operands[0];
    if (const auto value = a.constant()) return integer(*value == 0, e->type);
    return a->op == Op::Not ? a->operands[0] : Expr();
  }
  if (e->op == Op::Neg) {
    const auto value = e->operands[0].constant();
    if (value && is_integer(e->type.dtype)) return integer(wrap(wrapping(Op::Sub, 0, *value), e->type.dtype), e->type);
    if (e->operands[0]->op == Op::Real) return real(-e->operands[0]->real, e->type);
    return {};
  }
  if (e->operands.size() != 2) return {};
  const auto a = e->operands[0].constant(), b = e->operands[1].constant();
  if (a && b) {
    if (Expr folded = fold_integers(e, *a, *b); folded.defined()) return folded;
  }
  return fold_neutral(e);
}

}  // namespace neo::kernel
