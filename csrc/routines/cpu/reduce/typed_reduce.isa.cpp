#include "routines/cpu/reduce/typed_reduce.h"

#include <math.h>

#include "routines/cpu/eltwise/typed_loops.h"
#include "routines/cpu/reduce/positions.h"

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

// What is done with elements of type T, in numbers of type A. Integers that leave their range wrap.
template <class T>
struct Plus {
  using A = T;
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

template <class T>
struct Largest : Plus<T> {
  static NEO_INLINE T start() { return least_of<T>(); }
  static NEO_INLINE T merge(T a, T b) { return a > b || a != a ? a : b; }
};

template <class T>
struct Smallest : Plus<T> {
  static NEO_INLINE T start() { return most_of<T>(); }
  static NEO_INLINE T merge(T a, T b) { return a < b || a != a ? a : b; }
};

// Of integers of at most 32 bits, as many as memory holds.
template <class T>
struct Wide {
  using A = int64_t;
  static NEO_INLINE A start() { return 0; }
  static NEO_INLINE A of(T x) { return (A)x; }
  static NEO_INLINE A merge(A a, A b) { return a + b; }
};

template <class Op, class T>
NEO_INLINE typename Op::A fold_row(const T* x, int64_t n) {
  using A = typename Op::A;
  constexpr int kWidth = kAccumulators<A>;
  A acc[kWidth];
  if (n < kWidth) {
    A sum = Op::start();
    for (int64_t i = 0; i < n; ++i) sum = Op::merge(sum, Op::of(x[i]));
    return sum;
  }
  for (int g = 0; g < kWidth; ++g) acc[g] = Op::start();
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int g = 0; g < kWidth; ++g) acc[g] = Op::merge(acc[g], Op::of(x[i + g]));
  }
  for (int g = 0; i < n; ++i, ++g) acc[g] = Op::merge(acc[g], Op::of(x[i]));
  for (int width = kWidth / 2; width > 0; width /= 2) {
    for (int g = 0; g < width; ++g) acc[g] = Op::merge(acc[g], acc[g + width]);
  }
  return acc[0];
}

// What makes a result of a sum. Objects of their own, so that dtypes share what differs in nothing else.
struct Same {
  template <class T>
  NEO_INLINE T operator()(T x) const {
    return x;
  }
};
template <class T>
struct AtMost {
  T most;
  NEO_INLINE T operator()(T x) const { return x < most ? x : most; }
};
struct MeanOf {
  int64_t count;
  NEO_INLINE int64_t operator()(int64_t sum) const { return count > 0 ? sum / count : 0; }
  NEO_INLINE double operator()(double sum) const { return sum / (double)count; }
};
struct RootOf {
  NEO_INLINE double operator()(double x) const { return __builtin_sqrt(x); }
};
struct LogOf {
  NEO_INLINE double operator()(double x) const { return ::log(x); }
};

template <class Op, class T, class F>
NEO_KERNEL fold(const TypedReduceArgs& args, int64_t begin, int64_t end, F finish) {
  using A = typename Op::A;
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t last = first + s.rows_per_task < s.outer ? first + s.rows_per_task : s.outer;
      for (int64_t i = first; i < last; ++i)
        ((T*)args.dst)[i] = (T)finish(fold_row<Op>((const T*)args.src + i * s.along, s.along));
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    A acc[kReduceColumns];
    for (int64_t j = 0; j < kReduceColumns; ++j) acc[j] = Op::start();
    for (int64_t i = 0; i < s.along; ++i) {
      const T* x = (const T*)args.src + tile.src + i * s.inner;
      if (tile.columns == kReduceColumns) {
        for (int64_t j = 0; j < kReduceColumns; ++j) acc[j] = Op::merge(acc[j], Op::of(x[j]));
      } else {
        for (int64_t j = 0; j < tile.columns; ++j) acc[j] = Op::merge(acc[j], Op::of(x[j]));
      }
    }
    for (int64_t j = 0; j < tile.columns; ++j) ((T*)args.dst)[tile.dst + j] = (T)finish(acc[j]);
  }
}

template <class T>
NEO_INLINE void fold_integers(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  using U = Unsigned<T>;  // whose sums and products wrap
  const Same same;
  switch (args.kind) {
    case ReduceKind::Max:
      return fold<Largest<T>, T>(args, begin, end, same);
    case ReduceKind::Min: {
      const T most = args.is_truth ? (T)1 : most_of<T>();
      return fold<Smallest<T>, T>(args, begin, end, AtMost<T>{most});
    }
    case ReduceKind::Prod:
      return fold<Times<U>, U>(args, begin, end, same);
    case ReduceKind::SumSquare:
      return fold<Squares<U>, U>(args, begin, end, same);
    case ReduceKind::L1:
      if constexpr (is_signed_type<T>) return fold<Magnitudes<U, T>, U>(args, begin, end, same);
      return fold<Plus<U>, U>(args, begin, end, same);
    case ReduceKind::Mean:
      if constexpr (sizeof(T) < 8) fold<Wide<T>, T>(args, begin, end, MeanOf{args.shape.along});
      return;
    default:
      return fold<Plus<U>, U>(args, begin, end, same);
  }
}

