#include "routines/cpu/eltwise/elements.h"
#include "routines/patterns/eltwise_program.h"
#include "simd/math.h"
#include "simd/trigonometry.h"
#include "simd/vec.h"

// The operators to compile, a bit each in the order of EltwiseOp.
#ifndef NEO_ELTWISE_OPS
#define NEO_ELTWISE_OPS (~(uint64_t)0)
#endif

namespace neo::NEO_ISA {
namespace {

constexpr bool is_kept(EltwiseOp op) {
  return ((NEO_ELTWISE_OPS >> (int)op) & 1) != 0;
}
static_assert((int)EltwiseOp::Quantize < 64);

// An operand of one tile: vector i is at p + i * step (step 0: one vector for all).
struct Stream {
  const float* p;
  int64_t step;
};

// The vectors of a step: a tile's, or rows of values, each `row` floats behind the one before. `a` of a tile may be one
// vector for all. Rows of functions of one operand are in place; those of others may end in a part of a vector.
struct Vectors {
  int64_t count;  // of a row
  int64_t rows = 1;
  int64_t row = 0;
  int64_t tail = 0;         // elements behind the vectors
  int64_t operand[3] = {};  // floats from a row of `a`, `b` and `c` to the next
};

template <class F>
NEO_INLINE void unary(float* dst, Stream a, Vectors n, F f) {
  for (int64_t r = 0; r < n.rows; ++r, dst += n.row, a.p += n.row) {
    for (int64_t i = 0; i < n.count; ++i) store(dst + i * kLanes, f(load(a.p + i * a.step)));
  }
}

// The same for a function of many steps.
template <class F>
NEO_INLINE void unary_packed(float* dst, Stream a, Vectors n, F f) {
  const int64_t all = n.rows * n.count;
  int64_t i = 0, column = 0, to = 0, from = 0;
  const auto next = [&]() NEO_LAMBDA {
    to += kLanes;
    from += a.step;
    if (++column < n.count) return;
    column = 0;
    to += n.row - n.count * kLanes;
    from += n.row - n.count * kLanes;
  };
  if constexpr (kPackVectors > 1) {
    for (; i + kPackVectors <= all; i += kPackVectors) {
      Pack<kPackVectors> x;
      int64_t at[kPackVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kPackVectors; ++j, next()) {
        at[j] = to;
        x.v[j] = load(a.p + from);
      }
      x = f(x);
#pragma GCC unroll 8
      for (int j = 0; j < kPackVectors; ++j) store(dst + at[j], x.v[j]);
    }
  }
  for (; i < all; ++i, next()) store(dst + to, f(load(a.p + from)));
}

template <class F>
NEO_INLINE void binary(float* dst, Stream a, Stream b, const Vectors& n, F f) {
  const int64_t rows = n.rows, end = n.count * kLanes, tail = n.tail;
  for (int64_t r = 0; r < rows; ++r) {
    float* to = dst + r * n.row;
    const float *x = a.p + r * n.operand[0], *y = b.p + r * n.operand[1];
    for (int64_t i = 0; i < end; i += kLanes, x += a.step, y += b.step) store(to + i, f(load(x), load(y)));
    if (tail > 0) store_n(to + end, f(load_n(x, tail), load_n(y, tail)), tail);
  }
}

template <class F>
NEO_INLINE void ternary(float* dst, Stream a, Stream b, Stream c, const Vectors& n, F f) {
  const int64_t rows = n.rows, end = n.count * kLanes, tail = n.tail;
  for (int64_t r = 0; r < rows; ++r) {
    float* to = dst + r * n.row;
    const float *x = a.p + r * n.operand[0], *y = b.p + r * n.operand[1], *z = c.p + r * n.operand[2];
    for (int64_t i = 0; i < end; i += kLanes, x += a.step, y += b.step, z += c.step)
      store(to + i, f(load(x), load(y), load(z)));
    if (tail > 0) store_n(to + end, f(load_n(x, tail), load_n(y, tail), load_n(z, tail)), tail);
  }
}

NEO_INLINE F32 truth(Mask m) {
  return select(m, broadcast(1.0f), zero());
}
NEO_INLINE Mask is_true(F32 x) {
  return ne(x, zero());
}

NEO_INLINE F32 elu(F32 x, F32 alpha) {
  return select(lt(x, zero()), alpha * expm1(x), x);
}

// No step of an export's model is of an operator that it leaves out.
#define NEO_CASE(name)  \
  case EltwiseOp::name: \
    if constexpr (!is_kept(EltwiseOp::name)) __builtin_trap();

// Kept out of line: one switch per step and tile, the loops inside each case.
__attribute__((noinline)) void run_step(const EltwiseStep& s, float* dst, Stream a, Stream b, Stream c,
                                        const Vectors& n) {
  const F32 p = broadcast(s.p);
  const F32 q = broadcast(s.q);
  const F32 one = broadcast(1.0f);
  switch (s.op) {
    NEO_CASE(Copy)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return x; });
    break;
    NEO_CASE(Neg)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return neg(x); });
    break;
    NEO_CASE(Abs)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return abs(x); });
    break;
    NEO_CASE(Sqrt)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return sqrt(x); });
    break;
    NEO_CASE(Reciprocal)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return one / x; });
    break;
    NEO_CASE(Exp)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return exp(x); });
    break;
    NEO_CASE(Log)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return log(x); });
    break;
    NEO_CASE(Tanh)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return tanh(x); });
    break;
    NEO_CASE(Sigmoid)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return sigmoid(x); });
    break;
    NEO_CASE(Erf)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return erf(x); });
    break;
    NEO_CASE(Relu)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return max_nan(x, zero()); });
    break;
    NEO_CASE(LeakyRelu)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return select(lt(x, zero()), p * x, x); });
    break;
    NEO_CASE(Elu)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return elu(x, p); });
    break;
    NEO_CASE(Selu)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return q * select(gt(x, zero()), x, p * expm1(x)); });
    break;
    NEO_CASE(Celu)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return select(lt(x, zero()), p * expm1(x / p), x); });
    break;
    NEO_CASE(Clip)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return clamp_nan(x, p, q); });
    break;
    NEO_CASE(HardSigmoid)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return clamp_nan(p * x + q, zero(), one); });
    break;
    NEO_CASE(HardSwish)
    unary(dst, a, n,
          [=](F32 x) NEO_LAMBDA { return x * clamp_nan(x * broadcast(1.0f / 6) + broadcast(0.5f), zero(), one); });
    break;
    NEO_CASE(Softplus)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return softplus(x); });
    break;
    NEO_CASE(Softsign)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return x / (one + abs(x)); });
    break;
    NEO_CASE(Gelu)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return gelu(x); });
    break;
    NEO_CASE(GeluTanh)
    unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return gelu_tanh(x); });
    break;
    NEO_CASE(Mish)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return x * tanh(softplus(x)); });
    break;
    NEO_CASE(Swish)
    if (s.p == 1.0f)
      unary_packed(dst, a, n, [](auto x) NEO_LAMBDA { return silu(x); });
    else
      unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return x * sigmoid(p * x); });
    break;
    NEO_CASE(Floor)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return floor(x); });
    break;
    NEO_CASE(Ceil)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return ceil(x); });
    break;
    NEO_CASE(Round)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return round_even(x); });
    break;
    NEO_CASE(Sign)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return select(gt(x, zero()), one, select(lt(x, zero()), neg(one), x)); });
    break;
    NEO_CASE(Sin)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return sin(x); });
    break;
    NEO_CASE(Cos)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return cos(x); });
    break;
    NEO_CASE(Square)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return x * x; });
    break;
    NEO_CASE(Not)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return truth(eq(x, zero())); });
    break;
    NEO_CASE(IsNan)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return truth(is_nan(x)); });
    break;
    NEO_CASE(ThresholdedRelu)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return select(gt(x, p), x, zero()); });
    break;
    NEO_CASE(Tan)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return tan(x); });
    break;
    NEO_CASE(Asin)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return asin(x); });
    break;
    NEO_CASE(Acos)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return acos(x); });
    break;
    NEO_CASE(Atan)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return atan(x); });
    break;
    NEO_CASE(Sinh)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return sinh(x); });
    break;
    NEO_CASE(Cosh)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return cosh(x); });
    break;
    NEO_CASE(Asinh)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return asinh(x); });
    break;
    NEO_CASE(Acosh)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return acosh(x); });
    break;
    NEO_CASE(Atanh)
    unary(dst, a, n, [](F32 x) NEO_LAMBDA { return atanh(x); });
    break;
    NEO_CASE(Shrink)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return select(lt(x, neg(q)), x + p, select(gt(x, q), x - p, zero())); });
    break;
    NEO_CASE(Scale)
    unary(dst, a, n, [=](F32 x) NEO_LAMBDA { return p * x; });
    break;
    NEO_CASE(Add)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return x + y; });
    break;
    NEO_CASE(Sub)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return x - y; });
    break;
    NEO_CASE(Mul)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return x * y; });
    break;
    NEO_CASE(Div)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return x / y; });
    break;
    NEO_CASE(Min)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return min_nan(x, y); });
    break;
    NEO_CASE(Max)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return max_nan(x, y); });
    break;
    NEO_CASE(Pow)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return pow(x, y); });
    break;
    NEO_CASE(PRelu)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return select(lt(x, zero()), x * y, x); });
    break;
    NEO_CASE(Equal)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(eq(x, y)); });
    break;
    NEO_CASE(Less)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(lt(x, y)); });
    break;
    NEO_CASE(LessEqual)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(le(x, y)); });
    break;
    NEO_CASE(Greater)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(gt(x, y)); });
    break;
    NEO_CASE(GreaterEqual)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(ge(x, y)); });
    break;
    NEO_CASE(And)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(is_true(x) & is_true(y)); });
    break;
    NEO_CASE(Or)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(is_true(x) | is_true(y)); });
    break;
    NEO_CASE(Xor)
    binary(dst, a, b, n, [](F32 x, F32 y) NEO_LAMBDA { return truth(ne(x, y)); });
    break;
    NEO_CASE(Where)
    ternary(dst, a, b, c, n, [](F32 m, F32 x, F32 y) NEO_LAMBDA { return select(is_true(m), x, y); });
    break;
    NEO_CASE(MulAdd)
    ternary(dst, a, b, c, n, [](F32 x, F32 y, F32 z) NEO_LAMBDA { return x * y + z; });
    break;
    NEO_CASE(Quantize)
    ternary(dst, a, b, c, n, [=](F32 x, F32 scale, F32 zero_point) NEO_LAMBDA {
      const F32 y = clamp_nan(round_even(x / scale) + zero_point, p, q);
      return select(is_nan(y), zero_point, y);
    });
    break;
  }
}
#undef NEO_CASE

