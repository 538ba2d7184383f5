#include "routines/patterns/eltwise_program.h"
#include "simd/vec.h"

// Programs whose operands are integers or truth values: registers of int64, loops that the compiler vectorises.

namespace neo::NEO_ISA {
namespace {

template <class F>
NEO_INLINE void unary(int64_t* dst, const int64_t* a, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) dst[i] = f(a[i]);
}

template <class F>
NEO_INLINE void binary(int64_t* dst, const int64_t* a, const int64_t* b, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) dst[i] = f(a[i], b[i]);
}

// Sums and products wrap around, as the narrower dtypes of the operands do when they are stored.
NEO_INLINE int64_t wrapped(uint64_t x) {
  return (int64_t)x;
}

__attribute__((noinline)) void run_step(EltwiseOp op, int64_t* dst, const int64_t* a, const int64_t* b,
                                        const int64_t* c, int64_t n) {
  switch (op) {
    case EltwiseOp::Copy:
      unary(dst, a, n, [](int64_t x) NEO_LAMBDA { return x; });
      break;
    case EltwiseOp::Neg:
      unary(dst, a, n, [](int64_t x) NEO_LAMBDA { return wrapped(0 - (uint64_t)x); });
      break;
    case EltwiseOp::Abs:
      unary(dst, a, n, [](int64_t x) NEO_LAMBDA { return x < 0 ? wrapped(0 - (uint64_t)x) : x; });
      break;
    case EltwiseOp::Sign:
      unary(dst, a, n, [](int64_t x) NEO_LAMBDA { return (int64_t)(x > 0) - (int64_t)(x < 0); });
      break;
    case EltwiseOp::Not:
      unary(dst, a, n, [](int64_t x) NEO_LAMBDA { return (int64_t)(x == 0); });
      break;
    case EltwiseOp::Add:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return wrapped((uint64_t)x + (uint64_t)y); });
      break;
    case EltwiseOp::Sub:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return wrapped((uint64_t)x - (uint64_t)y); });
      break;
    case EltwiseOp::Mul:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return wrapped((uint64_t)x * (uint64_t)y); });
      break;
    case EltwiseOp::Min:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return x < y ? x : y; });
      break;
    case EltwiseOp::Max:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return x < y ? y : x; });
      break;
    case EltwiseOp::Equal:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)(x == y); });
      break;
    case EltwiseOp::Less:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)(x < y); });
      break;
    case EltwiseOp::LessEqual:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)(x <= y); });
      break;
    case EltwiseOp::Greater:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)(x > y); });
      break;
    case EltwiseOp::GreaterEqual:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)(x >= y); });
      break;
    case EltwiseOp::And:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)((x != 0) & (y != 0)); });
      break;
    case EltwiseOp::Or:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)((x != 0) | (y != 0)); });
      break;
    case EltwiseOp::Xor:
      binary(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return (int64_t)((x != 0) ^ (y != 0)); });
      break;
    case EltwiseOp::Where:
      for (int64_t i = 0; i < n; ++i) dst[i] = a[i] != 0 ? b[i] : c[i];
      break;
    default:
      __builtin_unreachable();
  }
}

template <class T>
NEO_INLINE void widen_as(const void* from, int64_t first, int64_t stride, int64_t n, int64_t* to) {
  const T* p = (const T*)from + first;
  if (stride == 0) {
    const int64_t x = (int64_t)p[0];
    for (int64_t i = 0; i < n; ++i) to[i] = x;
  } else if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = (int64_t)p[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = (int64_t)p[i * stride];
  }
}

__attribute__((noinline)) void widen(EltwiseType type, const void* from, int64_t first, int64_t stride, int64_t n,
                                     int64_t* to) {
  switch (type) {
    case EltwiseType::U8:
    case EltwiseType::Bool:
      return widen_as<uint8_t>(from, first, stride, n, to);
    case EltwiseType::I8:
      return widen_as<int8_t>(from, first, stride, n, to);
    case EltwiseType::I32:
      return widen_as<int32_t>(from, first, stride, n, to);
    case EltwiseType::I64:
      return widen_as<int64_t>(from, first, stride, n, to);
    case EltwiseType::F32:
      __builtin_unreachable();
  }
}

__attribute__((noinline)) void narrow(EltwiseType type, const int64_t* from, int64_t n, void* to, int64_t first) {
  switch (type) {
    case EltwiseType::U8:
    case EltwiseType::I8:
      for (int64_t i = 0; i < n; ++i) ((uint8_t*)to)[first + i] = (uint8_t)from[i];
      break;
    case EltwiseType::Bool:
      for (int64_t i = 0; i < n; ++i) ((uint8_t*)to)[first + i] = from[i] != 0;
      break;
    case EltwiseType::I32:
      for (int64_t i = 0; i < n; ++i) ((int32_t*)to)[first + i] = (int32_t)from[i];
      break;
    case EltwiseType::I64:
      for (int64_t i = 0; i < n; ++i) ((int64_t*)to)[first + i] = from[i];
      break;
    case EltwiseType::F32:
      __builtin_unreachable();
  }
}

struct Workspace {
  alignas(64) int64_t registers[kEltwiseMaxRegisters][kEltwiseTile];
  alignas(64) int64_t staged[kEltwiseMaxOperands][kEltwiseTile];
};

}  // namespace

void integer_tasks(const EltwiseArgs& args, int64_t begin, int64_t end) {
  const EltwiseProgram& program = *args.program;
  const EltwiseSpace& space = *args.space;
  const int out = program.inputs;
  Workspace w;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task % space.tiles * kEltwiseTile;
    const int64_t left = space.inner - first;
    const int64_t n = left < kEltwiseTile ? left : kEltwiseTile;
    int64_t base[kEltwiseMaxOperands] = {};
    int64_t rest = task / space.tiles;
    for (int a = space.axes - 1; a >= 0; --a) {
      const int64_t index = rest % space.size[a];
      rest /= space.size[a];
      for (int i = 0; i <= out; ++i) base[i] += index * space.stride[i][a];
    }
    for (int i = 0; i < out; ++i) {
      const int64_t stride = space.mode[i] == EltwiseMode::Dense ? 1 : space.inner_stride[i];
      widen(program.type[i], args.operands[i], base[i] + first * stride, stride, n, w.staged[i]);
    }
    const auto operand = [&](int8_t x)
                             NEO_LAMBDA -> const int64_t* { return x >= 0 ? w.registers[x] : w.staged[-1 - x]; };
    for (int i = 0; i < program.steps; ++i) {
      const EltwiseStep& s = program.step[i];
      run_step(s.op, s.dst >= 0 ? w.registers[s.dst] : w.registers[0], operand(s.a), operand(s.b), operand(s.c), n);
    }
    narrow(program.type[out], w.registers[0], n, (void*)args.operands[out], base[out] + first);
  }
}

}  // namespace neo::NEO_ISA
