#include "kernel_ir/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernel_ir/fold.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {
namespace {

size_t mix(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}

Expr node(ExprNode n) {
  size_t hash = mix(static_cast<size_t>(n.op), mix(static_cast<size_t>(n.type.dtype), n.type.lanes));
  for (const Expr& e : n.operands) hash = mix(hash, e->hash);
  hash = mix(hash, static_cast<size_t>(n.integer));
  hash = mix(hash, std::bit_cast<uint64_t>(n.real));
  hash = mix(hash, std::hash<const void*>()(n.variable.get()));
  n.hash = mix(hash, std::hash<const void*>()(n.buffer.get()));
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

bool is_literal(const Expr& e) {
  return e->op == Op::Integer || e->op == Op::Real;
}

// `e` as a value of this type where it is a literal or a scalar; otherwise unchanged.
Expr matched(const Expr& e, ValueType type) {
  Expr out = e;
  if (is_literal(out) && out->type.dtype != type.dtype && type.dtype != DType::Bool) {
    if (is_float(type.dtype)) {
      out = real(out->op == Op::Integer ? static_cast<double>(out->integer) : out->real, type.scalar());
    } else if (out->op == Op::Integer) {
      out = integer(out->integer, type.scalar());
    }
  }
  if (out->type.lanes == 1 && type.lanes > 1) out = broadcast(out, type.lanes);
  return out;
}

Expr binary(Op op, const Expr& a, const Expr& b) {
  // A literal takes the type of what is none; of two scalars' types neither gives way.
  const ValueType of_a = a->type, of_b = b->type;
  const ValueType wanted = is_literal(a) && !is_literal(b) ? of_b : of_a;
  const ValueType type = wanted.with_lanes(std::max(of_a.lanes, of_b.lanes));
  return make(op, {matched(a, type), matched(b, type)});
}

[[noreturn]] void mistyped(Op op, const std::vector<Expr>& operands) {
  std::string types;
  for (const Expr& e : operands) types += (types.empty() ? "" : ", ") + e->type.to_string();
  fail(ErrorKind::Internal, "kernel", str(name(op), " must fit its operands. Got ", types));
}

// The type of the result; mistyped() where the operands do not fit.
ValueType result_type(Op op, const std::vector<Expr>& operands) {
  const auto require = [&](bool condition) {
    if (!condition) mistyped(op, operands);
  };
  require(!operands.empty());
  const ValueType a = operands[0]->type;
  const auto same = [&](size_t count) {
    require(operands.size() == count);
    for (const Expr& e : operands) require(e->type == a);
  };
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      same(1);
      require(is_float(a.dtype) || is_integer(a.dtype));
      return a;
    case Op::BitNot:
      same(1);
      require(is_integer(a.dtype));
      return a;
    case Op::Not:
      same(1);
      require(a.dtype == DType::Bool);
      return a;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Min:
    case Op::Max:
      same(2);
      require(is_float(a.dtype) || is_integer(a.dtype));
      return a;
    case Op::Mod:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::ShiftLeft:
    case Op::ShiftRight:
      same(2);
      require(is_integer(a.dtype));
      return a;
    case Op::Less:
    case Op::LessEqual:
      require(a.dtype != DType::Bool);
      [[fallthrough]];
    case Op::Equal:
    case Op::NotEqual:
      same(2);
      return {DType::Bool, a.lanes};
    case Op::And:
    case Op::Or:
      same(2);
      require(a.dtype == DType::Bool);
      return a;
    case Op::Select:
      require(operands.size() == 3 && a.dtype == DType::Bool && operands[1]->type == operands[2]->type);
      require(a.lanes == 1 || a.lanes == operands[1]->type.lanes);
      return operands[1]->type;
    case Op::Exp:
    case Op::Log:
    case Op::Sqrt:
    case Op::Tanh:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
      same(1);
      require(is_float(a.dtype));
      return a;
    case Op::Pow:
      same(2);
      require(is_float(a.dtype));
      return a;
    case Op::ToTf32:
      same(1);
      require(a == kFloat);
      return a;
    case Op::Fma:
      same(3);
      require(is_float(a.dtype));
      return a;
    case Op::Dot4:
      same(3);
      require(a == kInt);
      return a;
    default:
      mistyped(op, operands);
  }
}

}  // namespace

std::string ValueType::to_string() const {
  const std::string text(name(dtype));
  return lanes == 1 ? text : str(text, "x", lanes);
}

std::string_view name(Op op) {
  static constexpr std::string_view kNames[] = {
      "integer", "real",       "variable", "neg",    "bitnot", "not",     "add",     "sub",       "mul",  "div",
      "mod",     "min",        "max",      "bitand", "bitor",  "bitxor",  "shl",     "shr",       "less", "less_equal",
      "equal",   "not_equal",  "and",      "or",     "select", "cast",    "bitcast", "broadcast", "lane", "vector",
      "load",    "block_read", "exp",      "log",    "sqrt",   "tanh",    "sin",     "cos",       "erf",  "floor",
      "ceil",    "round",      "abs",      "pow",    "fma",    "to_tf32", "dot4"};
  return kNames[static_cast<int>(op)];
}