// Runs of floats, in whole vectors: what one of them writes beyond its end, the next one writes again. The buffer has
// room for a vector more.
NEO_INLINE void gather_runs(Elements e, int64_t count, int64_t padded, float* to) {
  const float* p = (const float*)e.from + e.first;
  int64_t done = 0, i = e.skip;
  for (; done < count; p += e.advance(), i = 0) {
    const int64_t n = e.run - i < count - done ? e.run - i : count - done;
    if (e.stride == 0) {
      const F32 x = broadcast(*p);
      for (int64_t k = 0; k < n; k += kLanes) store(to + done + k, x);
    } else {
      int64_t k = 0;
      for (; k + kLanes <= n; k += kLanes) store(to + done + k, load(p + i + k));
      if (k < n) store(to + done + k, load_n(p + i + k, n - k));
    }
    done += n;
  }
  if (count < padded) store(to + count, broadcast(to[count - 1]));
}

template <class T, class D>
NEO_INLINE void gather_elements(Elements e, int64_t count, D* to) {
  const T* p = (const T*)e.from + e.first;
  int64_t done = 0, i = e.skip;
  for (; done < count; p += e.advance(), i = 0) {
    const int64_t n = e.run - i < count - done ? e.run - i : count - done;
    if constexpr (sizeof(T) <= 2 && sizeof(T) == sizeof(D)) {
      copy_run(to + done, p + i * e.stride, e.stride, n);
    } else {
      for (int64_t k = 0; k < n; ++k) to[done + k] = (D)p[(i + k) * e.stride];
    }
    done += n;
  }
}

