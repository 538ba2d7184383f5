#include "routines/cpu/reduce/typed_reduce.h"

#include <math.h>

#include "routines/cpu/reduce/positions.h"
#include "routines/cpu/reduce/typed_fold.h"
#include "simd/math64.h"

namespace neo::NEO_ISA {
namespace {

// Functions that make a result of a sum. Objects of their own, so that dtypes share what differs in nothing else.
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

// A number in a type as Cast has it: integers towards zero, those of 64 bits no further than they reach, and NaN is
// zero.
template <class T>
NEO_INLINE T whole_of(double x) {
  if constexpr (is_real<T>) {
    return x;
  } else if constexpr (sizeof(T) == 8 && !is_signed_type<T>) {
    if (x >= 0x1p64) return ~(T)0;
    if (x >= 0x1p63) return (T)x;
  }
  if (x >= 0x1p63) return (T)INT64_MAX;
  return x < -0x1p63 ? (T)INT64_MIN : x == x ? (T)(int64_t)x : (T)0;
}

template <class Op, class T>
struct Rows {
  static NEO_INLINE typename Op::A fold(const T* x, int64_t n) { return fold_row<Op>(x, n); }
};
// Sums of a block of elements of at most 16 bits fit 32 bits.
template <class T>
requires(sizeof(T) <= 2) struct Rows<Wide<T>, T> {
  static NEO_INLINE int64_t fold(const T* x, int64_t n) {
    constexpr int64_t kBlock = 1 << 15;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i += kBlock) sum += fold_row<Wide<T, int32_t>>(x + i, n - i < kBlock ? n - i : kBlock);
    return sum;
  }
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
        ((T*)args.dst)[i] = (T)(finish(Rows<Op, T>::fold((const T*)args.src + i * s.along, s.along)));
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
    for (int64_t j = 0; j < tile.columns; ++j) ((T*)args.dst)[tile.dst + j] = (T)(finish(acc[j]));
  }
}

struct AllColumns {
  constexpr operator int64_t() const { return kReduceColumns; }
};
// f(columns), which is a constant where it can be: loops over a number that is known are vectors'.
template <class F>
NEO_INLINE void with_columns(int64_t columns, F f) {
  if (columns == kReduceColumns) return f(AllColumns());
  f(columns);
}

// Sums of integers of 64 bits may leave them: those of the high and the low halves do not, of as many as memory holds.
template <class T>
struct HighHalves : Wide<T> {
  static NEO_INLINE int64_t of(T x) { return (int64_t)(x >> 32); }
};
template <class T>
struct LowHalves : Wide<T> {
  static NEO_INLINE int64_t of(T x) { return (int64_t)(uint32_t)x; }
};

template <class T>
NEO_INLINE T mean_of_halves(int64_t high, int64_t low, int64_t count) {
  if (count == 0) return 0;
  return (T)((((__int128)high << 32) + low) / count);
}

template <class T>
NEO_KERNEL fold_wide_means(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t last = first + s.rows_per_task < s.outer ? first + s.rows_per_task : s.outer;
      for (int64_t i = first; i < last; ++i) {
        const T* x = (const T*)args.src + i * s.along;
        ((T*)args.dst)[i] =
            mean_of_halves<T>(fold_row<HighHalves<T>>(x, s.along), fold_row<LowHalves<T>>(x, s.along), s.along);
      }
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    int64_t high[kReduceColumns] = {}, low[kReduceColumns] = {};
    for (int64_t i = 0; i < s.along; ++i) {
      const T* x = (const T*)args.src + tile.src + i * s.inner;
      with_columns(tile.columns, [&](auto columns) NEO_LAMBDA {
        for (int64_t j = 0; j < columns; ++j) {
          high[j] += HighHalves<T>::of(x[j]);
          low[j] += LowHalves<T>::of(x[j]);
        }
      });
    }
    for (int64_t j = 0; j < tile.columns; ++j)
      ((T*)args.dst)[tile.dst + j] = mean_of_halves<T>(high[j], low[j], s.along);
  }
}

// Roots and logarithms of sums, for which elements of any type are loaded as double, a block at a time.
using LoadReals = void (*)(const void* src, int64_t first, int64_t count, double* to);

template <class T>
void load_reals(const void* src, int64_t first, int64_t count, double* to) {
  const T* x = (const T*)src + first;
  with_columns(count, [&](auto columns) NEO_LAMBDA {
    for (int64_t j = 0; j < columns; ++j) to[j] = (double)x[j];
  });
}

NEO_INLINE double finish_exponentials(double top, double sum) {
  return top > -INFINITY && top < INFINITY ? top + log(sum) : top;
}

