#include <math.h>

#include "routines/cpu/eltwise/typed_loops.h"
#include "simd/vec.h"

// Steps of two operands.

namespace neo::NEO_ISA {
namespace {

// Quotients of at most 32 bits are exact in the floating point type with twice as many.
template <class T>
NEO_INLINE T quotient_of(T a, T b) {
  const T divisor = b == 0 ? (T)1 : b;
  if constexpr (sizeof(T) <= 2) {
    const T q = (T)(int32_t)((float)(int32_t)a / (float)(int32_t)divisor);
    return b == 0 ? (T)0 : q;
  } else if constexpr (sizeof(T) == 4 && is_signed_type<T>) {
    const T q = (T)((double)a / (double)divisor);
    const T negated = (T)(0u - (uint32_t)a);  // the one quotient that does not fit
    return b == 0 ? (T)0 : b == -1 ? negated : q;
  } else if constexpr (sizeof(T) == 4) {
    const double q = (double)a / (double)divisor;
    const bool large = q >= 0x1p31;
    const uint32_t whole = (uint32_t)(int32_t)(large ? q - 0x1p31 : q) + (large ? 0x80000000u : 0u);
    return b == 0 ? 0u : whole;
  } else if constexpr (is_signed_type<T>) {
    if (b == 0) return 0;
    if (b == -1) return (T)(0 - (uint64_t)a);
    // Processors divide by 32 bits in a fraction of the time.
    if ((((uint64_t)a | (uint64_t)b) >> 32) == 0) return (T)((uint32_t)a / (uint32_t)b);
    return a / b;
  } else {
    if (b == 0) return 0;
    if (((a | b) >> 32) == 0) return (uint32_t)a / (uint32_t)b;
    return a / b;
  }
}

template <class T, bool kFloor>
NEO_INLINE T modulo_of(T a, T b) {
  using U = Unsigned<T>;
  const T r = (T)(U)((U)a - (U)((U)b * (U)quotient_of(a, b)));
  if constexpr (!kFloor || !is_signed_type<T>) {
    return r;
  } else {
    const bool moves = (r != 0) & (b != 0) & ((r < 0) != (b < 0));
    return (T)(r + (moves ? b : (T)0));
  }
}

// (uint32_t) keeps a product of 16 bits from overflowing an int.
template <class T>
NEO_INLINE T product_of(T a, T b) {
  if constexpr (sizeof(T) < 4) {
    return (T)((uint32_t)a * (uint32_t)b);
  } else {
    return a * b;
  }
}

NEO_INLINE int64_t power_of(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

template <class T>
NEO_INLINE T shifted_right(T x, T by) {
  constexpr int kBits = 8 * sizeof(T);
  const Unsigned<T> u = (Unsigned<T>)by;
  if constexpr (is_signed_type<T>) {
    return (T)(x >> (u < kBits ? u : kBits - 1));
  } else {
    return u < kBits ? (T)(x >> (u & (kBits - 1))) : (T)0;
  }
}

template <class T>
NEO_INLINE T smaller_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
NEO_INLINE T larger_of(T a, T b) {
  return a < b ? b : a;
}
NEO_INLINE double smaller_of(double a, double b) {
  const double least = b < a ? b : a;
  return b != b ? b : least;
}
NEO_INLINE double larger_of(double a, double b) {
  const double most = a < b ? b : a;
  return b != b ? b : most;
}

NEO_KERNEL add_sub_mul(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  const auto loop = [&]<class T>(Type<T>) NEO_LAMBDA {
    switch (s.op) {
      case TypedOp::Add:
        return binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)(x + y); });
      case TypedOp::Sub:
        return binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)(x - y); });
      default:
        return binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return product_of(x, y); });
    }
  };
  if (s.lane == Lane::F64) {
    loop(Type<double>());
  } else {
    by_width(s.lane, loop);
  }
}

NEO_KERNEL min_max(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  const auto loop = [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Min) {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return smaller_of(x, y); });
    } else {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return larger_of(x, y); });
    }
  };
  if (s.lane == Lane::F64) {
    loop(Type<double>());
  } else {
    by_integer(s.lane, loop);
  }
}

