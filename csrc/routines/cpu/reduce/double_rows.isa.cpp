// Softmax and normalisations of float64.

#include "routines/cpu/reduce/reduce_tile.h"
#include "routines/cpu/reduce/typed_fold.h"
#include "simd/math64.h"

namespace neo::NEO_ISA {
namespace {

void softmax_row(const double* x, double* y, int64_t n, bool logarithm) {
  const double top = fold_row<Largest<double>>(x, n);
  if (logarithm) {
    // y may be x: the powers are in a buffer, a part at a time.
    constexpr int64_t kPart = 256;
    double powers[kPart], total = 0;
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - top;
    for (int64_t begin = 0; begin < n; begin += kPart) {
      const int64_t count = n - begin < kPart ? n - begin : kPart;
      for (int64_t i = 0; i < count; ++i) powers[i] = exp(y[begin + i]);
      total += fold_row<Plus<double>>(powers, count);
    }
    const double shift = log(total);
    for (int64_t i = 0; i < n; ++i) y[i] -= shift;
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = exp(x[i] - top);
  const double inverse = 1.0 / fold_row<Plus<double>>(y, n);
  for (int64_t i = 0; i < n; ++i) y[i] *= inverse;
}

NEO_INLINE void softmax_tile(const double* x, double* y, int64_t n, int64_t stride, int64_t columns, bool logarithm) {
  double top[kReduceColumns], total[kReduceColumns];
  for (int64_t j = 0; j < columns; ++j) {
    top[j] = -INFINITY;
    total[j] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) top[j] = Largest<double>::merge(top[j], x[i * stride + j]);
  }
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      const double e = exp(x[i * stride + j] - top[j]);
      total[j] += e;
      if (!logarithm) y[i * stride + j] = e;
    }
  }
  for (int64_t j = 0; j < columns; ++j) total[j] = logarithm ? log(total[j]) : 1.0 / total[j];
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      double& to = y[i * stride + j];
      to = logarithm ? x[i * stride + j] - top[j] - total[j] : to * total[j];
    }
  }
}

// A number of columns that is known is what loops are vectorized for.
void softmax_columns(const double* x, double* y, int64_t n, int64_t stride, int64_t columns, bool logarithm) {
  if (columns == kReduceColumns) {
    logarithm ? softmax_tile(x, y, n, stride, kReduceColumns, true)
              : softmax_tile(x, y, n, stride, kReduceColumns, false);
  } else {
    softmax_tile(x, y, n, stride, columns, logarithm);
  }
}

NEO_INLINE double squares_about(const double* x, int64_t n, double mean) {
  constexpr int kWidth = kAccumulators<double>;
  double acc[kWidth] = {};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int g = 0; g < kWidth; ++g) acc[g] += (x[i + g] - mean) * (x[i + g] - mean);
  }
  for (int g = 0; i < n; ++i, ++g) acc[g] += (x[i] - mean) * (x[i] - mean);
  return fold_row<Plus<double>>(acc, kWidth);
}

void norm_row(const DoubleNormArgs& args, int64_t row) {
  const int64_t n = args.shape.along;
  const double* x = args.src + row * n;
  double* y = args.dst + row * n;
  const double mean = args.centred ? fold_row<Plus<double>>(x, n) / (double)n : 0.0;
  const double inverse = 1.0 / __builtin_sqrt(squares_about(x, n, mean) / (double)n + args.epsilon);
  if (args.mean) args.mean[row] = mean;
  if (args.inverse_deviation) args.inverse_deviation[row] = inverse;
  if (args.channels > 0) {
    const int64_t channels_of_row = n / args.span;
    for (int64_t c = 0; c < channels_of_row; ++c) {
      const int64_t channel = (row * channels_of_row + c) % args.channels, first = c * args.span;
      const double scale = inverse * (args.scale ? args.scale[channel] : 1.0);
      const double bias = args.bias ? args.bias[channel] : 0.0;
      for (int64_t i = first; i < first + args.span; ++i) y[i] = (x[i] - mean) * scale + bias;
    }
    return;
  }
  if (args.scale && args.bias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * args.scale[i] + args.bias[i];
  } else if (args.scale) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * args.scale[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse;
  }
}

// f(row) for the rows of tasks of a shape whose `inner` is 1.
template <class F>
NEO_INLINE void for_each_row(const ReduceShape& s, int64_t begin, int64_t end, F f) {
  const int64_t last = end * s.rows_per_task < s.outer ? end * s.rows_per_task : s.outer;
  for (int64_t row = begin * s.rows_per_task; row < last; ++row) f(row);
}

}  // namespace

void double_softmax_tasks(const DoubleSoftmaxArgs& args, int64_t begin, int64_t end) {
  const ReduceShape& s = args.shape;
  if (s.inner == 1) {
    return for_each_row(s, begin, end, [&](int64_t row) NEO_LAMBDA {
      softmax_row(args.src + row * s.along, args.dst + row * s.along, s.along, args.logarithm);
    });
  }
  for (int64_t task = begin; task < end; ++task) {
    const ReduceTile tile = ReduceTile::of(s, task);
    softmax_columns(args.src + tile.src, args.dst + tile.src, s.along, s.inner, tile.columns, args.logarithm);
  }
}

void double_norm_tasks(const DoubleNormArgs& args, int64_t begin, int64_t end) {
  for_each_row(args.shape, begin, end, [&](int64_t row) NEO_LAMBDA { norm_row(args, row); });
}

}  // namespace neo::NEO_ISA