template <class T>
NEO_INLINE void gather_floats(const Elements& e, int64_t count, int64_t padded, float* to) {
  gather_elements<T>(e, count, to);
  if (count < padded) store(to + count, broadcast(to[count - 1]));
}

// f(to, from) makes a vector of floats of elements that follow each other.
template <class T, class F>
NEO_INLINE void widen_vectors(const void* from, int64_t first, int64_t count, int64_t padded, float* to, F f) {
  const T* p = (const T*)from + first;
  const int64_t whole = count & -(int64_t)kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) store(to + i, f(p + i));
  if (whole == count) return;
  T rest[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rest[i] = p[whole + i < count ? whole + i : count - 1];
  store(to + whole, f(rest));
  for (int64_t i = whole + kLanes; i < padded; ++i) to[i] = to[whole];
}

// f as above, of elements that lie anywhere.
template <class T, class F>
NEO_INLINE void widen_as(const Elements& e, int64_t count, int64_t padded, float* to, F f) {
  if (e.nest == 0 && e.stride == 1) return widen_vectors<T>(e.from, e.first + e.skip, count, padded, to, f);
  T elements[kEltwiseTile];
  gather_elements<T>(e, count, elements);
  widen_vectors<T>(elements, 0, count, padded, to, f);
}

__attribute__((noinline)) void widen(EltwiseType type, const Elements& e, int64_t count, int64_t padded, float* to) {
  switch (type) {
    case EltwiseType::F32:
      if (e.stride == 0 || e.stride == 1)
        gather_runs(e, count, padded, to);
      else
        gather_floats<float>(e, count, padded, to);
      break;
    case EltwiseType::U8:
      widen_as<uint8_t>(e, count, padded, to, [](const uint8_t* p) NEO_LAMBDA { return to_f32(load_u8(p)); });
      break;
    case EltwiseType::Bool:
      widen_as<uint8_t>(e, count, padded, to,
                        [](const uint8_t* p) NEO_LAMBDA { return truth(is_true(to_f32(load_u8(p)))); });
      break;
    case EltwiseType::I8:
      widen_as<int8_t>(e, count, padded, to, [](const int8_t* p) NEO_LAMBDA { return to_f32(load_i8(p)); });
      break;
    case EltwiseType::I32:
      widen_as<int32_t>(e, count, padded, to, [](const int32_t* p) NEO_LAMBDA { return to_f32(load_i32(p)); });
      break;
    case EltwiseType::F16:
      widen_as<uint16_t>(e, count, padded, to, [](const uint16_t* p) NEO_LAMBDA { return load_f16(p); });
      break;
    case EltwiseType::BF16:
      widen_as<uint16_t>(e, count, padded, to, [](const uint16_t* p) NEO_LAMBDA { return load_bf16(p); });
      break;
    case EltwiseType::I64:
      return gather_floats<int64_t>(e, count, padded, to);
    case EltwiseType::F64:
      return gather_floats<double>(e, count, padded, to);
    case EltwiseType::I16:
      return gather_floats<int16_t>(e, count, padded, to);
    case EltwiseType::U16:
      return gather_floats<uint16_t>(e, count, padded, to);
    case EltwiseType::U32:
      return gather_floats<uint32_t>(e, count, padded, to);
    case EltwiseType::U64:
      return gather_floats<uint64_t>(e, count, padded, to);
  }
}

