#include <math.h>

#include "routines/cpu/eltwise/typed_loops.h"
#include "simd/vec.h"

// Steps of two operands, and what bounds are.

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
  } else {
    // Magnitudes are divided: processors divide by 32 bits in a fraction of the time, and signs would be branches.
    const bool minus = is_signed_type<T> && (a < 0) != (divisor < 0);
    const uint64_t x = is_signed_type<T> && a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    const uint64_t y = is_signed_type<T> && divisor < 0 ? 0 - (uint64_t)divisor : (uint64_t)divisor;
    const uint64_t q = ((x | y) >> 32) == 0 ? (uint32_t)x / (uint32_t)y : x / y;
    return b == 0 ? (T)0 : (T)(minus ? 0 - q : q);
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
    return (T)((U)r + (U)((U)b & (U)(0 - (U)moves)));  // of random signs a branch would be slow
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
template <class T>
NEO_INLINE T smaller_real(T a, T b) {
  const T least = b < a ? b : a;
  return b != b ? b : least;
}
template <class T>
NEO_INLINE T larger_real(T a, T b) {
  const T most = a < b ? b : a;
  return b != b ? b : most;
}

NEO_KERNEL add_sub_mul(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
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

NEO_KERNEL min_max(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
  const auto real = [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Min) {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return smaller_real(x, y); });
    } else {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return larger_real(x, y); });
    }
  };
  if (s.lane == Lane::F32) return real(Type<float>());
  if (s.lane == Lane::F64) return real(Type<double>());
  by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    if (s.op == TypedOp::Min) {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return smaller_of(x, y); });
    } else {
      binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return larger_of(x, y); });
    }
  });
}

NEO_INLINE float truncated(float x) {
  return __builtin_truncf(x);
}
NEO_INLINE double truncated(double x) {
  return __builtin_trunc(x);
}
NEO_INLINE float negated_fma(float a, float b, float c) {
  return __builtin_fmaf(-a, b, c);
}
NEO_INLINE double negated_fma(double a, double b, double c) {
  return __builtin_fma(-a, b, c);
}
NEO_INLINE float with_sign(float x, float sign) {
  return __builtin_copysignf(x, sign);
}
NEO_INLINE double with_sign(double x, double sign) {
  return __builtin_copysign(x, sign);
}

// fmod of a group where every quotient is small enough to be exact but for a rounding up to the next whole number,
// which the sign of what is left tells. False where one is not.
template <class T>
NEO_INLINE bool remainders_of_group(T* r, const T* x, const T* y) {
  constexpr T kMax = sizeof(T) == 4 ? (T)0x1p22 : (T)0x1p51;             // quotient
  constexpr T kMinDivisor = sizeof(T) == 4 ? (T)0x1p-100 : (T)0x1p-900;  // divisor
  int32_t beyond = 0;
#pragma GCC unroll 1
  for (int64_t i = 0; i < kTypedGroup; ++i) {
    const T size = x[i] < 0 ? -x[i] : x[i], divisor = y[i] < 0 ? -y[i] : y[i];
    beyond |= !((size < kMax * divisor) & (divisor >= kMinDivisor) & (divisor < 1 / kMinDivisor));
    const T left = negated_fma(truncated(size / divisor), divisor, size);
    r[i] = with_sign(left < 0 ? left + divisor : left, x[i]);
  }
  return beyond == 0;
}

// `remainder` is C's fmod, by its address: of one that the compiler knows it makes slow instructions of its own.
template <class T>
__attribute__((noinline, noclone)) void real_modulo(T (*remainder)(T, T), bool is_floor, void* dst, Source a, Source b,
                                                    int64_t n) {
  T r[kTypedGroup];
  for (int64_t first = 0; first < n; first += kTypedGroup) {
    const T *x = a.group<T>(first), *y = b.group<T>(first);
    if (!kFusedMultiplyAdd || !remainders_of_group(r, x, y)) {
      for (int64_t i = 0; i < kTypedGroup; ++i) r[i] = remainder(x[i], y[i]);
    }
    T* d = (T*)dst + first;
    for (int64_t i = 0; i < kTypedGroup; ++i) {
      const T moved = r[i] == 0                  ? with_sign((T)0, y[i])
                      : (r[i] < 0) != (y[i] < 0) ? (T)((double)r[i] + (double)y[i])
                                                 : r[i];
      d[i] = is_floor ? moved : r[i];
    }
  }
}

