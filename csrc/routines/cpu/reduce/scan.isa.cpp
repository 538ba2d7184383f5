#include "routines/cpu/reduce/scan.h"

#include "routines/cpu/eltwise/typed_loops.h"
#include "routines/cpu/reduce/reduce_tile.h"

namespace neo::NEO_ISA {
namespace {

template <bool product, class A>
NEO_INLINE A scanned(A sum, A x) {
  return product ? sum * x : sum + x;
}

// Rows of elements that are `step` apart, each from a place of its own.
template <class T>
struct ScanRows {
  const T* x;
  T* y;
  int64_t n, step;
  bool exclusive, reverse;
};

// `rows` rows side by side, since each element of a row waits for the one before.
template <bool product, class T, class A, int rows>
__attribute__((noinline)) void scan_rows(const ScanRows<T>& t, const int64_t* first) {
  A sum[rows];
  const T* from[rows];
  T* to[rows];
  const int64_t last = t.reverse ? (t.n - 1) * t.step : 0, move = t.reverse ? -t.step : t.step, n = t.n;
  const bool exclusive = t.exclusive;
  for (int r = 0; r < rows; ++r) {
    sum[r] = product ? (A)1 : (A)0;
    from[r] = t.x + first[r] + last;
    to[r] = t.y + first[r] + last;
  }
  for (int64_t i = 0, at = 0; i < n; ++i, at += move) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const A before = sum[r];
      sum[r] = scanned<product>(before, (A)from[r][at]);
      to[r][at] = (T)(exclusive ? before : sum[r]);
    }
  }
}

// Rows [begin, end) of all, of which as many as a step has begin side by side.
template <bool product, class T, class A>
NEO_INLINE void scan_all_rows(const ScanRows<T>& t, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  constexpr int64_t kShort = 4;  // elements, which a call is not worth
  if (t.n <= kShort && t.step == 1) {
    for (int64_t row = begin; row < end; ++row) {
      A sum = product ? (A)1 : (A)0;
      for (int64_t i = 0; i < t.n; ++i) {
        const int64_t at = row * t.n + (t.reverse ? t.n - 1 - i : i);
        const A before = sum;
        sum = scanned<product>(before, (A)t.x[at]);
        t.y[at] = (T)(t.exclusive ? before : sum);
      }
    }
    return;
  }
  for (int64_t row = begin; row < end;) {
    const int64_t count = end - row < kRows ? end - row : kRows;
    int64_t first[kRows];
    for (int64_t r = 0; r < count; ++r) {
      const int64_t block = (row + r) / t.step;
      first[r] = block * t.n * t.step + (row + r - block * t.step);
    }
    switch (count) {
      case 4:
        scan_rows<product, T, A, 4>(t, first);
        break;
      case 3:
        scan_rows<product, T, A, 3>(t, first);
        break;
      case 2:
        scan_rows<product, T, A, 2>(t, first);
        break;
      default:
        scan_rows<product, T, A, 1>(t, first);
    }
    row += count;
  }
}

template <bool product, class T, class A>
NEO_INLINE void scan_columns(const T* x, T* y, int64_t n, int64_t stride, int64_t columns, bool exclusive,
                             bool reverse) {
  A sum[kReduceColumns];
  for (int64_t j = 0; j < kReduceColumns; ++j) sum[j] = product ? (A)1 : (A)0;
  const auto step = [&](const T* from, T* to, int64_t count) NEO_LAMBDA {
    if (exclusive) {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        const A before = sum[j];
        sum[j] = scanned<product>(before, (A)from[j]);
        to[j] = (T)before;
      }
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        sum[j] = scanned<product>(sum[j], (A)from[j]);
        to[j] = (T)sum[j];
      }
    }
  };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = (reverse ? n - 1 - i : i) * stride;
    // A number of columns that is known is what loops are vectorized for.
    if (columns == kReduceColumns) {
      step(x + at, y + at, kReduceColumns);
    } else {
      step(x + at, y + at, columns);
    }
  }
}

template <bool product, class T, class A>
NEO_KERNEL scan(const ScanArgs& args, int64_t begin, int64_t end) {
  constexpr int64_t kFewColumns = 8;  // that are rows of elements apart
  const ReduceShape& s = args.shape;
  const T* src = (const T*)args.src;
  T* dst = (T*)args.dst;
  if (s.inner <= kFewColumns) {
    const int64_t of_task = s.inner == 1 ? s.rows_per_task : s.inner, all = s.outer * s.inner;
    const int64_t last = end * of_task < all ? end * of_task : all;
    return scan_all_rows<product, T, A>({src, dst, s.along, s.inner, args.exclusive, args.reverse}, begin * of_task,
                                        last);
  }
  for (int64_t task = begin; task < end; ++task) {
    const ReduceTile tile = ReduceTile::of(s, task);
    scan_columns<product, T, A>(src + tile.src, dst + tile.src, s.along, s.inner, tile.columns, args.exclusive,
                                args.reverse);
  }
}

template <class T, class A>
NEO_INLINE void scan_either(const ScanArgs& args, int64_t begin, int64_t end) {
  args.product ? scan<true, T, A>(args, begin, end) : scan<false, T, A>(args, begin, end);
}

}  // namespace

// Sums of float32 are held in double, as long rows need them. Integers wrap.
void scan_tasks(const ScanArgs& args, int64_t begin, int64_t end) {
  switch (args.lane) {
    case Lane::F32:
      return scan_either<float, double>(args, begin, end);
    case Lane::F64:
      return scan_either<double, double>(args, begin, end);
    case Lane::I32:
    case Lane::U32:
      return scan_either<uint32_t, uint32_t>(args, begin, end);
    default:
      return scan_either<uint64_t, uint64_t>(args, begin, end);
  }
}

}  // namespace neo::NEO_ISA