// Values as an output holds them. Integers are those of Quantize, which its codes hold, and truth values. `from` has
// whole vectors.
__attribute__((noinline)) void narrow(EltwiseType type, const float* from, int64_t count, void* to, int64_t first) {
  const int64_t whole = count & -(int64_t)kLanes;
  switch (type) {
    case EltwiseType::U8:
    case EltwiseType::Bool: {
      uint8_t* p = (uint8_t*)to + first;
      for (int64_t i = 0; i < whole; i += kLanes) store_u8(p + i, trunc_to_i32(load(from + i)));
      if (whole < count) store_u8_n(p + whole, trunc_to_i32(load(from + whole)), count - whole);
      break;
    }
    case EltwiseType::I8: {
      int8_t* p = (int8_t*)to + first;
      for (int64_t i = 0; i < whole; i += kLanes) store_i8(p + i, trunc_to_i32(load(from + i)));
      if (whole < count) store_i8_n(p + whole, trunc_to_i32(load(from + whole)), count - whole);
      break;
    }
    case EltwiseType::F16: {
      uint16_t* p = (uint16_t*)to + first;
      for (int64_t i = 0; i < whole; i += kLanes) store_f16(p + i, load(from + i));
      if (whole < count) store_f16_n(p + whole, load(from + whole), count - whole);
      break;
    }
    case EltwiseType::BF16: {
      uint16_t* p = (uint16_t*)to + first;
      for (int64_t i = 0; i < whole; i += kLanes) store_bf16(p + i, load(from + i));
      if (whole < count) store_bf16_n(p + whole, load(from + whole), count - whole);
      break;
    }
    default:
      for (int64_t i = 0; i < count; ++i) ((float*)to)[first + i] = from[i];
      break;
  }
}