NEO_KERNEL divide(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
  if (s.lane == Lane::F64 && s.op == TypedOp::Div) {
    return binary<double, double>(dst, a, b, n, [](double x, double y) NEO_LAMBDA { return x / y; });
  }
  const bool is_floor = s.op == TypedOp::FloorMod;
  if (s.lane == Lane::F32) return real_modulo<float>(fmodf, is_floor, dst, a, b, n);
  if (s.lane == Lane::F64) return real_modulo<double>(fmod, is_floor, dst, a, b, n);
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

NEO_KERNEL power(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
  const auto loop = [&]<class T>(Type<T>, auto f) NEO_LAMBDA {
    // One exponent for all is small, as a rule.
    const T exponent = *(const T*)b.from;
    if (b.mask == 0 && exponent == 2) {
      binary<T, T>(dst, a, a, n, [](T x, T y) NEO_LAMBDA { return x * y; });
    } else if (b.mask == 0 && exponent == 3) {
      binary<T, T>(dst, a, a, n, [](T x, T y) NEO_LAMBDA { return x * y * x; });
    } else {
      binary<T, T>(dst, a, b, n, f);
    }
  };
  if (s.lane == Lane::F64) {
    loop(Type<double>(), [](double x, double y) NEO_LAMBDA { return pow(x, y); });
  } else {
    loop(Type<uint64_t>(),
         [](uint64_t x, uint64_t y) NEO_LAMBDA { return (uint64_t)power_of((int64_t)x, (int64_t)y); });
  }
}

// Elements of any dtype, eight bytes at a time.
typedef uint64_t Word __attribute__((aligned(1), may_alias));

NEO_KERNEL bits(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
  const int64_t words = lane_bytes(s.lane) * (kTypedGroup / 8);  // of a group
  const auto loop = [&](auto f) NEO_LAMBDA {
    for (int64_t first = 0; first < n; first += kTypedGroup) {
      const int64_t word = first / kTypedGroup * words;
      Word* d = (Word*)dst + word;
      const Word *x = (const Word*)a.from + (word & a.mask), *y = (const Word*)b.from + (word & b.mask);
      const int64_t count = words & -8;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) d[i] = f(x[i], y[i]);
    }
  };
  if (s.op == TypedOp::BitAnd) {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x & y; });
  } else if (s.op == TypedOp::BitOr) {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x | y; });
  } else {
    loop([](uint64_t x, uint64_t y) NEO_LAMBDA { return x ^ y; });
  }
}

NEO_KERNEL shift(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
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

NEO_KERNEL logic(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
  using T = uint8_t;
  if (s.op == TypedOp::And) {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x != 0) & (y != 0)); });
  } else if (s.op == TypedOp::Or) {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x | y) != 0); });
  } else {
    binary<T, T>(dst, a, b, n, [](T x, T y) NEO_LAMBDA { return (T)((x != 0) != (y != 0)); });
  }
}

NEO_KERNEL equal(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
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

NEO_KERNEL less(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
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

void binary_step(const TypedStep& s, void* dst, Source a, Source b, int64_t n) {
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

void clamp_step(const TypedStep& s, void* dst, Source a, Source b, Source c, int64_t n) {
  const auto real = [&]<class T>(Type<T>) NEO_LAMBDA {
    ternary<T, T, T>(dst, a, b, c, n,
                     [](T x, T low, T high) NEO_LAMBDA { return smaller_real(larger_real(x, low), high); });
  };
  if (s.lane == Lane::F32) return real(Type<float>());
  if (s.lane == Lane::F64) return real(Type<double>());
  by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    ternary<T, T, T>(dst, a, b, c, n,
                     [](T x, T low, T high) NEO_LAMBDA { return smaller_of(larger_of(x, low), high); });
  });
}

}  // namespace neo::NEO_ISA
