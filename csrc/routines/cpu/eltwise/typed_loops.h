#pragma once

// Loops that the compiler vectorizes, over whole groups of elements so that none needs an end of its own. Safe in
// kernel files.

#include "base/span.h"
#include "routines/cpu/eltwise/typed_program.h"

// One loop per type: kept out of line, so that what chooses among them is small.
#define NEO_KERNEL __attribute__((noinline)) void

namespace neo::NEO_ISA {

// An operand of a step: dense, or one group of elements again and again.
struct Source {
  const void* from;
  int64_t mask;  // -1, or 0 where it repeats

  template <class T>
  NEO_INLINE const T* group(int64_t first) const {
    return (const T*)from + (first & mask);
  }
};

// Steps of several types, in files of their own.
void convert_step(const TypedStep& s, void* dst, const void* a, int64_t n);
void binary_step(const TypedStep& s, void* dst, Source a, Source b, int64_t n);
void clamp_step(const TypedStep& s, void* dst, Source a, Source b, Source c, int64_t n);

namespace {

template <class T>
struct Type {
  using type = T;
};

// Destination and operands may be one buffer, element by element.
template <class D, class A, class F>
NEO_INLINE void unary(void* dst, const void* a, int64_t n, F f) {
  D* d = (D*)dst;
  const A* x = (const A*)a;
  n &= -kTypedGroup;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = (D)f(x[i]);
}

template <class D, class A, class F>
NEO_INLINE void binary(void* dst, Source a, Source b, int64_t n, F f) {
  for (int64_t first = 0; first < n; first += kTypedGroup) {
    D* d = (D*)dst + first;
    const A *x = a.group<A>(first), *y = b.group<A>(first);
#pragma GCC ivdep
#pragma GCC unroll 1
    for (int64_t i = 0; i < kTypedGroup; ++i) d[i] = (D)f(x[i], y[i]);
  }
}

template <class D, class A, class B, class F>
NEO_INLINE void ternary(void* dst, Source a, Source b, Source c, int64_t n, F f) {
  for (int64_t first = 0; first < n; first += kTypedGroup) {
    D* d = (D*)dst + first;
    const A* x = a.group<A>(first);
    const B *y = b.group<B>(first), *z = c.group<B>(first);
#pragma GCC ivdep
#pragma GCC unroll 1
    for (int64_t i = 0; i < kTypedGroup; ++i) d[i] = (D)f(x[i], y[i], z[i]);
  }
}

// f(Type<T>) for the unsigned integer of so many bytes.
template <class F>
NEO_INLINE void by_width(Lane lane, F f) {
  switch (lane_bytes(lane)) {
    case 1:
      return f(Type<uint8_t>());
    case 2:
      return f(Type<uint16_t>());
    case 4:
      return f(Type<uint32_t>());
    default:
      return f(Type<uint64_t>());
  }
}

template <class F>
NEO_INLINE void by_integer(Lane lane, F f) {
  switch (lane) {
    case Lane::I8:
      return f(Type<int8_t>());
    case Lane::U8:
      return f(Type<uint8_t>());
    case Lane::I16:
      return f(Type<int16_t>());
    case Lane::U16:
      return f(Type<uint16_t>());
    case Lane::I32:
      return f(Type<int32_t>());
    case Lane::U32:
      return f(Type<uint32_t>());
    case Lane::I64:
      return f(Type<int64_t>());
    default:
      return f(Type<uint64_t>());
  }
}

template <class T>
constexpr bool is_signed_type = (T)-1 < (T)0;

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<int8_t> : Type<uint8_t> {};
template <>
struct UnsignedOf<uint8_t> : Type<uint8_t> {};
template <>
struct UnsignedOf<int16_t> : Type<uint16_t> {};
template <>
struct UnsignedOf<uint16_t> : Type<uint16_t> {};
template <>
struct UnsignedOf<int32_t> : Type<uint32_t> {};
template <>
struct UnsignedOf<uint32_t> : Type<uint32_t> {};
template <>
struct UnsignedOf<int64_t> : Type<uint64_t> {};
template <>
struct UnsignedOf<uint64_t> : Type<uint64_t> {};
template <class T>
using Unsigned = typename UnsignedOf<T>::type;

}  // namespace
}  // namespace neo::NEO_ISA