// Elements from which on a run is worth an end by a masked store. eltwise.cpp counts on it.
constexpr int64_t kMinRun = 2 * kLanes;

struct Workspace {
  alignas(64) float registers[kEltwiseMaxRegisters][kEltwiseTile];
  alignas(64) float staged[kEltwiseMaxOperands][kEltwiseTile + kLanes];
};

// A vector of one element of an operand.
NEO_INLINE void stage_scalar(const EltwiseArgs& args, int operand, int64_t at, float* to) {
  const EltwiseType type = args.program->type[operand];
  if (type == EltwiseType::F32) {
    store(to, broadcast(((const float*)args.operands[operand])[at]));
  } else {
    widen(type, dense(args.operands[operand], at, 1, 1), 1, kLanes, to);
  }
}

void run_tile(const EltwiseArgs& args, const int64_t* base, int64_t first, int64_t count, bool masked, Workspace& w) {
  const EltwiseProgram& program = *args.program;
  const EltwiseSpace& space = *args.space;
  const int64_t vectors = (count + kLanes - 1) / kLanes;
  const int64_t padded = vectors * kLanes;
  Stream inputs[kEltwiseMaxOperands];
  for (int i = 0; i < program.inputs; ++i) {
    const EltwiseType type = program.type[i];
    switch (space.mode[i]) {
      case EltwiseMode::Dense:
        if (type == EltwiseType::F32 && padded == count) {
          inputs[i] = {(const float*)args.operands[i] + base[i] + first, kLanes};
        } else {
          widen(type, dense(args.operands[i], base[i] + first, 1, count), count, padded, w.staged[i]);
          inputs[i] = {w.staged[i], kLanes};
        }
        break;
      case EltwiseMode::Scalar:
        stage_scalar(args, i, base[i], w.staged[i]);
        inputs[i] = {w.staged[i], 0};
        break;
      case EltwiseMode::Lanes:
        widen(type, dense(args.operands[i], base[i], 1, kLanes), kLanes, kLanes, w.staged[i]);
        inputs[i] = {w.staged[i], 0};
        break;
      case EltwiseMode::Strided:
        widen(type, dense(args.operands[i], base[i] + first * space.inner_stride[i], space.inner_stride[i], count),
              count, padded, w.staged[i]);
        inputs[i] = {w.staged[i], kLanes};
        break;
      case EltwiseMode::Nested:
        widen(type, nested(args.operands[i], base[i], space, i, first), count, padded, w.staged[i]);
        inputs[i] = {w.staged[i], kLanes};
        break;
    }
  }
  const int out = program.inputs;
  const bool direct = program.type[out] == EltwiseType::F32 && padded == count && space.mode[out] == EltwiseMode::Dense;
  float* result = direct ? (float*)args.operands[out] + base[out] + first : w.staged[out];
  const auto stream = [&](int8_t x) NEO_LAMBDA { return x >= 0 ? Stream{w.registers[x], kLanes} : inputs[-1 - x]; };
  for (int i = 0; i < program.steps; ++i) {
    const EltwiseStep& s = program.step[i];
    run_step(s, s.dst >= 0 ? w.registers[s.dst] : result, stream(s.a), stream(s.b), stream(s.c), {vectors});
  }
  if (masked) {
    for (int64_t i = 0; i < count; i += kLanes) {
      for (int64_t lane = space.valid_lanes; lane < kLanes; ++lane) result[i + lane] = 0.0f;
    }
  }
  if (!direct) narrow(program.type[out], result, count, (void*)args.operands[out], base[out] + first);
}

