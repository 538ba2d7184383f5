#pragma once

// Sums, products and extremes of elements of any dtype, in vectors that the compiler makes; for kernels (*.isa.cpp).

#include <math.h>

#include "routines/cpu/eltwise/typed_loops.h"

namespace neo::NEO_ISA {
namespace {

// Partial results side by side, as many on every tier: these fix the order in which float64 is summed.
template <class A>
constexpr int kAccumulators = 64 / (int)sizeof(A);

template <class T>
constexpr bool is_real = false;
template <>
constexpr bool is_real<double> = true;

template <class T>
NEO_INLINE T least_of() {
  if constexpr (is_real<T>) {
    return (T)-INFINITY;
  } else if constexpr (is_signed_type<T>) {
    return (T)((Unsigned<T>)1 << (8 * sizeof(T) - 1));
  } else {
    return (T)0;
  }
}

template <class T>
NEO_INLINE T most_of() {
  if constexpr (is_real<T>) {
    return (T)INFINITY;
  } else {
    return (T)~least_of<T>();
  }
}

template <class T>
NEO_INLINE T multiply(T a, T b) {
  if constexpr (sizeof(T) < 4) {
    return (T)((uint32_t)a * (uint32_t)b);
  } else {
    return a * b;
  }
}

// Operations on elements of type T, in numbers of type A. Integers that leave their range wrap.
template <class T>
struct Plus {
  using A = T;
  static constexpr bool kSelects = false;  // merging takes one of two
  static NEO_INLINE A start() { return (A)0; }
  static NEO_INLINE A of(T x) { return x; }
  static NEO_INLINE A merge(A a, A b) { return (A)(a + b); }
};

template <class T>
struct Squares : Plus<T> {
  static NEO_INLINE T of(T x) { return multiply(x, x); }
};

template <class T, class From = T>
struct Magnitudes : Plus<T> {
  static NEO_INLINE T of(T x) {
    if constexpr (is_real<T>) {
      return x < 0 ? -x : x;
    } else {
      return (From)x < 0 ? (T)(0 - x) : x;
    }
  }
};

template <class T>
struct Times : Plus<T> {
  static NEO_INLINE T start() { return (T)1; }
  static NEO_INLINE T merge(T a, T b) { return multiply(a, b); }
};

// Extremes of real numbers that are ordered: one instruction, which loses NaN.
struct LargestOrdered : Plus<double> {
  static NEO_INLINE double start() { return -INFINITY; }
  static NEO_INLINE double merge(double a, double b) { return a > b ? a : b; }
};
struct SmallestOrdered : Plus<double> {
  static NEO_INLINE double start() { return INFINITY; }
  static NEO_INLINE double merge(double a, double b) { return a < b ? a : b; }
};
struct Unordered {
  using A = uint64_t;
  static constexpr bool kSelects = false;
  static NEO_INLINE A start() { return 0; }
  static NEO_INLINE A of(double x) { return x != x; }
  static NEO_INLINE A merge(A a, A b) { return a | b; }
};

template <class T>
struct Largest : Plus<T> {
  using Ordered = LargestOrdered;
  static constexpr bool kSelects = true;
  static NEO_INLINE T start() { return least_of<T>(); }
  static NEO_INLINE T merge(T a, T b) { return a > b || a != a ? a : b; }
};

template <class T>
struct Smallest : Plus<T> {
  using Ordered = SmallestOrdered;
  static constexpr bool kSelects = true;
  static NEO_INLINE T start() { return most_of<T>(); }
  static NEO_INLINE T merge(T a, T b) { return a < b || a != a ? a : b; }
};

// Sums of integers of at most 32 bits, as many as memory holds.
template <class T, class Sum = int64_t>
struct Wide {
  using A = Sum;
  static constexpr bool kSelects = false;
  static NEO_INLINE A start() { return 0; }
  static NEO_INLINE A of(T x) { return (A)x; }
  static NEO_INLINE A merge(A a, A b) { return a + b; }
};

// Takes the upper half of 2 * kWidth partial results into the lower one, then kWidth of the elements that are left
// where they are as many, and so on with halves.
template <class Op, int kWidth, class T>
NEO_INLINE void fold_halves(typename Op::A* acc, const T* x, int64_t n) {
  for (int g = 0; g < kWidth; ++g) acc[g] = Op::merge(acc[g], acc[g + kWidth]);
  if ((n & kWidth) != 0) {
    for (int g = 0; g < kWidth; ++g) acc[g] = Op::merge(acc[g], Op::of(x[g]));
    x += kWidth;
  }
  if constexpr (kWidth > 1) fold_halves<Op, kWidth / 2>(acc, x, n);
}

template <class Op, class T>
NEO_INLINE typename Op::A fold_row(const T* x, int64_t n) {
  using A = typename Op::A;
  constexpr int kWidth = kAccumulators<A>;
  constexpr int64_t kShort = 8;
  if (n < kShort) {
    A sum = Op::start();
    for (int64_t i = 0; i < n; ++i) sum = Op::merge(sum, Op::of(x[i]));
    return sum;
  }
  if constexpr (Op::kSelects && is_real<A>) {
    // Two passes wait less than one whose every step has two comparisons.
    const A best = fold_row<typename Op::Ordered>(x, n);
    return fold_row<Unordered>(x, n) != 0 ? (A)NAN : best;
  }
  A acc[kWidth];
  for (int g = 0; g < kWidth; ++g) acc[g] = Op::start();
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int g = 0; g < kWidth; ++g) acc[g] = Op::merge(acc[g], Op::of(x[i + g]));
  }
  fold_halves<Op, kWidth / 2>(acc, x + i, n - i);
  return acc[0];
}

}  // namespace
}  // namespace neo::NEO_ISA
