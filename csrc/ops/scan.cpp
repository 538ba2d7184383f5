#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// CumSum and CumProd

void infer_cumulative(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_dtype(ctx, 1, DTypeClass::Integer);
  infer_same(ctx);
  const auto axis = ctx.constant_ints(1);
  if (axis && axis->size() == 1 && ctx.ranked(0)) ctx.axis(axis->front(), ctx.shape(0).rank());
}

template <class T, class Fold>
void accumulate_lines(std::vector<T>& x, const AxisView& view, const Node& node, T initial, const Fold& fold) {
  const bool exclusive = node.int_attr("exclusive", 0) != 0;
  const bool reverse = node.int_attr("reverse", 0) != 0;
  for (int64_t line = 0; line < view.lines(); ++line) {
    T* elements = x.data() + view.start(line);
    T sum = initial;
    for (int64_t i = 0; i < view.size; ++i) {
      T& element = elements[(reverse ? view.size - 1 - i : i) * view.inner];
      const T before = sum;
      sum = fold(sum, element);
      element = exclusive ? before : sum;
    }
  }
}

void reference_cumulative(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const DType dtype = ctx.input(0).dtype();
  const AxisView view(dims, ctx.axis(scalar_int(ctx, 1), static_cast<int>(dims.size())));
  const bool product = ctx.node().op == "CumProd";
  const Tensor& y = ctx.output(0, dtype, dims);
  if (is_integer(dtype)) {
    auto x = ctx.ints(0);
    accumulate_lines<int64_t>(x, view, ctx.node(), product ? 1 : 0, product ? wrap_multiply : wrap_add);
    return store_ints(y, x);
  }
  auto x = ctx.doubles(0);
  accumulate_lines<double>(x, view, ctx.node(), product ? 1 : 0,
                           [product](double a, double b) { return product ? a * b : a + b; });
  store_doubles(y, x);
}

// TopK

void infer_top_k(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_dtype(ctx, 1, DTypeClass::Integer);
  Shape shape = ctx.shape(0);
  if (shape.has_rank()) {
    std::vector<Dim> dims = shape.dims();
    const int axis = ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size()));
    Dim& size = dims[static_cast<size_t>(axis)];
    if (const auto k = scalar_contents(ctx, 1)) {
      ctx.require_less_equal(0, *k, "k must not be negative");
      ctx.require_less_equal(*k, size, "k must not exceed the axis");
      size = *k;
    } else {
      size = ctx.fresh("topk", {0, size.range().hi});
    }
    shape = Shape(std::move(dims));
  }
  ctx.set_output(0, ctx.dtype(0), shape);
  ctx.set_output(1, DType::Int64, shape);
}

// The positions of the first k elements of every line in the order of `before`, lower positions first among equals.
template <class T, class Before>
std::vector<int64_t> first_positions(const std::vector<T>& x, const AxisView& view, int64_t k, const Before& before) {
  auto positions = make_scratch<int64_t>(view.lines() * k);
  auto order = make_scratch<int64_t>(view.size);
  for (int64_t line = 0; line < view.lines(); ++line) {
    const T* elements = x.data() + view.start(line);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      const T& left = elements[a * view.inner];
      const T& right = elements[b * view.inner];
      return before(left, right) || (!before(right, left) && a < b);
    });
    const int64_t start = line / view.inner * k * view.inner + line % view.inner;
    for (int64_t i = 0; i < k; ++i) {
      positions[static_cast<size_t>(start + i * view.inner)] = order[static_cast<size_t>(i)];
    }
  }
  return positions;
}

// NaN counts as the largest number.
bool real_less(double a, double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

template <class T>
std::vector<T> picked(const std::vector<T>& x, const AxisView& view, int64_t k, const std::vector<int64_t>& positions) {
  std::vector<T> result(positions.size());
  for (int64_t i = 0; i < static_cast<int64_t>(positions.size()); ++i) {
    const int64_t outer = i / (k * view.inner);
    const int64_t position = positions[static_cast<size_t>(i)];
    result[static_cast<size_t>(i)] =
        x[static_cast<size_t>((outer * view.size + position) * view.inner + i % view.inner)];
  }
  return result;
}

void reference_top_k(ReferenceContext& ctx) {
  Dims dims = ctx.input(0).dims();
  const DType dtype = ctx.input(0).dtype();
  const int axis = ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size()));
  const AxisView view(dims, axis);
  const int64_t k = scalar_int(ctx, 1);
  ctx.check(k >= 0 && k <= view.size, str("k must lie inside the axis. Got ", k, ", expected 0 to ", view.size));
  dims[static_cast<size_t>(axis)] = k;
  const bool largest = ctx.node().int_attr("largest", 1) != 0;
  std::vector<int64_t> positions;
  if (is_integer(dtype)) {
    const auto x = ctx.ints(0);
    positions = first_positions(
        x, view, k, [=](int64_t a, int64_t b) { return largest ? int_less(dtype, b, a) : int_less(dtype, a, b); });
    if (ctx.has_output(0)) store_ints(ctx.output(0, dtype, dims), picked(x, view, k, positions));
  } else {
    const auto x = ctx.doubles(0);
    positions =
        first_positions(x, view, k, [=](double a, double b) { return largest ? real_less(b, a) : real_less(a, b); });
    if (ctx.has_output(0)) store_doubles(ctx.output(0, dtype, dims), picked(x, view, k, positions));
  }
  if (ctx.has_output(1)) store_ints(ctx.output(1, DType::Int64, dims), positions);
}

Work top_k_work(const Node& node) {
  return {Dim(8) * element_count_or_zero(node.input(0)), operand_bytes(node)};
}

}  // namespace

void add_scan_ops(OpRegistry& ops) {
  for (const char* name : {"CumSum", "CumProd"}) {
    ops.add(
        {.name = name, .min_inputs = 2, .max_inputs = 2, .infer = infer_cumulative, .reference = reference_cumulative});
  }
  ops.add({.name = "TopK",
           .min_inputs = 2,
           .max_inputs = 2,
           .max_outputs = 2,
           .infer = infer_top_k,
           .reference = reference_top_k,
           .work = top_k_work,
           .shape_inputs = {1}});
}

}  // namespace neo