double floor_modulo(double a, double b) {
  const double r = fmod(a, b);
  if (r == 0) return copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

NEO_KERNEL divide(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  if (s.lane == Lane::F32) {
    if (s.op == TypedOp::Mod)
      return binary<float, float>(dst, a, b, n, [](float x, float y) NEO_LAMBDA { return fmodf(x, y); });
    return binary<float, float>(dst, a, b, n, [](float x, float y) NEO_LAMBDA { return floor_modulo(x, y); });
  }
  if (s.lane == Lane::F64) {
    if (s.op == TypedOp::Div)
      return binary<double, double>(dst, a, b, n, [](double x, double y) NEO_LAMBDA { return x / y; });
    if (s.op == TypedOp::Mod)
      return binary<double, double>(dst, a, b, n, [](double x, double y) NEO_LAMBDA { return fmod(x, y); });
    return binary<double, double>(dst, a, b, n, [](double x, double y) NEO_LAMBDA { return floor_modulo(x, y); });
  }
  by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Div) {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return quotient_of(x, y); });
    } else if (is_signed_type<T> && s.op == TypedOp::FloorMod) {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return modulo_of<T, true>(x, y); });
    } else {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return modulo_of<T, false>(x, y); });
    }
  });
}

NEO_KERNEL power(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  if (s.lane == Lane::F64) {
    binary<double, double>(dst, a, b, n, [](double x, double y) NEO_LAMBDA { return pow(x, y); });
  } else {
    binary<int64_t, int64_t>(dst, a, b, n, [](int64_t x, int64_t y) NEO_LAMBDA { return power_of(x, y); });
  }
}

// Elements of any dtype, eight bytes at a time.
typedef uint64_t Word __attribute__((aligned(1), may_alias));

NEO_KERNEL bits(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  const auto loop = [&](auto f) NEO_LAMBDA {
    Word* d = (Word*)dst;
    const Word *x = (const Word*)a, *y = (const Word*)b;
    const int64_t words = n * lane_bytes(s.lane) / 8 & -8;
#pragma GCC ivdep
    for (int64_t i = 0; i < words; ++i) d[i] = f(x[i], y[i]);
  };
  if (s.op == TypedOp::BitAnd) {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x & y; });
  } else if (s.op == TypedOp::BitOr) {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x | y; });
  } else {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x ^ y; });
  }
}

NEO_KERNEL shift(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  if (s.op == TypedOp::ShiftLeft) {
    return by_width(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
      constexpr int kBits = 8 * sizeof(T);
      binary<T, T>(dst, a, b, n, [](T x, T by) NEO_LAMBDA { return by < kBits ? (T)(x << (by & (kBits - 1))) : (T)0; });
    });
  }
  by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    binary<T, T>(dst, a, b, n, [](T x, T by) NEO_LAMBDA { return shifted_right(x, by); });
  });
}

NEO_KERNEL logic(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  using T = uint8_t;
  if (s.op == TypedOp::And) {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x != 0) & (y != 0)); });
  } else if (s.op == TypedOp::Or) {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x | y) != 0); });
  } else {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x != 0) != (y != 0)); });
  }
}

NEO_KERNEL equal(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  const auto loop = [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Equal) {
      binary<uint8_t, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (uint8_t)(x == y); });
    } else {
      binary<uint8_t, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (uint8_t)(x != y); });
    }
  };
  if (s.lane == Lane::F64) {
    loop(Type<double>());
  } else if (s.lane == Lane::F32) {
    loop(Type<float>());
  } else {
    by_width(s.lane, loop);
  }
}

NEO_KERNEL less(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  const auto loop = [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Less) {
      binary<uint8_t, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (uint8_t)(x < y); });
    } else {
      binary<uint8_t, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (uint8_t)(x <= y); });
    }
  };
  if (s.lane == Lane::F64) {
    loop(Type<double>());
  } else if (s.lane == Lane::F32) {
    loop(Type<float>());
  } else {
    by_integer(s.lane, loop);
  }
}

}  // namespace

void binary_step(const TypedStep& s, void* dst, const void* a, const void* b, int64_t n) {
  switch (s.op) {
    case TypedOp::Add:
    case TypedOp::Sub:
    case TypedOp::Mul:
      return add_sub_mul(s, dst, a, b, n);
    case TypedOp::Div:
    case TypedOp::Mod:
    case TypedOp::FloorMod:
      return divide(s, dst, a, b, n);
    case TypedOp::Min:
    case TypedOp::Max:
      return min_max(s, dst, a, b, n);
    case TypedOp::Pow:
      return power(s, dst, a, b, n);
    case TypedOp::BitAnd:
    case TypedOp::BitOr:
    case TypedOp::BitXor:
      return bits(s, dst, a, b, n);
    case TypedOp::ShiftLeft:
    case TypedOp::ShiftRight:
      return shift(s, dst, a, b, n);
    case TypedOp::And:
    case TypedOp::Or:
    case TypedOp::Xor:
      return logic(s, dst, a, b, n);
    case TypedOp::Equal:
    case TypedOp::NotEqual:
      return equal(s, dst, a, b, n);
    default:
      return less(s, dst, a, b, n);
  }
}

}  // namespace neo::NEO_ISA