// log(sum(exp(x))) has the maximum taken out.
__attribute__((noinline)) double real_row(ReduceKind kind, LoadReals load, const void* src, int64_t first, int64_t n) {
  double x[kReduceColumns], top = -INFINITY, sum = 0;
  const auto for_each_block = [&](auto use) NEO_LAMBDA {
    for (int64_t i = 0; i < n; i += kReduceColumns) {
      const int64_t count = n - i < kReduceColumns ? n - i : kReduceColumns;
      load(src, first + i, count, x);
      use(count);
    }
  };
  if (kind != ReduceKind::LogSumExp) {
    for_each_block([&](int64_t count) NEO_LAMBDA { sum += fold_row<Plus<double>>(x, count); });
    return ::log(sum);
  }
  for_each_block([&](int64_t count)
                     NEO_LAMBDA { top = Largest<double>::merge(top, fold_row<Largest<double>>(x, count)); });
  constexpr int kWidth = kAccumulators<double>;
  for_each_block([&](int64_t count) NEO_LAMBDA {
    for (; count % kWidth != 0; ++count) x[count] = -INFINITY;
    for (int64_t i = 0; i < count; i += kWidth) {
      for (int g = 0; g < kWidth; ++g) x[i + g] = exp(x[i + g] - top);
    }
    sum += fold_row<Plus<double>>(x, count);
  });
  return finish_exponentials(top, sum);
}

// Columns from element `first` on, whose elements are `stride` apart.
__attribute__((noinline)) void real_columns(ReduceKind kind, LoadReals load, const void* src, int64_t first,
                                            int64_t along, int64_t stride, int64_t columns, double* y) {
  double x[kReduceColumns] = {}, top[kReduceColumns];
  const auto for_each_row = [&](auto use) NEO_LAMBDA {
    for (int64_t i = 0; i < along; ++i) {
      load(src, first + i * stride, columns, x);
      for (int64_t j = 0; j < kReduceColumns; ++j) use(j);
    }
  };
  for (int64_t j = 0; j < kReduceColumns; ++j) {
    y[j] = 0;
    top[j] = -INFINITY;
  }
  if (kind == ReduceKind::LogSum) {
    for_each_row([&](int64_t j) NEO_LAMBDA { y[j] += x[j]; });
    for (int64_t j = 0; j < columns; ++j) y[j] = ::log(y[j]);
  } else {
    for_each_row([&](int64_t j) NEO_LAMBDA { top[j] = Largest<double>::merge(top[j], x[j]); });
    for_each_row([&](int64_t j) NEO_LAMBDA { y[j] += exp(x[j] - top[j]); });
    for (int64_t j = 0; j < kReduceColumns; ++j) y[j] = finish_exponentials(top[j], y[j]);
  }
}

constexpr int64_t kShortReals = 16;

template <class T>
NEO_KERNEL fold_as_reals(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t last = first + s.rows_per_task < s.outer ? first + s.rows_per_task : s.outer;
      int64_t row = first;
      // Short rows go side by side.
      for (; s.along <= kShortReals && row + kReduceColumns <= last; row += kReduceColumns) {
        T columns[kShortReals * kReduceColumns];
        double y[kReduceColumns];
        rows_to_columns((const T*)args.src + row * s.along, s.along, columns);
        real_columns(args.kind, load_reals<T>, columns, 0, s.along, kReduceColumns, kReduceColumns, y);
        for (int64_t r = 0; r < kReduceColumns; ++r) ((T*)args.dst)[row + r] = whole_of<T>(y[r]);
      }
      for (; row < last; ++row)
        ((T*)args.dst)[row] = whole_of<T>(real_row(args.kind, load_reals<T>, args.src, row * s.along, s.along));
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    double y[kReduceColumns];
    real_columns(args.kind, load_reals<T>, args.src, tile.src, s.along, s.inner, tile.columns, y);
    for (int64_t j = 0; j < tile.columns; ++j) ((T*)args.dst)[tile.dst + j] = whole_of<T>(y[j]);
  }
}

// Lengths of vectors of integers, rounded down; at most the dtype's largest number.

// All bits of the magnitudes.
template <class T>
struct Bits : Plus<Unsigned<T>> {
  using U = Unsigned<T>;
  static NEO_INLINE U of(T x) { return is_signed_type<T> && x < (T)0 ? (U)(0 - (U)x) : (U)x; }
  static NEO_INLINE U merge(U a, U b) { return a | b; }
};
template <class T>
struct WideSquares : Wide<T, uint64_t> {
  static NEO_INLINE uint64_t of(T x) {
    const uint64_t magnitude = Bits<T>::of(x);
    return magnitude * magnitude;
  }
};

// Whether 64 bits hold the sum of squares of so many numbers.
NEO_INLINE bool holds_squares(uint64_t bits, int64_t count) {
  return 2 * (64 - __builtin_clzll(bits | 1)) + (64 - __builtin_clzll((uint64_t)count | 1)) < 64;
}

template <class T>
NEO_INLINE T at_most_of(uint64_t x) {
  const auto most = (uint64_t)most_of<T>();
  return (T)(x < most ? x : most);
}

// The root of a sum below 2^63.
template <class T>
NEO_INLINE T whole_root(uint64_t sum) {
  auto root = (uint64_t)__builtin_sqrt((double)sum);
  while (root * root > sum) --root;
  while ((root + 1) * (root + 1) <= sum) ++root;
  return at_most_of<T>(root);
}

