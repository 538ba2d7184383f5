#include "routines/cpu/eltwise/elements.h"
#include "routines/cpu/eltwise/typed_loops.h"
#include "simd/math64.h"
#include "simd/vec.h"

// Typed programs: steps of one operand and of three, and tiles of the iteration space.

namespace neo::NEO_ISA {
namespace {

NEO_KERNEL truth(const TypedStep& s, void* dst, const void* a, int64_t n) {
  const bool is_float = s.lane >= Lane::F16;
  by_width(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    if (is_float && sizeof(T) > 1) {
      // Without the sign.
      if (s.op == TypedOp::IsTrue)
        return unary<uint8_t, T>(dst, a, n, [](T x) NEO_LAMBDA { return (uint8_t)((T)(x + x) != 0); });
      return unary<uint8_t, T>(dst, a, n, [](T x) NEO_LAMBDA { return (uint8_t)((T)(x + x) == 0); });
    }
    if (s.op == TypedOp::IsTrue) return unary<uint8_t, T>(dst, a, n, [](T x) NEO_LAMBDA { return (uint8_t)(x != 0); });
    return unary<uint8_t, T>(dst, a, n, [](T x) NEO_LAMBDA { return (uint8_t)(x == 0); });
  });
}

NEO_KERNEL choose(const TypedStep& s, void* dst, Source a, Source b, Source c, int64_t n) {
  by_width(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    ternary<T, uint8_t, T>(dst, a, b, c, n,
                           [](uint8_t condition, T x, T y) NEO_LAMBDA { return condition != 0 ? x : y; });
  });
}

NEO_KERNEL signs(const TypedStep& s, void* dst, const void* a, int64_t n) {
  if (s.op == TypedOp::Sign && s.lane == Lane::F64) {
    return unary<double, double>(dst, a, n, [](double x) NEO_LAMBDA { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; });
  }
  if (s.op == TypedOp::Sign) {
    return by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
      unary<T, T>(dst, a, n, [](T x) NEO_LAMBDA { return (T)((x > 0) - (x < 0)); });
    });
  }
  const bool is_float = s.lane >= Lane::F16;
  by_width(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    constexpr int kTop = 8 * sizeof(T) - 1;
    const T top = (T)((T)1 << kTop);
    if (is_float && sizeof(T) > 1) {
      if (s.op == TypedOp::Neg) return unary<T, T>(dst, a, n, [=](T x) NEO_LAMBDA { return (T)(x ^ top); });
      return unary<T, T>(dst, a, n, [=](T x) NEO_LAMBDA { return (T)(x & (T)~top); });
    }
    if (s.op == TypedOp::Neg) return unary<T, T>(dst, a, n, [](T x) NEO_LAMBDA { return (T)(0 - x); });
    // The absolute value of signed integers, whose top bit is the sign.
    unary<T, T>(dst, a, n, [=](T x) NEO_LAMBDA { return (T)(x >= top ? (T)(0 - x) : x); });
  });
}

// Functions of double

template <class F>
NEO_INLINE void real(void* dst, const void* a, int64_t n, F f) {
  unary<double, double>(dst, a, n, f);
}

NEO_KERNEL call_each(double (*f)(double), void* dst, const void* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) ((double*)dst)[i] = f(((const double*)a)[i]);
}

// Whether the sine and cosine of all elements need no more digits than theirs.
NEO_INLINE bool is_near(const void* a, int64_t n) {
  int64_t far = 0;
  n &= -kTypedGroup;
  for (int64_t i = 0; i < n; ++i) far |= !(__builtin_fabs(((const double*)a)[i]) <= kDoubleQuarterLimit);
  return far == 0;
}

