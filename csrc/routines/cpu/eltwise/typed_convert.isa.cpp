#include "routines/cpu/eltwise/typed_loops.h"
#include "simd/math64.h"
#include "simd/vec.h"

// Conversions of numbers as Cast makes them.

namespace neo::NEO_ISA {
namespace {

// Towards zero; beyond 64 bits the nearest number, NaN is 0.
NEO_INLINE int64_t truncated(double x) {
  if (x != x) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}
NEO_INLINE uint64_t truncated_unsigned(double x) {
  if (x >= 0x1p64) return UINT64_MAX;
  return x >= 0x1p63 ? (uint64_t)x : (uint64_t)truncated(x);
}

// Numbers that the fast conversions are not for.
template <class D, class A>
__attribute__((noinline)) void convert_any(void* dst, const void* a, int64_t n) {
  const A* x = (const A*)a;
  D* d = (D*)dst;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (is_signed_type<D>) {
      d[i] = (D)truncated(x[i]);
    } else {
      d[i] = (D)truncated_unsigned(x[i]);
    }
  }
}

NEO_INLINE float magnitude_of(float x) {
  return __builtin_fabsf(x);
}
NEO_INLINE double magnitude_of(double x) {
  return __builtin_fabs(x);
}

// f(x) is right below `limit`, which most tiles are.
template <class D, class A, class F>
NEO_INLINE void truncate(void* dst, const void* a, int64_t n, A limit, F f) {
  const A* x = (const A*)a;
  D* d = (D*)dst;
  const int64_t count = n & -kTypedGroup;
  int32_t beyond = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    beyond |= !(magnitude_of(x[i]) < limit);
    d[i] = f(x[i]);
  }
  if (beyond != 0) [[unlikely]]
    convert_any<D, A>(dst, a, n);
}

// The upper half counts 2^32 each, the lower half beside it is rounded once.
template <class T>
NEO_INLINE double to_double(T x) {
  if constexpr (sizeof(T) < 8) {
    return (double)x;
  } else {
    constexpr bool kSigned = is_signed_type<T>;
    const uint64_t u = (uint64_t)x;
    const uint64_t high = (kSigned ? u ^ ((uint64_t)1 << 63) : u) >> 32;
    const double upper = double_of(high | 0x4530000000000000);              // 2^84 + 2^32 high
    const double lower = double_of((u & 0xffffffff) | 0x4330000000000000);  // 2^52 + low
    return (upper - (0x1p84 + 0x1p52 + (kSigned ? 0x1p63 : 0.0))) + lower;
  }
}

// Rounded to float so that the last bit tells of what was lost: rounding it again, to fewer bits, rounds as if at once.
// Numbers below the normal ones of bfloat16 are rounded to its distances.
NEO_INLINE float round_to_odd(double x) {
  const uint64_t u = bits_of(x);
  const uint64_t lost = u & 0x1fffffff;
  const double kept = double_of((u & ~(uint64_t)0x1fffffff) | (lost != 0 ? (uint64_t)0x20000000 : 0));
  const uint64_t sign = u & ((uint64_t)1 << 63);
  const double magnitude = double_of(u ^ sign);
  const double small = double_of(bits_of((magnitude + 0x1.8p-81) - 0x1.8p-81) | sign);
  // Beyond float the largest number would not round to infinity.
  return (float)(magnitude < 0x1p-126 ? small : magnitude < 0x1p128 ? kept : x);
}

template <class D, class A>
NEO_INLINE void convert_plainly(void* dst, const void* a, int64_t n) {
  unary<D, A>(dst, a, n, [](A x) NEO_LAMBDA { return (D)x; });
}

template <class F>
NEO_INLINE void vectors(int64_t n, F f) {
  const int64_t count = n & -kTypedGroup;
  for (int64_t i = 0; i < count; i += kLanes) f(i);
}

