#include "routines/cpu/reduce/scan.h"

#include "routines/cpu/eltwise/typed_loops.h"
#include "routines/cpu/reduce/reduce_tile.h"

namespace neo::NEO_ISA {
namespace {

template <bool product, class A>
NEO_INLINE A scanned(A sum, A x) {
  return product ? sum * x : sum + x;
}

// `rows` rows side by side, since each element of a row waits for the one before.
template <bool product, class T, class A, int rows>
NEO_INLINE void scan_rows(const T* x, T* y, int64_t n, bool exclusive, bool reverse) {
  A sum[rows];
  for (int r = 0; r < rows; ++r) sum[r] = product ? (A)1 : (A)0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = reverse ? n - 1 - i : i;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const A before = sum[r];
      sum[r] = scanned<product>(before, (A)x[r * n + at]);
      y[r * n + at] = (T)(exclusive ? before : sum[r]);
    }
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
  constexpr int kRows = 4;
  const ReduceShape& s = args.shape;
  const T* src = (const T*)args.src;
  T* dst = (T*)args.dst;
  for (int64_t task = begin; task < end; ++task) {
    if (s.inner == 1) {
      int64_t i = task * s.rows_per_task;
      const int64_t last = i + s.rows_per_task < s.outer ? i + s.rows_per_task : s.outer;
      for (; i + kRows <= last; i += kRows)
        scan_rows<product, T, A, kRows>(src + i * s.along, dst + i * s.along, s.along, args.exclusive, args.reverse);
      for (; i < last; ++i)
        scan_rows<product, T, A, 1>(src + i * s.along, dst + i * s.along, s.along, args.exclusive, args.reverse);
      continue;
    }
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
