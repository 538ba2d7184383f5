#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

void infer_determinant(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  ctx.check(dims.size() >= 2, str("the matrices must have two axes. Got rank ", dims.size()));
  ctx.require_equal(dims[dims.size() - 2], dims.back(), "the matrices must be square");
  dims.resize(dims.size() - 2);
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

// Elimination with the largest element of each column as its pivot; `m` is overwritten.
double determinant(double* m, int64_t n) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      checkpoint();
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    }
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      product = -product;
    }
    product *= m[k * n + k];
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / m[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return product;
}

void reference_determinant(ReferenceContext& ctx) {
  Dims dims = ctx.input(0).dims();
  const int64_t n = dims.back();
  ctx.check(dims[dims.size() - 2] == n, str("the matrices must be square. Got ", to_string(dims)));
  dims.resize(dims.size() - 2);
  const Tensor& y = ctx.output(0, ctx.input(0).dtype(), dims);
  std::vector<double> x = ctx.doubles(0);
  auto results = make_scratch<double>(y.size());
  for (size_t i = 0; i < results.size(); ++i) results[i] = determinant(x.data() + static_cast<int64_t>(i) * n * n, n);
  store_doubles(y, results);
}

// com.microsoft.Inverse

void infer_inverse(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  if (!ctx.ranked(0)) return;
  const auto& dims = ctx.shape(0).dims();
  ctx.check(dims.size() >= 2, str("the matrices must have two axes. Got rank ", dims.size()));
  ctx.require_equal(dims[dims.size() - 2], dims.back(), "the matrices must be square");
}

// Gauss-Jordan elimination with the largest element of each column as its pivot, in place: the columns that become
// those of the identity make room for the inverse. A singular matrix gives infinities and NaN.
void invert(double* m, int64_t n) {
  std::vector<int64_t> pivots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    checkpoint();
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    }
    pivots[static_cast<size_t>(k)] = pivot;
    if (pivot != k) std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
    const double scale = 1 / m[k * n + k];
    m[k * n + k] = 1;
    for (int64_t j = 0; j < n; ++j) m[k * n + j] *= scale;
    for (int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = m[i * n + k];
      m[i * n + k] = 0;
      for (int64_t j = 0; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    const int64_t pivot = pivots[static_cast<size_t>(k)];
    for (int64_t i = 0; i < n && pivot != k; ++i) std::swap(m[i * n + k], m[i * n + pivot]);
  }
}

void reference_inverse(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const int64_t n = dims.back();
  ctx.check(dims.size() >= 2 && dims[dims.size() - 2] == n, str("the matrices must be square. Got ", to_string(dims)));
  std::vector<double> x = ctx.doubles(0);
  for (size_t at = 0; at < x.size(); at += static_cast<size_t>(n * n)) invert(x.data() + at, n);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
}

Work determinant_work(const Node& node) {
  const Value* x = node.inputs.front();
  if (!x->shape().has_rank()) return {};
  return {x->shape().element_count() * x->shape().dims().back(),
          x->shape().element_count() * Dim(item_bytes(x->dtype()))};
}

}  // namespace

void add_determinant_ops(OpRegistry& ops) {
  ops.add({.name = "Det", .infer = infer_determinant, .reference = reference_determinant, .work = determinant_work});
  ops.add({.name = "com.microsoft.Inverse",
           .infer = infer_inverse,
           .reference = reference_inverse,
           .work = determinant_work});
}

}  // namespace neo