NEO_KERNEL function(const TypedStep& s, void* dst, const void* a, int64_t n) {
  switch (s.op) {
    case TypedOp::Sqrt:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return __builtin_sqrt(x); });
    case TypedOp::Floor:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return __builtin_floor(x); });
    case TypedOp::Ceil:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return __builtin_ceil(x); });
    case TypedOp::Round:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return __builtin_rint(x); });
    case TypedOp::Exp:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return exp(x); });
    case TypedOp::Expm1:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return expm1(x); });
    case TypedOp::Log:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return log(x); });
    case TypedOp::Tanh:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return tanh(x); });
    case TypedOp::Sigmoid:
      return real(dst, a, n, [](double x) NEO_LAMBDA { return sigmoid(x); });
    case TypedOp::Sin:
      if (!is_near(a, n)) return call_each(::sin, dst, a, n);
      return real(dst, a, n, [](double x) NEO_LAMBDA { return sin(x); });
    case TypedOp::Cos:
      if (!is_near(a, n)) return call_each(::cos, dst, a, n);
      return real(dst, a, n, [](double x) NEO_LAMBDA { return cos(x); });
    case TypedOp::Tan:
      return call_each(::tan, dst, a, n);
    case TypedOp::Asin:
      return call_each(::asin, dst, a, n);
    case TypedOp::Acos:
      return call_each(::acos, dst, a, n);
    case TypedOp::Atan:
      return call_each(::atan, dst, a, n);
    case TypedOp::Sinh:
      return call_each(::sinh, dst, a, n);
    case TypedOp::Cosh:
      return call_each(::cosh, dst, a, n);
    case TypedOp::Asinh:
      return call_each(::asinh, dst, a, n);
    case TypedOp::Acosh:
      return call_each(::acosh, dst, a, n);
    case TypedOp::Atanh:
      return call_each(::atanh, dst, a, n);
    case TypedOp::Erf:
      return call_each(::erf, dst, a, n);
    default:
      return call_each(::log1p, dst, a, n);
  }
}

void run_step(const TypedStep& s, void* dst, Source a, Source b, Source c, int64_t n) {
  switch (s.op) {
    case TypedOp::Convert:
    case TypedOp::RoundToOdd:
      return convert_step(s, dst, a.from, n);
    case TypedOp::IsTrue:
    case TypedOp::IsFalse:
      return truth(s, dst, a.from, n);
    case TypedOp::Neg:
    case TypedOp::Abs:
    case TypedOp::Sign:
      return signs(s, dst, a.from, n);
    case TypedOp::Select:
      return choose(s, dst, a, b, c, n);
    case TypedOp::Clamp:
      return clamp_step(s, dst, a, b, c, n);
    default:
      return is_unary(s.op) ? function(s, dst, a.from, n) : binary_step(s, dst, a, b, n);
  }
}

// Operands as dense buffers

template <class T>
NEO_INLINE void fill(void* to, const void* element, int64_t n) {
  T x;
  __builtin_memcpy(&x, element, sizeof x);
  n &= -kTypedGroup;
  for (int64_t i = 0; i < n; ++i) ((T*)to)[i] = x;
}

template <class T>
NEO_INLINE void gather_runs(void* to, Elements e, int64_t count) {
  const T* p = (const T*)e.from + e.first;
  T* d = (T*)to;
  int64_t i = e.skip;
  for (int64_t left = count; left > 0; p += e.advance(), i = 0) {
    const int64_t n = e.run - i < left ? e.run - i : left;
    copy_run(d, p + i * e.stride, e.stride, n);
    d += n;
    left -= n;
  }
}

NEO_KERNEL gather(Lane lane, void* to, const Elements& e, int64_t count) {
  by_width(lane, [&]<class T>(Type<T>) NEO_LAMBDA { gather_runs<T>(to, e, count); });
}

NEO_KERNEL repeat(Lane lane, void* to, const void* element, int64_t count) {
  by_width(lane, [&]<class T>(Type<T>) NEO_LAMBDA { fill<T>(to, element, count); });
}

struct Workspace {
  alignas(64) uint8_t buffers[kTypedCachedBytes];
  alignas(64) uint8_t rest[kTypedGroup * 8];
  const void* repeated[kTypedMaxOperands];  // the element that fills the first group of an input's buffer
};

NEO_INLINE uint8_t* buffer_of(const TypedArgs& args, int i, Workspace& w) {
  return w.buffers + i * args.buffer_bytes;
}

NEO_INLINE int64_t whole_groups(int64_t count) {
  return (count + kTypedGroup - 1) & -kTypedGroup;
}

// The elements that a copy lacks of a whole group must not be garbage, which may trap or take long.
NEO_INLINE void clear_rest(uint8_t* copy, int64_t count, int bytes) {
  __builtin_memset(copy + count * bytes, 0, (size_t)((whole_groups(count) - count) * bytes));
}