Variable make_variable(std::string_view name, ValueType type) {
  return std::make_shared<const VariableInfo>(VariableInfo{std::string(name), type});
}

Expr::Expr(int value) : Expr(int64_t{value}) {}
Expr::Expr(int64_t value) : Expr(integer(value)) {}
Expr::Expr(float value) : Expr(real(value)) {}

std::optional<int64_t> Expr::constant() const {
  if (!defined()) return std::nullopt;
  if (node_->op == Op::Integer) return node_->integer;
  if (node_->op == Op::Broadcast) return node_->operands[0].constant();
  return std::nullopt;
}

bool equal(const Expr& a, const Expr& b) {
  if (a.same(b)) return true;
  if (!a.defined() || !b.defined() || a->hash != b->hash || a->op != b->op || a->type != b->type) return false;
  if (a->integer != b->integer || a->variable != b->variable || a->buffer != b->buffer) return false;
  if (std::bit_cast<uint64_t>(a->real) != std::bit_cast<uint64_t>(b->real)) return false;
  return std::equal(a->operands.begin(), a->operands.end(), b->operands.begin(), b->operands.end(), equal);
}

Expr integer(int64_t value, ValueType type) {
  if (type.lanes > 1) return broadcast(integer(value, type.scalar()), type.lanes);
  NEO_ASSERT(is_integer(type.dtype) || type.dtype == DType::Bool, "Got ", type.to_string());
  return node({.op = Op::Integer, .type = type, .integer = value});
}

Expr real(double value, ValueType type) {
  if (type.lanes > 1) return broadcast(real(value, type.scalar()), type.lanes);
  NEO_ASSERT(is_float(type.dtype), "Got ", type.to_string());
  return node({.op = Op::Real, .type = type, .real = value});
}

Expr variable(const Variable& variable) {
  return node({.op = Op::Variable, .type = variable->type, .variable = variable});
}

Expr make(Op op, std::vector<Expr> operands) {
  const ValueType type = result_type(op, operands);
  Expr made = node({.op = op, .type = type, .operands = std::move(operands)});
  const Expr folded = fold(made);
  return folded.defined() ? folded : made;
}

Expr cast(const Expr& a, DType dtype) {
  if (a->type.dtype == dtype) return a;
  Expr made = node({.op = Op::Cast, .type = {dtype, a->type.lanes}, .operands = {a}});
  const Expr folded = fold(made);
  return folded.defined() ? folded : made;
}

Expr bitcast(const Expr& a, DType dtype) {
  NEO_ASSERT(item_bytes(a->type.dtype) == item_bytes(dtype), "Got ", name(a->type.dtype), " and ", name(dtype));
  return a->type.dtype == dtype ? a : node({.op = Op::Bitcast, .type = {dtype, a->type.lanes}, .operands = {a}});
}

Expr broadcast(const Expr& a, int lanes) {
  if (a->type.lanes == lanes) return a;
  NEO_ASSERT(a->type.lanes == 1, "Got ", a->type.to_string());
  return node({.op = Op::Broadcast, .type = a->type.with_lanes(lanes), .operands = {a}});
}

Expr lane(const Expr& a, int number) {
  NEO_ASSERT(number >= 0 && number < a->type.lanes, "Got lane ", number, " of ", a->type.to_string());
  if (a->op == Op::Broadcast) return a->operands[0];
  if (a->op == Op::Vector) return a->operands[number];
  return node({.op = Op::Lane, .type = a->type.scalar(), .operands = {a}, .integer = number});
}

Expr vector(std::vector<Expr> lanes) {
  NEO_ASSERT(!lanes.empty(), "Got none");
  const ValueType type = lanes[0]->type.with_lanes(static_cast<int>(lanes.size()));
  for (const Expr& e : lanes) NEO_ASSERT(e->type == type.scalar(), "Got ", e->type.to_string());
  if (std::all_of(lanes.begin(), lanes.end(), [&](const Expr& e) { return equal(e, lanes[0]); })) {
    return broadcast(lanes[0], type.lanes);
  }
  return node({.op = Op::Vector, .type = type, .operands = std::move(lanes)});
}

Expr load(const Memory& buffer, const Expr& index, int lanes) {
  const ValueType type = lanes == 1 ? buffer->type : buffer->type.with_lanes(lanes);
  NEO_CHECK(lanes == 1 || buffer->type.lanes == 1, Internal, "kernel", "a buffer of vectors is read one by one. Got ",
            lanes, " of ", buffer->name);
  return node({.op = Op::Load, .type = type, .operands = {index}, .buffer = buffer});
}

Expr block_read(const Memory& buffer, const Expr& index, int lanes) {
  return node({.op = Op::BlockRead, .type = buffer->type.with_lanes(lanes), .operands = {index}, .buffer = buffer});
}

