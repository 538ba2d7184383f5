#include "routines/cpu/tables/tables.h"

#include "simd/math.h"
#include "simd/pack.h"
#include "simd/trigonometry.h"
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

// Dot products of rows from r on with columns from c on.
template <int rows, int columns>
NEO_INLINE void dot_block(const TableProductArgs& a, int64_t r, int64_t c) {
  F32 sums[rows][columns];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) sums[i][j] = zero();
  }
  const float* x = a.x + r * a.features;
  const float* w = a.weights + c * a.features;
  int64_t k = 0;
  for (; k + kLanes <= a.features; k += kLanes) {
    F32 weights[columns];
    for (int j = 0; j < columns; ++j) weights[j] = load(w + j * a.features + k);
    for (int i = 0; i < rows; ++i) {
      const F32 elements = load(x + i * a.features + k);
      for (int j = 0; j < columns; ++j) sums[i][j] = fma(elements, weights[j], sums[i][j]);
    }
  }
  if (const int64_t n = a.features - k; n > 0) {
    F32 weights[columns];
    for (int j = 0; j < columns; ++j) weights[j] = load_n(w + j * a.features + k, n);
    for (int i = 0; i < rows; ++i) {
      const F32 elements = load_n(x + i * a.features + k, n);
      for (int j = 0; j < columns; ++j) sums[i][j] = fma(elements, weights[j], sums[i][j]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) a.y[(r + i) * a.columns + c + j] = reduce_add(sums[i][j]) + a.bias[c + j];
  }
}

template <int rows>
NEO_INLINE void dot_rows(const TableProductArgs& a, int64_t r) {
  int64_t c = 0;
  for (; c + 2 <= a.columns; c += 2) dot_block<rows, 2>(a, r, c);
  if (c < a.columns) dot_block<rows, 1>(a, r, c);
}

template <TableKernel kernel>
struct KernelOf {
  static constexpr TableKernel kValue = kernel;
};

template <TableKernel kernel, class V>
NEO_INLINE V kernel_of(V x, float gamma, float coef0) {
  if constexpr (kernel == TableKernel::Rbf) return exp(x * constant<V>(-gamma));
  const V base = fma(x, constant<V>(gamma), constant<V>(coef0));
  if constexpr (kernel == TableKernel::Sigmoid) return tanh(base);
  return base;
}

// f() of every element, several vectors at once where there are registers for them.
template <class F>
NEO_INLINE void map_all(float* x, int64_t count, const F& f) {
  constexpr int64_t kStep = kPackVectors * kLanes;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    Pack<kPackVectors> pack;
    for (int v = 0; v < kPackVectors; ++v) pack.v[v] = load(x + i + v * kLanes);
    pack = f(pack);
    for (int v = 0; v < kPackVectors; ++v) store(x + i + v * kLanes, pack.v[v]);
  }
  for (; i + kLanes <= count; i += kLanes) store(x + i, f(load(x + i)));
  if (i < count) store_n(x + i, f(load_n(x + i, count - i)), count - i);
}

NEO_INLINE float sum_of(const float* x, int64_t width) {
  float rest = 0;
  int64_t i = 0;
  if (width >= kLanes) {
    F32 sums = zero();
    for (; i + kLanes <= width; i += kLanes) sums = sums + load(x + i);
    rest = reduce_add(sums);
  }
  for (; i < width; ++i) rest += x[i];
  return rest;
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
  int64_t r = 0;
  for (; r + kRows <= a.rows; r += kRows) dot_rows<kRows>(a, r);
  for (; r < a.rows; ++r) dot_rows<1>(a, r);
}

void table_products(const TableProductArgs& a) {
  product<false>(a);
}

void table_distances(const TableProductArgs& a) {
  product<true>(a);
}

void table_kernel(const TableKernelArgs& a) {
  const auto apply = [&](auto kernel) NEO_LAMBDA {
    map_all(a.x, a.count, [&](auto x) NEO_LAMBDA { return kernel_of<decltype(kernel)::kValue>(x, a.gamma, a.coef0); });
  };
  switch (a.kernel) {
    case TableKernel::Rbf:
      return apply(KernelOf<TableKernel::Rbf>());
    case TableKernel::Sigmoid:
      return apply(KernelOf<TableKernel::Sigmoid>());
    case TableKernel::Poly:
      apply(KernelOf<TableKernel::Poly>());
      return raise(a);
    case TableKernel::Linear:
      return;
  }
}

void table_scores(const TableScoresArgs& a) {
  const int64_t count = a.rows * a.width;
  if (!a.softmax) return map_all(a.scores, count, [](auto x) NEO_LAMBDA { return sigmoid(x); });
  for (float* x = a.scores; x != a.scores + count; x += a.width) {
    float largest = x[0];
    for (int64_t i = 1; i < a.width; ++i) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < a.width; ++i) x[i] -= largest;
  }
  map_all(a.scores, count, [](auto x) NEO_LAMBDA { return exp(x); });
  for (float* x = a.scores; x != a.scores + count; x += a.width) {
    const float sum = sum_of(x, a.width);
    for (int64_t i = 0; i < a.width; ++i) x[i] /= sum;
  }
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