void fold_doubles(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  using T = double;
  const Same same;
  switch (args.kind) {
    case ReduceKind::Max:
      return fold<Largest<T>, T>(args, begin, end, same);
    case ReduceKind::Min:
      return fold<Smallest<T>, T>(args, begin, end, same);
    case ReduceKind::Prod:
      return fold<Times<T>, T>(args, begin, end, same);
    case ReduceKind::SumSquare:
      return fold<Squares<T>, T>(args, begin, end, same);
    case ReduceKind::L2:
      return fold<Squares<T>, T>(args, begin, end, RootOf());
    case ReduceKind::L1:
      return fold<Magnitudes<T>, T>(args, begin, end, same);
    case ReduceKind::LogSum:
      return fold<Plus<T>, T>(args, begin, end, LogOf());
    case ReduceKind::Mean:
      return fold<Plus<T>, T>(args, begin, end, MeanOf{args.shape.along});
    default:
      return fold<Plus<T>, T>(args, begin, end, same);
  }
}

// The extreme first, then where it is: both in vectors.
template <bool largest, class T>
int64_t find_in_row(const T* x, int64_t n, bool last) {
  constexpr int64_t kShort = 16, kChunk = 64;
  if (n < kShort) return find_one_by_one<largest>(x, n, 1, last);
  T best;
  if constexpr (largest) {
    best = fold_row<Largest<T>>(x, n);
  } else {
    best = fold_row<Smallest<T>>(x, n);
  }
  if (best != best) return find_one_by_one<largest>(x, n, 1, last);
  const auto has = [&](int64_t from, int64_t count) NEO_LAMBDA {
    int equal = 0;
    for (int64_t j = 0; j < count; ++j) equal |= x[from + j] == best;
    return equal != 0;
  };
  if (last) {
    int64_t end = n;
    while (end > kChunk && !has(end - kChunk, kChunk)) end -= kChunk;
    while (x[end - 1] != best) --end;
    return end - 1;
  }
  int64_t begin = 0;
  while (begin + kChunk < n && !has(begin, kChunk)) begin += kChunk;
  while (x[begin] != best) ++begin;
  return begin;
}

// Positions are counted in lanes no wider than they must be.
template <bool largest, class T>
void find_in_columns(const T* x, int64_t along, int64_t stride, int64_t columns, bool last, int64_t* dst) {
  if (along > INT32_MAX) {
    for (int64_t j = 0; j < columns; ++j) dst[j] = find_one_by_one<largest>(x + j, along, stride, last);
    return;
  }
  T best[kReduceColumns];
  int32_t at[kReduceColumns] = {};
  for (int64_t j = 0; j < columns; ++j) best[j] = x[j];
  const auto take = [&](const T* row, int32_t i, int64_t count) NEO_LAMBDA {
    for (int64_t j = 0; j < count; ++j) {
      const bool better = last ? !is_better<largest>(best[j], row[j]) : is_better<largest>(row[j], best[j]);
      best[j] = better ? row[j] : best[j];
      at[j] = better ? i : at[j];
    }
  };
  for (int64_t i = 1; i < along; ++i) {
    const T* row = x + i * stride;
    // A number of columns that is known is what loops are vectorized for.
    if (columns == kReduceColumns) {
      take(row, (int32_t)i, kReduceColumns);
    } else {
      take(row, (int32_t)i, columns);
    }
  }
  for (int64_t j = 0; j < columns; ++j) dst[j] = at[j];
}

template <bool largest, class T>
NEO_KERNEL find(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  find_positions<T>(args, begin, end, find_in_row<largest, T>, find_in_columns<largest, T>);
}

template <class T>
NEO_INLINE void find_either(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  if (args.kind == ReduceKind::ArgMax) return find<true, T>(args, begin, end);
  find<false, T>(args, begin, end);
}

}  // namespace

void typed_reduce_tasks(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  const bool is_position = args.kind == ReduceKind::ArgMax || args.kind == ReduceKind::ArgMin;
  if (args.lane == Lane::F32) return float_positions(args, begin, end);
  if (args.lane == Lane::F64)
    return is_position ? find_either<double>(args, begin, end) : fold_doubles(args, begin, end);
  by_integer(args.lane, [&]<class T>(Type<T>) NEO_LAMBDA {
    is_position ? find_either<T>(args, begin, end) : fold_integers<T>(args, begin, end);
  });
}

}  // namespace neo::NEO_ISA