// Whether no step of a tile and no operand needs a buffer: tiles that follow each other are then one. `is_nest`: but
// for operands that are one element for each run, where runs are worth a call for some of them.
bool is_direct(const EltwiseProgram& program, const EltwiseSpace& space, bool is_nest) {
  const int out = program.inputs;
  if (program.steps != 1 || program.type[out] != EltwiseType::F32 || space.mode[out] != EltwiseMode::Dense ||
      is_nest != (space.nest > 0))
    return false;
  // Runs leave the lanes of a last block that are padding as the step makes them.
  if (is_nest && (program.step[0].op < EltwiseOp::Add || space.run < kMinRun || space.valid_lanes > 0)) return false;
  for (int i = 0; i < program.inputs; ++i) {
    const EltwiseMode mode = space.mode[i];
    if (mode == EltwiseMode::Scalar || mode == EltwiseMode::Lanes) continue;
    const bool is_taken =
        mode == EltwiseMode::Dense || (is_nest && mode == EltwiseMode::Nested && space.inner_stride[i] == 0);
    if (!is_taken || program.type[i] != EltwiseType::F32) return false;
  }
  return true;
}

// The only step of a program over runs, or over a row that ends in a part of a vector, of which elements
// [first, first + count) are wanted.
void run_runs(const EltwiseArgs& args, const int64_t* base, int64_t first, int64_t count, Workspace& w) {
  constexpr int64_t kRuns = kEltwiseTile / kLanes;
  const EltwiseProgram& program = *args.program;
  const EltwiseSpace& space = *args.space;
  const EltwiseStep& step = program.step[0];
  Elements elements[kEltwiseMaxOperands];
  for (int i = 0; i < program.inputs; ++i) {
    if (space.mode[i] == EltwiseMode::Scalar) stage_scalar(args, i, base[i], w.staged[i]);
    if (space.mode[i] == EltwiseMode::Nested) elements[i] = nested(args.operands[i], base[i], space, i, first);
  }
  float* dst = (float*)args.operands[program.inputs] + base[program.inputs];
  int64_t skip = first % space.run;
  for (const int64_t end = first + count; first < end;) {
    // A part of a run, or whole ones.
    const int64_t left = space.run - skip < end - first ? space.run - skip : end - first;
    const int64_t whole = left < space.run ? 1 : (end - first) / space.run;
    const int64_t runs = whole < kRuns ? whole : kRuns;
    for (int i = 0; i < program.inputs; ++i) {
      if (space.mode[i] != EltwiseMode::Nested) continue;
      Elements& e = elements[i];
      for (int64_t r = 0; r < runs; ++r) {
        store(w.staged[i] + r * kLanes, broadcast(((const float*)e.from)[e.first]));
        if (skip + left == space.run) e.first += e.advance();
      }
    }
    Vectors vectors = {left / kLanes, runs, space.run, left % kLanes};
    Stream streams[3];
    const int8_t read[3] = {step.a, step.b, step.op >= EltwiseOp::Where ? step.c : step.b};
    for (int o = 0; o < 3; ++o) {
      const int i = -1 - read[o];
      const bool is_dense = space.mode[i] == EltwiseMode::Dense;
      streams[o] = is_dense ? Stream{(const float*)args.operands[i] + base[i] + first, kLanes} : Stream{w.staged[i], 0};
      vectors.operand[o] = is_dense ? space.run : (space.mode[i] == EltwiseMode::Nested ? kLanes : 0);
    }
    run_step(step, dst + first, streams[0], streams[1], streams[2], vectors);
    first += runs * left;
    skip = 0;
  }
}

}  // namespace

