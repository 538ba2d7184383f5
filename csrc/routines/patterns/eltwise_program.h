#pragma once

// An elementwise program: straight-line code over registers that hold one tile of the iteration space each. Safe in
// kernel files.

#include <stdint.h>

namespace neo {

enum class EltwiseOp : uint8_t {
  // unary, a -> dst
  Copy,
  Neg,
  Abs,
  Sqrt,
  Reciprocal,
  Exp,
  Log,
  Tanh,
  Sigmoid,
  Erf,
  Relu,
  LeakyRelu,
  Elu,
  Selu,
  Celu,
  Clip,
  HardSigmoid,
  HardSwish,
  Softplus,
  Softsign,
  Gelu,
  GeluTanh,
  Mish,
  Swish,
  Floor,
  Ceil,
  Round,
  Sign,
  Sin,
  Cos,
  Square,
  Not,
  IsNan,
  ThresholdedRelu,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh,
  Shrink,  // x + p below -q, x - p above q, else 0
  Scale,   // p x
  // binary, a and b -> dst
  Add,
  Sub,
  Mul,
  Div,
  Min,
  Max,
  Pow,
  PRelu,
  Equal,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  Xor,
  // ternary
  Where,     // a (condition) ? b : c
  MulAdd,    // a * b + c, rounded twice
  Quantize,  // round(a / b) + c, saturated to [p, q]
};

// How an operand lies along the innermost axis of the iteration space.
enum class EltwiseMode : uint8_t {
  Dense,    // one element after the other
  Scalar,   // the same element
  Lanes,    // the same kLanes elements again and again: a channel block
  Strided,  // `stride` elements apart
  Nested,   // runs of EltwiseSpace::run elements, which lie along EltwiseSpace::nest axes
};

// Storage of an operand in memory; registers hold float32, truth values as 0 and 1. Outputs are float32, a half, codes
// of Quantize or truth values.
enum class EltwiseType : uint8_t { F32, U8, I8, Bool, I32, I64, F16, BF16, F64, I16, U16, U32, U64 };

constexpr int kEltwiseMaxOperands = 12;  // inputs and one output
constexpr int kEltwiseMaxSteps = 48;
constexpr int kEltwiseMaxRegisters = 12;
constexpr int kEltwiseMaxAxes = 6;
constexpr int kEltwiseMaxNest = 3;
constexpr int kEltwiseTile = 512;  // elements of a register

struct EltwiseStep {
  EltwiseOp op = EltwiseOp::Copy;
  int8_t dst = 0;              // register; -1: the output
  int8_t a = 0, b = 0, c = 0;  // >= 0: register; < 0: input -1 - x
  float p = 0, q = 0;          // immediates
};

struct EltwiseProgram {
  int32_t steps = 0;
  int32_t inputs = 0;
  int32_t registers = 0;
  EltwiseType type[kEltwiseMaxOperands];  // inputs, then the output
  EltwiseStep step[kEltwiseMaxSteps];
};

// The iteration space with sizes known: axes merged, the innermost apart.
struct EltwiseSpace {
  int32_t axes = 0;  // outer axes
  int64_t size[kEltwiseMaxAxes];
  int64_t inner = 1;                                     // elements of the innermost axis
  int64_t stride[kEltwiseMaxOperands][kEltwiseMaxAxes];  // in elements
  EltwiseMode mode[kEltwiseMaxOperands];
  int64_t inner_stride[kEltwiseMaxOperands];
  int64_t run = 1;   // Nested: elements per run, inner_stride apart
  int32_t nest = 0;  // axes that the runs lie along, the innermost first
  int64_t nest_size[kEltwiseMaxNest];
  int64_t nest_stride[kEltwiseMaxOperands][kEltwiseMaxNest];
  int64_t tiles = 1;  // per row of the innermost axis
  int64_t rows = 1;   // product of the outer sizes
  // Channel blocks: rows whose index along `block_axis` is the last keep only `valid_lanes` lanes, the others become
  // zero.
  int32_t block_axis = -1;
  int32_t valid_lanes = 0;
};

struct EltwiseArgs {
  const EltwiseProgram* program;
  const EltwiseSpace* space;
  const void* const* operands;  // inputs, then the output
};

}  // namespace neo