Source find_operand(const TypedArgs& args, int i, int64_t base, int64_t first, int64_t count, Workspace& w) {
  const EltwiseSpace& space = *args.space;
  const Lane lane = args.program->lane[i];
  const int bytes = lane_bytes(lane);
  const uint8_t* from = (const uint8_t*)args.operands[i];
  uint8_t* copy = buffer_of(args, args.program->registers + i, w);
  switch (space.mode[i]) {
    case EltwiseMode::Scalar:
      if (w.repeated[i] != from + base * bytes) {
        w.repeated[i] = from + base * bytes;
        repeat(lane, copy, w.repeated[i], kTypedGroup);
      }
      return {copy, 0};
    case EltwiseMode::Dense:
      if ((count & (kTypedGroup - 1)) == 0) return {from + (base + first) * bytes, -1};
      __builtin_memcpy(copy, from + (base + first) * bytes, (size_t)(count * bytes));
      break;
    case EltwiseMode::Nested:
      gather(lane, copy, nested(from, base, space, i, first), count);
      break;
    default:
      gather(lane, copy, dense(from, base + first * space.inner_stride[i], space.inner_stride[i], count), count);
      break;
  }
  clear_rest(copy, count, bytes);
  return {copy, -1};
}

void run_tile(const TypedArgs& args, const int64_t* base, int64_t first, int64_t count, Workspace& w) {
  const TypedProgram& program = *args.program;
  Source operands[kTypedMaxOperands + kTypedMaxConstants];
  for (int i = 0; i < program.inputs; ++i) operands[i] = find_operand(args, i, base[i], first, count, w);
  for (int i = 0; i < program.constants; ++i) {
    operands[program.inputs + i] = {buffer_of(args, program.registers + program.inputs + i, w), 0};
  }
  const int out = program.inputs;
  const int bytes = lane_bytes(program.lane[out]);
  uint8_t* result = (uint8_t*)args.operands[out] + (base[out] + first) * bytes;
  const int64_t groups = whole_groups(count);
  uint8_t* last = groups == count ? result : w.rest;
  const auto find = [&](int8_t x) NEO_LAMBDA { return x >= 0 ? Source{buffer_of(args, x, w), -1} : operands[-1 - x]; };
  for (int i = 0; i < program.steps; ++i) {
    const TypedStep& s = program.step[i];
    const Source a = find(s.a);
    if (is_unary(s.op) && a.mask == 0) repeat(s.lane, (void*)a.from, a.from, groups);
    run_step(s, s.dst >= 0 ? buffer_of(args, s.dst, w) : last, a, find(s.b), find(s.c), groups);
  }
  if (groups != count) __builtin_memcpy(result, w.rest, (size_t)(count * bytes));
}

}  // namespace

void typed_tasks(const TypedArgs& args, int64_t begin, int64_t end) {
  const TypedProgram& program = *args.program;
  const EltwiseSpace& space = *args.space;
  const int operands = program.inputs + 1;
  Workspace w;
  for (int i = 0; i < program.inputs; ++i) w.repeated[i] = nullptr;
  for (int i = 0; i < program.constants; ++i) {
    repeat(program.constant_lane[i], buffer_of(args, program.registers + program.inputs + i, w), &program.constant[i],
           kTypedGroup);
  }
  // The place of the first task; the next ones are found without a division.
  int64_t first = begin % space.tiles * args.tile;
  int64_t index[kEltwiseMaxAxes], base[kTypedMaxOperands] = {};
  int64_t row = begin / space.tiles;
  for (int a = space.axes - 1; a >= 0; --a) {
    index[a] = row % space.size[a];
    row /= space.size[a];
    for (int i = 0; i < operands; ++i) base[i] += index[a] * space.stride[i][a];
  }
  for (int64_t task = begin; task < end; ++task) {
    const int64_t left = space.inner - first;
    const int64_t count = left < args.tile ? left : args.tile;
    // The elements behind the last whole group go through buffers.
    const int64_t whole = count & -kTypedGroup;
    if (whole > 0) run_tile(args, base, first, whole, w);
    if (whole < count) run_tile(args, base, first + whole, count - whole, w);
    first += args.tile;
    if (first < space.inner) continue;
    first = 0;
    for (int a = space.axes - 1; a >= 0; --a) {
      const bool ends = ++index[a] == space.size[a];
      const int64_t steps = ends ? 1 - index[a] : 1;
      for (int i = 0; i < operands; ++i) base[i] += steps * space.stride[i][a];
      if (!ends) break;
      index[a] = 0;
    }
  }
}

}  // namespace neo::NEO_ISA