void apply_step(const EltwiseStep& step, float* values, int64_t rows, int64_t row, int64_t columns) {
  if (row == columns) {
    columns *= rows;
    rows = 1;
  }
  const int64_t vectors = columns / kLanes, done = vectors * kLanes, rest = columns - done;
  const Stream none = {nullptr, 0};
  if (vectors > 0) run_step(step, values, {values, kLanes}, none, none, {vectors, rows, row});
  if (rest == 0) return;
  constexpr int64_t kRows = 6;
  float ends[kRows * kLanes];
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = rows - first < kRows ? rows - first : kRows;
    float* end = values + first * row + done;
    for (int64_t r = 0; r < count; ++r) store(ends + r * kLanes, load_n(end + r * row, rest));
    run_step(step, ends, {ends, kLanes}, none, none, {count});
    for (int64_t r = 0; r < count; ++r) store_n(end + r * row, load(ends + r * kLanes), rest);
  }
}

void eltwise_tasks(const EltwiseArgs& args, int64_t begin, int64_t end) {
  const EltwiseSpace& space = *args.space;
  const int operands = args.program->inputs + 1;
  const bool direct = is_direct(*args.program, space, false);
  const bool ends_apart = direct && args.program->step[0].op >= EltwiseOp::Add && space.inner % kLanes != 0;
  const bool has_runs = ends_apart || is_direct(*args.program, space, true);
  Workspace w;
  for (int64_t task = begin, tiles = 1; task < end; task += tiles) {
    const int64_t row = task / space.tiles;
    const int64_t tile = task - row * space.tiles;
    const int64_t first = tile * kEltwiseTile;
    if (direct || has_runs) tiles = space.tiles - tile < end - task ? space.tiles - tile : end - task;
    int64_t base[kEltwiseMaxOperands] = {};
    int64_t rest = row;
    bool last_block = false;
    for (int a = space.axes - 1; a >= 0; --a) {
      const int64_t next = rest / space.size[a];
      const int64_t index = rest - next * space.size[a];
      rest = next;
      for (int i = 0; i < operands; ++i) base[i] += index * space.stride[i][a];
      if (a == space.block_axis) last_block = index == space.size[a] - 1;
    }
    // Whole vectors are used where they are; the elements behind them go through a buffer.
    const int64_t left = space.inner - first;
    const int64_t count = left < tiles * kEltwiseTile ? left : tiles * kEltwiseTile;
    if (has_runs) {
      run_runs(args, base, first, count, w);
      continue;
    }
    const int64_t whole = count / kLanes * kLanes;
    if (whole > 0) run_tile(args, base, first, whole, last_block, w);
    if (whole < count) run_tile(args, base, first + whole, count - whole, last_block, w);
  }
}

}  // namespace neo::NEO_ISA
