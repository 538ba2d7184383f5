#include "routines/cpu/tables/tables.h"

#include "simd/math.h"
#include "simd/pack.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

template <int rows, int vectors, bool distance>
NEO_INLINE void product_block(const TableProductArgs& a, int64_t r, int64_t c) {
  F32 sums[rows][vectors];
  for (int v = 0; v < vectors; ++v) {
    for (int i = 0; i < rows; ++i) sums[i][v] = load(a.bias + c + v * kLanes);
  }
  const float* x = a.x + r * a.features;
  const float* w = a.weights + c;
  for (int64_t k = 0; k < a.features; ++k, w += a.columns) {
    for (int v = 0; v < vectors; ++v) {
      const F32 weight = load(w + v * kLanes);
      for (int i = 0; i < rows; ++i) {
        const F32 element = broadcast(x[i * a.features + k]);
        if (distance) {
          const F32 difference = element - weight;
          sums[i][v] = fma(difference, difference, sums[i][v]);
        } else {
          sums[i][v] = fma(element, weight, sums[i][v]);
        }
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) store(a.y + (r + i) * a.columns + c + v * kLanes, sums[i][v]);
  }
}

template <int vectors, bool distance>
NEO_INLINE void product_rows(const TableProductArgs& a, int64_t c) {
  constexpr int kRows = 8 / vectors;
  int64_t r = 0;
  for (; r + kRows <= a.rows; r += kRows) product_block<kRows, vectors, distance>(a, r, c);
  for (; r < a.rows; ++r) product_block<1, vectors, distance>(a, r, c);
}

template <bool distance>
NEO_INLINE void product(const TableProductArgs& a) {
  int64_t c = 0;
  for (; c + 2 * kLanes <= a.columns; c += 2 * kLanes) product_rows<2, distance>(a, c);
  for (; c < a.columns; c += kLanes) product_rows<1, distance>(a, c);
}

template <int rows>
NEO_INLINE void dot_block(const float* x, int64_t features, const float* w, float bias, float* y, int64_t stride) {
  F32 sums[rows];
  for (int i = 0; i < rows; ++i) sums[i] = zero();
  int64_t k = 0;
  for (; k + kLanes <= features; k += kLanes) {
    const F32 weight = load(w + k);
    for (int i = 0; i < rows; ++i) sums[i] = fma(load(x + i * features + k), weight, sums[i]);
  }
  if (k < features) {
    const F32 weight = load_n(w + k, features - k);
    for (int i = 0; i < rows; ++i) sums[i] = fma(load_n(x + i * features + k, features - k), weight, sums[i]);
  }
  for (int i = 0; i < rows; ++i) y[i * stride] = reduce_add(sums[i]) + bias;
}

template <TableKernel kernel, class V>
NEO_INLINE V kernel_of(V x, float gamma, float coef0) {
  if constexpr (kernel == TableKernel::Rbf) return exp(x * constant<V>(-gamma));
  const V base = fma(x, constant<V>(gamma), constant<V>(coef0));
  if constexpr (kernel == TableKernel::Sigmoid) return tanh(base);
  return base;
}

// Several vectors at once where there are registers for them.
template <TableKernel kernel>
NEO_INLINE void apply_kernel(const TableKernelArgs& a) {
  int64_t i = 0;
  for (; i + kPackVectors * kLanes <= a.count; i += kPackVectors * kLanes) {
    Pack<kPackVectors> x;
    for (int v = 0; v < kPackVectors; ++v) x.v[v] = load(a.x + i + v * kLanes);
    x = kernel_of<kernel>(x, a.gamma, a.coef0);
    for (int v = 0; v < kPackVectors; ++v) store(a.x + i + v * kLanes, x.v[v]);
  }
  for (; i < a.count; i += kLanes) store(a.x + i, kernel_of<kernel>(load(a.x + i), a.gamma, a.coef0));
}

NEO_INLINE void softmax(float* x, int64_t width) {
  float largest = x[0];
  for (int64_t i = 1; i < width; ++i) largest = x[i] > largest ? x[i] : largest;
  F32 sums = zero();
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t n = width - i < kLanes ? width - i : kLanes;
    store_n(x + i, exp(load_n(x + i, n) - broadcast(largest)), n);
    sums = sums + load_n(x + i, n);
  }
  const float sum = reduce_add(sums);
  for (int64_t i = 0; i < width; ++i) x[i] /= sum;
}

// Squares and cubes, which LIBSVM's users have, need no logarithm.
NEO_INLINE void raise(const TableKernelArgs& a) {
  const F32 degree = broadcast(a.degree);
  for (int64_t i = 0; i < a.count; i += kLanes) {
    const F32 base = load(a.x + i);
    store(a.x + i, a.degree == 2 ? base * base : a.degree == 3 ? base * base * base : pow(base, degree));
  }
}

}  // namespace

void table_dots(const TableProductArgs& a) {
  constexpr int kRows = 4;
  const auto dot_rows = [&](int64_t r, auto block) NEO_LAMBDA {
    for (int64_t c = 0; c < a.columns; ++c) {
      block(a.x + r * a.features, a.features, a.weights + c * a.features, a.bias[c], a.y + r * a.columns + c,
            a.columns);
    }
  };
  int64_t r = 0;
  for (; r + kRows <= a.rows; r += kRows) dot_rows(r, dot_block<kRows>);
  for (; r < a.rows; ++r) dot_rows(r, dot_block<1>);
}

void table_products(const TableProductArgs& a) {
  product<false>(a);
}

void table_distances(const TableProductArgs& a) {
  product<true>(a);
}

void table_kernel(const TableKernelArgs& a) {
  switch (a.kernel) {
    case TableKernel::Rbf:
      return apply_kernel<TableKernel::Rbf>(a);
    case TableKernel::Sigmoid:
      return apply_kernel<TableKernel::Sigmoid>(a);
    case TableKernel::Poly:
      apply_kernel<TableKernel::Poly>(a);
      return raise(a);
    case TableKernel::Linear:
      return;
  }
}

void table_scores(const TableScoresArgs& a) {
  if (!a.softmax) {
    const int64_t count = a.rows * a.width;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(a.scores + i, sigmoid(load(a.scores + i)));
    if (i < count) store_n(a.scores + i, sigmoid(load_n(a.scores + i, count - i)), count - i);
    return;
  }
  for (int64_t r = 0; r < a.rows; ++r) softmax(a.scores + r * a.width, a.width);
}

// Sums are of doubles: squares of what float32 holds are not always in it.
void table_normalize(const TableNormArgs& a) {
  constexpr int kSums = 4;
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.features;
    float* y = a.y + r * a.features;
    double sums[kSums] = {};
    if (a.norm == TableNorm::Max) {
      float largest = x[0];
      for (int64_t i = 1; i < a.features; ++i) largest = x[i] > largest ? x[i] : largest;
      sums[0] = largest;
    } else {
      const bool squares = a.norm == TableNorm::L2;
      int64_t i = 0;
      for (; i + kSums <= a.features; i += kSums) {
        for (int k = 0; k < kSums; ++k) {
          const double element = x[i + k];
          sums[k] += squares ? element * element : __builtin_fabs(element);
        }
      }
      for (; i < a.features; ++i) {
        const double element = x[i];
        sums[0] += squares ? element * element : __builtin_fabs(element);
      }
    }
    double divisor = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (a.norm == TableNorm::L2) divisor = __builtin_sqrt(divisor);
    if (divisor == 0) divisor = 1;
    for (int64_t i = 0; i < a.features; ++i) y[i] = (float)(x[i] / divisor);
  }
}

}  // namespace neo::NEO_ISA
