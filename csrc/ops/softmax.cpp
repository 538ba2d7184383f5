#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

void infer_softmax(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  if (ctx.ranked(0)) ctx.axis(ctx.node().int_attr("axis", -1), ctx.shape(0).rank());
}

// Rewrites every line along the axis in place.
template <class Rewrite>
void rewrite_lines(ReferenceContext& ctx, const Rewrite& rewrite) {
  const Dims dims = ctx.input(0).dims();
  const AxisView view(dims, ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size())));
  auto x = ctx.doubles(0);
  auto line = make_scratch<double>(view.size);
  for (int64_t i = 0; i < view.lines() && view.size > 0; ++i) {
    double* elements = x.data() + view.start(i);
    for (size_t j = 0; j < line.size(); ++j) line[j] = elements[static_cast<int64_t>(j) * view.inner];
    rewrite(line);
    for (size_t j = 0; j < line.size(); ++j) elements[static_cast<int64_t>(j) * view.inner] = line[j];
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x);
}

void reference_softmax(ReferenceContext& ctx) {
  rewrite_lines(ctx, [](std::vector<double>& line) {
    const double largest = *std::max_element(line.begin(), line.end());
    double sum = 0;
    for (double& x : line) sum += x = std::exp(x - largest);
    for (double& x : line) x /= sum;
  });
}

void reference_log_softmax(ReferenceContext& ctx) {
  rewrite_lines(ctx, [](std::vector<double>& line) {
    const double largest = *std::max_element(line.begin(), line.end());
    double sum = 0;
    for (const double x : line) sum += std::exp(x - largest);
    for (double& x : line) x = x - largest - std::log(sum);
  });
}

void reference_hardmax(ReferenceContext& ctx) {
  rewrite_lines(ctx, [](std::vector<double>& line) {
    const auto largest = std::max_element(line.begin(), line.end()) - line.begin();
    std::fill(line.begin(), line.end(), 0.0);
    line[static_cast<size_t>(largest)] = 1.0;
  });
}

Work softmax_work(const Node& node) {
  return {Dim(5) * element_count_or_zero(node.input(0)), operand_bytes(node)};
}

}  // namespace

void add_softmax_ops(OpRegistry& ops) {
  const auto add = [&ops](const char* name, auto reference) {
    ops.add({.name = name, .infer = infer_softmax, .reference = reference, .work = softmax_work});
  };
  add("Softmax", reference_softmax);
  add("LogSoftmax", reference_log_softmax);
  add("Hardmax", reference_hardmax);
}

}  // namespace neo