NEO_KERNEL convert_integer(const TypedStep& s, void* dst, const void* a, int64_t n) {
  if (s.to == Lane::F32) {
    return by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA { convert_plainly<float, T>(dst, a, n); });
  }
  if (s.to == Lane::F64) {
    return by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
      unary<double, T>(dst, a, n, [](T x) NEO_LAMBDA { return to_double(x); });
    });
  }
  if (lane_bytes(s.to) <= lane_bytes(s.lane)) {
    return by_width(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
      by_width(s.to, [&]<class D>(Type<D>) NEO_LAMBDA {
        if constexpr (sizeof(D) <= sizeof(T)) convert_plainly<D, T>(dst, a, n);
      });
    });
  }
  by_integer(s.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    by_width(s.to, [&]<class D>(Type<D>) NEO_LAMBDA {
      if constexpr (sizeof(D) > sizeof(T)) convert_plainly<D, T>(dst, a, n);
    });
  });
}

NEO_KERNEL convert_float(const TypedStep& s, void* dst, const void* a, int64_t n) {
  const float* x = (const float*)a;
  switch (s.to) {
    case Lane::F16:
      return vectors(n, [&](int64_t i) NEO_LAMBDA { store_f16((uint16_t*)dst + i, load(x + i)); });
    case Lane::BF16:
      return vectors(n, [&](int64_t i) NEO_LAMBDA { store_bf16((uint16_t*)dst + i, load(x + i)); });
    case Lane::F64:
      return convert_plainly<double, float>(dst, a, n);
    case Lane::I32:
      return truncate<int32_t, float>(dst, a, n, 0x1p31f, [](float y) NEO_LAMBDA { return (int32_t)y; });
    case Lane::I64:
      return truncate<int64_t, float>(dst, a, n, 0x1p31f, [](float y) NEO_LAMBDA { return (int64_t)(int32_t)y; });
    default:
      return truncate<uint64_t, float>(dst, a, n, 0x1p31f,
                                       [](float y) NEO_LAMBDA { return (uint64_t)(int64_t)(int32_t)y; });
  }
}

NEO_KERNEL convert_half(const TypedStep& s, void* dst, const void* a, int64_t n) {
  const uint16_t* x = (const uint16_t*)a;
  float* d = (float*)dst;
  if (s.to != Lane::F32) return convert_plainly<uint16_t, uint16_t>(dst, a, n);
  if (s.lane == Lane::F16) return vectors(n, [&](int64_t i) NEO_LAMBDA { store(d + i, load_f16(x + i)); });
  vectors(n, [&](int64_t i) NEO_LAMBDA { store(d + i, load_bf16(x + i)); });
}

NEO_KERNEL convert_double(const TypedStep& s, void* dst, const void* a, int64_t n) {
  using detail::kWhole;
  const auto whole = [](double x) NEO_LAMBDA {
    const double nearest = (x + kWhole) - kWhole;
    const double away = magnitude_of(nearest) > magnitude_of(x) ? copy_sign(1.0, x) : 0.0;
    return (int64_t)(bits_of((nearest - away) + kWhole) - bits_of(kWhole));
  };
  switch (s.to) {
    case Lane::F32:
      if (s.op == TypedOp::Convert) return convert_plainly<float, double>(dst, a, n);
      return unary<float, double>(dst, a, n, [](double x) NEO_LAMBDA { return round_to_odd(x); });
    case Lane::I32:
      return truncate<int32_t, double>(dst, a, n, 0x1p31, [](double x) NEO_LAMBDA { return (int32_t)x; });
    case Lane::I64:
      return truncate<int64_t, double>(dst, a, n, 0x1p51, whole);
    default:
      return truncate<uint64_t, double>(dst, a, n, 0x1p51, [=](double x) NEO_LAMBDA { return (uint64_t)whole(x); });
  }
}

}  // namespace

void convert_step(const TypedStep& s, void* dst, const void* a, int64_t n) {
  if (s.lane <= Lane::U64) return convert_integer(s, dst, a, n);
  if (s.lane == Lane::F32) return convert_float(s, dst, a, n);
  if (s.lane == Lane::F64) return convert_double(s, dst, a, n);
  convert_half(s, dst, a, n);
}

}  // namespace neo::NEO_ISA
