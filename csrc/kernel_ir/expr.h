#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ir/dtype.h"

// Kernels for every GPU: typed expressions and statements that one printer writes as OpenCL C, CUDA C++ or plain C.
namespace neo::kernel {

// A scalar, or a vector of 2, 4, 8 or 16 lanes.
struct ValueType {
  DType dtype = DType::Undefined;
  int lanes = 1;

  ValueType scalar() const { return {dtype, 1}; }
  ValueType with_lanes(int n) const { return {dtype, n}; }
  int64_t bytes() const { return item_bytes(dtype) * lanes; }
  std::string to_string() const;  // "float32", "float32x16"
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

inline constexpr ValueType kInt{DType::Int32, 1};
inline constexpr ValueType kFloat{DType::Float32, 1};
inline constexpr ValueType kBool{DType::Bool, 1};
inline constexpr ValueType kTexel{DType::Float32, 4};  // an element of an image

enum class Op : uint8_t {
  Integer,
  Real,
  Variable,
  Neg,
  BitNot,
  Not,
  Add,
  Sub,
  Mul,
  Div,  // integers: towards zero
  Mod,  // sign of the dividend
  Min,  // floats: the other operand where one is NaN
  Max,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  Less,
  LessEqual,
  Equal,
  NotEqual,
  And,
  Or,
  Select,     // condition, where true, where false
  Cast,       // as C converts; floats to integers towards zero
  Bitcast,    // same bits, same lanes
  Broadcast,  // a scalar in every lane
  Lane,       // one lane, number in `integer`
  Vector,     // from scalars
  Load,       // `type.lanes` elements from the index on
  BlockRead,  // lane j is element index + j x subgroup size + this thread's place in its subgroup
  Exp,
  Log,
  Sqrt,
  Tanh,
  Sin,
  Cos,
  Erf,
  Floor,
  Ceil,
  Round,  // ties to even
  Abs,
  Pow,
  Fma,     // one rounding
  ToTf32,  // the nearest float32 of 11 significant bits, ties away from zero: what matrix instructions multiply
  Dot4,    // a sum and the products of the four signed bytes of two int32: bytes of the same place, as int32
};

// The operation's name in messages: "add", "load".
std::string_view name(Op op);

struct BufferInfo;
struct ExprNode;

// The object that a variable's name refers to; two variables are the same when they are the same object.
struct VariableInfo {
  std::string name;
  ValueType type;
};
using Variable = std::shared_ptr<const VariableInfo>;

Variable make_variable(std::string_view name, ValueType type);

// An immutable expression; shared parts are the same object.
class Expr {
 public:
  Expr() = default;
  Expr(int value);  // NOLINT: numbers are expressions
  Expr(int64_t value);
  Expr(float value);
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  bool defined() const { return node_ != nullptr; }
  bool same(const Expr& other) const { return node_ == other.node_; }

  std::optional<int64_t> constant() const;  // of an integer or bool; a broadcast's too
  bool is(int64_t value) const { return constant() == value; }

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  Op op = Op::Integer;
  ValueType type;
  std::vector<Expr> operands;
  int64_t integer = 0;
  double real = 0;
  Variable variable;
  std::shared_ptr<const BufferInfo> buffer;
  size_t hash = 0;
};

// Structural equality.
bool equal(const Expr& a, const Expr& b);
struct ExprHash {
  size_t operator()(const Expr& e) const { return e->hash; }
};
struct ExprEqual {
  bool operator()(const Expr& a, const Expr& b) const { return equal(a, b); }
};

Expr integer(int64_t value, ValueType type = kInt);
Expr real(double value, ValueType type = kFloat);
Expr variable(const Variable& variable);
// Any operation whose operands have the types it wants: checked, folded where all operands are numbers.
Expr make(Op op, std::vector<Expr> operands);
Expr cast(const Expr& a, DType dtype);
Expr bitcast(const Expr& a, DType dtype);
Expr broadcast(const Expr& a, int lanes);
Expr lane(const Expr& a, int number);
Expr vector(std::vector<Expr> lanes);
Expr load(const std::shared_ptr<const BufferInfo>& buffer, const Expr& index, int lanes = 1);
Expr block_read(const std::shared_ptr<const BufferInfo>& buffer, const Expr& index, int lanes = 1);
// The same operation on other operands.
Expr with_operands(const Expr& a, std::vector<Expr> operands);

// Operands of unlike lanes: the scalar is broadcast. An integer literal takes the other operand's type.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator%(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator<<(const Expr& a, const Expr& b);
Expr operator>>(const Expr& a, const Expr& b);

// The same with a literal, without making one at every call.
Expr with_literal(Op op, const Expr& a, int64_t b);
template <std::integral T>
Expr operator+(const Expr& a, T b) {
  return with_literal(Op::Add, a, b);
}
template <std::integral T>
Expr operator-(const Expr& a, T b) {
  return with_literal(Op::Sub, a, b);
}
template <std::integral T>
Expr operator*(const Expr& a, T b) {
  return with_literal(Op::Mul, a, b);
}
template <std::integral T>
Expr operator/(const Expr& a, T b) {
  return with_literal(Op::Div, a, b);
}
template <std::integral T>
Expr operator%(const Expr& a, T b) {
  return with_literal(Op::Mod, a, b);
}
template <std::integral T>
Expr operator<(const Expr& a, T b) {
  return with_literal(Op::Less, a, b);
}
template <std::integral T>
Expr operator==(const Expr& a, T b) {
  return with_literal(Op::Equal, a, b);
}
template <std::integral T>
Expr operator!=(const Expr& a, T b) {
  return with_literal(Op::NotEqual, a, b);
}

Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr ceildiv(const Expr& a, const Expr& b);  // of numbers >= 0
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr fma(const Expr& a, const Expr& b, const Expr& c);
Expr dot4(const Expr& a, const Expr& b, const Expr& sum);

// A copy in which `change` replaced what it returns something for; not looked into further there. Operands first where
// `change` returns nothing.
Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> change);
// Calls visit on every part, the whole first; where it returns false the operands are left out.
void walk(const Expr& e, FunctionRef<bool(const Expr&)> visit);

// For messages: "(gx * 64) + lx".
std::string to_string(const Expr& e);

}  // namespace neo::kernel
