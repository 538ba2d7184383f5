#pragma once

// A program over registers that hold one tile of elements each, in lanes of the operands' own dtypes. Safe in kernel
// files.

#include <stdint.h>

#include "routines/patterns/eltwise_program.h"

namespace neo {

// How an element is held. Truth values are U8, of which any number but 0 is true.
enum class Lane : uint8_t { I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64 };

constexpr int lane_bytes(Lane lane) {
  constexpr int8_t kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kBytes[static_cast<int>(lane)];
}

// Steps over lanes of TypedStep::lane. Those of fewer types than any say which they take; sums, differences, products
// and bits know no sign, and their callers may give either.
enum class TypedOp : uint8_t {
  // unary, a -> dst
  Convert,     // to lanes of TypedStep::to, by the rules of Cast; the pairs that has_conversion() names
  RoundToOdd,  // F64 -> F32 whose last bit tells of what was lost, so that it can be rounded again to F16 or BF16
  IsTrue,      // 1 where an element is not zero; of floats by their bits, so that a denormal number is not zero
  IsFalse,     // the other way round
  Neg,         // any type
  Abs,
  Sign,  // integers and F64
  Sqrt,  // F64, and so on down to Log1p
  Floor,
  Ceil,
  Round,
  Exp,
  Expm1,
  Log,
  Tanh,
  Sigmoid,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Log1p,
  // binary, a and b -> dst
  Add,  // integers and F64, and so on down to Max
  Sub,
  Mul,
  Div,       // of integers: towards zero, 0 where b is 0
  Mod,       // the remainder of Div; of F32 and F64: fmod
  FloorMod,  // with the sign of b
  Min,       // F32 too; NaN where either is
  Max,
  Pow,  // I64 and F64
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,   // integers; 0 where b is not less than the number of bits
  ShiftRight,  // the same; of signed ones the sign
  And,         // truth values -> truth values
  Or,
  Xor,
  Equal,  // integers, F32 and F64 -> truth values
  NotEqual,
  Less,
  LessEqual,
  // ternary
  Select,  // a (truth values) ? b : c
  Clamp,   // the types of Max: Min(Max(a, b), c)
};

// Steps of one operand, which read it as a dense one.
constexpr bool is_unary(TypedOp op) {
  return op < TypedOp::Add;
}

constexpr int kTypedMaxSteps = 12;
constexpr int kTypedMaxOperands = kEltwiseMaxOperands;  // inputs and one output
constexpr int kTypedMaxConstants = 8;
constexpr int kTypedMaxRegisters = 6;
// Kernels compute whole groups of so many elements.
constexpr int64_t kTypedGroup = 64;
// Elements of a tile where no buffer bounds them.
constexpr int64_t kTypedLargeTile = 16384;
// Bytes of one buffer at most, and of all of them, so that the first cache keeps them and any stack has room.
constexpr int64_t kTypedBufferBytes = 8192, kTypedCachedBytes = 20480;

struct TypedStep {
  TypedOp op = TypedOp::Convert;
  Lane lane = Lane::U8;
  Lane to = Lane::U8;
  int8_t dst = 0;              // register; -1: the output
  int8_t a = 0, b = 0, c = 0;  // >= 0: register; < 0: operand -1 - x: inputs, then constants
};

struct TypedProgram {
  int32_t steps = 0;
  int32_t inputs = 0;
  int32_t constants = 0;
  int32_t registers = 0;
  Lane lane[kTypedMaxOperands];  // inputs, then the output
  Lane constant_lane[kTypedMaxConstants];
  uint64_t constant[kTypedMaxConstants];  // bits of one element, from the lowest
  TypedStep step[kTypedMaxSteps];
};

struct TypedArgs {
  const TypedProgram* program;
  const EltwiseSpace* space;
  const void* const* operands;  // inputs, then the output
  int64_t tile;                 // elements
  int64_t buffer_bytes;         // of each register, input and constant, in this order
};

// Whether TypedOp::Convert has a kernel; other conversions take several steps.
constexpr bool has_conversion(Lane from, Lane to) {
  const auto is_half = [](Lane x) { return x == Lane::F16 || x == Lane::BF16; };
  if (is_half(from) || is_half(to)) {
    return lane_bytes(from) == lane_bytes(to) ? from == to : from == Lane::F32 || to == Lane::F32;
  }
  if (from <= Lane::U64) return true;
  if (to == Lane::F32 || to == Lane::F64) return true;
  return to == Lane::I32 || to == Lane::I64 || to == Lane::U64;
}

}  // namespace neo
