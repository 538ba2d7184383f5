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

Work determinant_work(const Node& node) {
  const Value* x = node.inputs.front();
  if (!x->shape().has_rank()) return {};
  return {x->shape().element_count() * x->shape().dims().back(),
          x->shape().element_count() * Dim(item_bytes(x->dtype()))};
}

}  // namespace

void add_determinant_ops(OpRegistry& ops) {
  ops.add({.name = "Det", .infer = infer_determinant, .reference = reference_determinant, .work = determinant_work});
}

}  // namespace neo