Expr with_operands(const Expr& a, std::vector<Expr> operands) {
  switch (a->op) {
    case Op::Integer:
    case Op::Real:
    case Op::Variable:
      return a;
    case Op::Cast:
      return cast(operands[0], a->type.dtype);
    case Op::Bitcast:
      return bitcast(operands[0], a->type.dtype);
    case Op::Broadcast:
      return broadcast(operands[0], a->type.lanes);
    case Op::Lane:
      return lane(operands[0], static_cast<int>(a->integer));
    case Op::Vector:
      return vector(std::move(operands));
    case Op::Load:
    case Op::BlockRead:
      return node({.op = a->op, .type = a->type, .operands = std::move(operands), .buffer = a->buffer});
    default:
      return make(a->op, std::move(operands));
  }
}

Expr with_literal(Op op, const Expr& a, int64_t b) {
  return binary(op, a, b);
}

Expr operator+(const Expr& a, const Expr& b) {
  return binary(Op::Add, a, b);
}
Expr operator-(const Expr& a, const Expr& b) {
  return binary(Op::Sub, a, b);
}
Expr operator*(const Expr& a, const Expr& b) {
  return binary(Op::Mul, a, b);
}
Expr operator/(const Expr& a, const Expr& b) {
  return binary(Op::Div, a, b);
}
Expr operator%(const Expr& a, const Expr& b) {
  return binary(Op::Mod, a, b);
}
Expr operator-(const Expr& a) {
  return make(Op::Neg, {a});
}
Expr operator<(const Expr& a, const Expr& b) {
  return binary(Op::Less, a, b);
}
Expr operator<=(const Expr& a, const Expr& b) {
  return binary(Op::LessEqual, a, b);
}
Expr operator>(const Expr& a, const Expr& b) {
  return binary(Op::Less, b, a);
}
Expr operator>=(const Expr& a, const Expr& b) {
  return binary(Op::LessEqual, b, a);
}
Expr operator==(const Expr& a, const Expr& b) {
  return binary(Op::Equal, a, b);
}
Expr operator!=(const Expr& a, const Expr& b) {
  return binary(Op::NotEqual, a, b);
}
Expr operator&&(const Expr& a, const Expr& b) {
  return binary(Op::And, a, b);
}
Expr operator||(const Expr& a, const Expr& b) {
  return binary(Op::Or, a, b);
}
Expr operator!(const Expr& a) {
  return make(Op::Not, {a});
}
Expr operator&(const Expr& a, const Expr& b) {
  return binary(Op::BitAnd, a, b);
}
Expr operator|(const Expr& a, const Expr& b) {
  return binary(Op::BitOr, a, b);
}
Expr operator^(const Expr& a, const Expr& b) {
  return binary(Op::BitXor, a, b);
}
Expr operator<<(const Expr& a, const Expr& b) {
  return binary(Op::ShiftLeft, a, b);
}
Expr operator>>(const Expr& a, const Expr& b) {
  return binary(Op::ShiftRight, a, b);
}
Expr min(const Expr& a, const Expr& b) {
  return binary(Op::Min, a, b);
}
Expr max(const Expr& a, const Expr& b) {
  return binary(Op::Max, a, b);
}
Expr ceildiv(const Expr& a, const Expr& b) {
  return (a + (b - 1)) / b;
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  const ValueType base = is_literal(a) && !is_literal(b) ? b->type : a->type;
  const ValueType type = base.with_lanes(std::max({a->type.lanes, b->type.lanes, condition->type.lanes}));
  return make(Op::Select, {condition, matched(a, type), matched(b, type)});
}

Expr fma(const Expr& a, const Expr& b, const Expr& c) {
  const ValueType type = c->type.with_lanes(std::max({a->type.lanes, b->type.lanes, c->type.lanes}));
  return make(Op::Fma, {matched(a, type), matched(b, type), matched(c, type)});
}

Expr dot4(const Expr& a, const Expr& b, const Expr& sum) {
  return make(Op::Dot4, {a, b, sum});
}

Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> change) {
  if (Expr changed = change(e); changed.defined()) return changed;
  std::vector<Expr> operands;
  operands.reserve(e->operands.size());
  bool same = true;
  for (const Expr& operand : e->operands) {
    operands.push_back(rewrite(operand, change));
    same = same && operands.back().same(operand);
  }
  return same ? e : with_operands(e, std::move(operands));
}

void walk(const Expr& e, FunctionRef<bool(const Expr&)> visit) {
  if (!e.defined() || !visit(e)) return;
  for (const Expr& operand : e->operands) walk(operand, visit);
}

std::string to_string(const Expr& e) {
  static constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "%"};
  switch (e->op) {
    case Op::Integer:
      return std::to_string(e->integer);
    case Op::Real:
      return str(e->real);
    case Op::Variable:
      return e->variable->name;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Mod:
      return str("(", to_string(e->operands[0]), " ", kSigns[static_cast<int>(e->op) - static_cast<int>(Op::Add)], " ",
                 to_string(e->operands[1]), ")");
    case Op::Load:
      return str(e->buffer->name, "[", to_string(e->operands[0]), "]");
    default: {
      std::string operands;
      for (const Expr& operand : e->operands) operands += (operands.empty() ? "" : ", ") + to_string(operand);
      return str(name(e->op), "(", operands, ")");
    }
  }
}

}  // namespace neo::kernel