template <class T>
__attribute__((noinline)) T long_length(const T* x, int64_t count, int64_t stride) {
  using Sum = unsigned __int128;
  Sum sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Sum magnitude = Bits<T>::of(x[i * stride]);
    if (__builtin_add_overflow(sum, magnitude * magnitude, &sum)) return most_of<T>();
  }
  Sum root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const Sum larger = root | (Sum)1 << bit;
    if (larger * larger <= sum) root = larger;
  }
  return at_most_of<T>((uint64_t)root);
}

template <class T>
NEO_KERNEL fold_lengths(const TypedReduceArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      const int64_t first = task * s.rows_per_task;
      const int64_t last = first + s.rows_per_task < s.outer ? first + s.rows_per_task : s.outer;
      for (int64_t i = first; i < last; ++i) {
        const T* x = (const T*)args.src + i * s.along;
        const bool is_held = holds_squares(fold_row<Bits<T>>(x, s.along), s.along);
        ((T*)args.dst)[i] = is_held ? whole_root<T>(fold_row<WideSquares<T>>(x, s.along)) : long_length(x, s.along, 1);
      }
      continue;
    }
    const ReduceTile tile = ReduceTile::of(s, task);
    const T* columns = (const T*)args.src + tile.src;
    uint64_t sums[kReduceColumns] = {};
    Unsigned<T> bits[kReduceColumns] = {};
    for (int64_t i = 0; i < s.along; ++i) {
      const T* x = columns + i * s.inner;
      with_columns(tile.columns, [&](auto count) NEO_LAMBDA {
        for (int64_t j = 0; j < count; ++j) {
          sums[j] += WideSquares<T>::of(x[j]);
          bits[j] |= Bits<T>::of(x[j]);
        }
      });
    }
    for (int64_t j = 0; j < tile.columns; ++j) {
      const bool is_held = holds_squares(bits[j], s.along);
      ((T*)args.dst)[tile.dst + j] = is_held ? whole_root<T>(sums[j]) : long_length(columns + j, s.along, s.inner);
    }
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
      if constexpr (sizeof(T) < 8) {
        return fold<Wide<T>, T>(args, begin, end, MeanOf{args.shape.along});
      } else if constexpr (is_signed_type<T>) {
        return fold_wide_means<T>(args, begin, end);
      }
      return;
    case ReduceKind::LogSum:
    case ReduceKind::LogSumExp:
      if constexpr (sizeof(T) >= 4) fold_as_reals<T>(args, begin, end);
      return;
    case ReduceKind::L2:
      if constexpr (sizeof(T) >= 4) fold_lengths<T>(args, begin, end);
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
    case ReduceKind::LogSumExp:
      return fold_as_reals<T>(args, begin, end);
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

template <bool is_last>
struct Last {
  static constexpr bool value = is_last;
};

// Positions of numbers At, which hold them.
template <bool largest, class At, class T>
NEO_INLINE void find_counting(const T* x, int64_t along, int64_t stride, int64_t columns, bool last, int64_t* dst) {
  T best[kReduceColumns] = {};
  At at[kReduceColumns] = {};
  for (int64_t j = 0; j < columns; ++j) best[j] = x[j];
  // The compiler makes no vectors of a loop that asks which of equals is wanted.
  const auto take = [&](const T* row, At i, int64_t count, auto wanted) NEO_LAMBDA {
    for (int64_t j = 0; j < count; ++j) {
      const bool better = wanted.value ? !is_better<largest>(best[j], row[j]) : is_better<largest>(row[j], best[j]);
      best[j] = better ? row[j] : best[j];
      at[j] = better ? i : at[j];
    }
  };
  for (int64_t i = 1; i < along; ++i) {
    const T* row = x + i * stride;
    // A number of columns that is known is what loops are vectorized for.
    with_columns(columns, [&](auto count) NEO_LAMBDA {
      last ? take(row, (At)i, count, Last<true>()) : take(row, (At)i, count, Last<false>());
    });
  }
  for (int64_t j = 0; j < columns; ++j) dst[j] = at[j];
}

// Positions are counted in lanes as wide as the elements', or twice as wide as bytes.
template <bool largest, class T>
void find_in_columns(const T* x, int64_t along, int64_t stride, int64_t columns, bool last, int64_t* dst) {
  if constexpr (sizeof(T) == 8) {
    find_counting<largest, int64_t>(x, along, stride, columns, last, dst);
  } else if (sizeof(T) < 4 && along <= INT16_MAX) {
    find_counting<largest, int16_t>(x, along, stride, columns, last, dst);
  } else if (along <= INT32_MAX) {
    find_counting<largest, int32_t>(x, along, stride, columns, last, dst);
  } else {
    for (int64_t j = 0; j < columns; ++j) dst[j] = find_one_by_one<largest>(x + j, along, stride, last);
  }
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
