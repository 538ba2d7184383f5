#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/activation.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/pool.h"
#include "ops/quantize.h"
#include "ops/sizes.h"

// Microsoft's operators on codes with a scale and a zero point beside every tensor.

namespace neo {

namespace {

std::vector<double> real_elements(const ReferenceContext& ctx, int input, const TensorScale& scale) {
  auto elements = ctx.doubles(input);
  for (double& element : elements) element = scale.real(element);
  return elements;
}

// QLinearAdd and QLinearMul (a, scale, zero, b, scale, zero, y scale, zero)

void infer_qlinear_binary(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  check_same_dtype(ctx, 0, 3);
  for (const int i : {1, 2, 4, 5, 6, 7}) require_scalar(ctx, i);
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(3)));
}

void reference_qlinear_binary(ReferenceContext& ctx) {
  const Dims dims = broadcast_dims(ctx, ctx.input(0).dims(), ctx.input(3).dims());
  const TensorScale a_scale = read_scale(ctx, 1, 2);
  const TensorScale b_scale = read_scale(ctx, 4, 5);
  const TensorScale y_scale = read_scale(ctx, 6, 7);
  auto a = broadcast_doubles(ctx, 0, dims);
  const auto b = broadcast_doubles(ctx, 3, dims);
  const Tensor& y = ctx.output(0, ctx.input(0).dtype(), dims);
  // Scales are divided before they multiply, as kernels do.
  const double a_steps = as_float(a_scale.scale / y_scale.scale);
  const double b_steps = as_float(b_scale.scale / y_scale.scale);
  const double product_steps = as_float(as_float(a_scale.scale * b_scale.scale) / y_scale.scale);
  const bool add = ctx.node().op == "com.microsoft.QLinearAdd";
  for (size_t i = 0; i < a.size(); ++i) {
    const double left = a[i] - a_scale.zero_point;
    const double right = b[i] - b_scale.zero_point;
    const double steps = add ? as_float(left * a_steps) + as_float(right * b_steps) : left * right * product_steps;
    a[i] = quantize_steps(y.dtype(), as_float(steps), y_scale.zero_point);
  }
  store_doubles(y, a);
}

// QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax (x, scale, zero, y scale, zero)

void infer_qlinear_unary(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  for (int i = 1; i <= 4; ++i) require_scalar(ctx, i);
  infer_same(ctx);
}

void reference_qlinear_unary(ReferenceContext& ctx) {
  auto x = real_elements(ctx, 0, read_scale(ctx, 1, 2));
  const bool leaky = ctx.node().op == "com.microsoft.QLinearLeakyRelu";
  const double alpha = ctx.node().float_attr("alpha", 0.01f);
  for (double& element : x) element = !leaky ? sigmoid(element) : element < 0 ? alpha * element : element;
  store_quantized(ctx.output(0, ctx.input(0).dtype(), ctx.input(0).dims()), read_scale(ctx, 3, 4), x);
}

// Over one axis as from opset 13, or over all axes from `axis` on as before.
void infer_qlinear_softmax(InferContext& ctx) {
  infer_qlinear_unary(ctx);
  if (ctx.ranked(0)) ctx.axis(ctx.node().int_attr("axis", -1), ctx.shape(0).rank());
}

void reference_qlinear_softmax(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", -1), static_cast<int>(dims.size()));
  AxisView view(dims, axis);
  if (ctx.node().int_attr("opset", 13) < 13) {
    view.size *= view.inner;
    view.inner = 1;
  }
  auto x = real_elements(ctx, 0, read_scale(ctx, 1, 2));
  for (int64_t line = 0; line < view.lines(); ++line) {
    double* elements = x.data() + view.start(line);
    double largest = -HUGE_VAL;
    for (int64_t i = 0; i < view.size; ++i) largest = std::max(largest, elements[i * view.inner]);
    double sum = 0;
    for (int64_t i = 0; i < view.size; ++i) {
      double& element = elements[i * view.inner];
      sum += element = std::exp(element - largest);
    }
    for (int64_t i = 0; i < view.size; ++i) elements[i * view.inner] /= sum;
  }
  store_quantized(ctx.output(0, ctx.input(0).dtype(), dims), read_scale(ctx, 3, 4), x);
}

// QLinearAveragePool and QLinearGlobalAveragePool (x, scale, zero, y scale, zero)

bool channels_last(const Node& node) {
  return node.int_attr("channels_last", 0) != 0;
}

void infer_qlinear_pool(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  for (int i = 1; i <= 4; ++i) require_scalar(ctx, i);
  if (channels_last(ctx.node())) {
    ctx.fail(ErrorKind::Unsupported, "a quantized pool must have its channels second. Got channels_last = 1");
  }
  infer_pool(ctx);
}

void reference_qlinear_pool(ReferenceContext& ctx) {
  const PoolSizes sizes = pool_sizes(ctx, ctx.input(0).dims());
  auto sums = sum_windows(sizes, real_elements(ctx, 0, read_scale(ctx, 1, 2)));
  const auto counts = window_counts(sizes, ctx.node().int_attr("count_include_pad", 0) != 0);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double count = counts[i % counts.size()];
    sums[i] = count == 0 ? 0 : sums[i] / count;
  }
  store_quantized(ctx.output(0, ctx.input(0).dtype(), sizes.output_dims()), read_scale(ctx, 3, 4), sums);
}

void infer_qlinear_global_pool(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  for (int i = 1; i <= 4; ++i) require_scalar(ctx, i);
  infer_global_pool(ctx, channels_last(ctx.node()));
}

void reference_qlinear_global_pool(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  ctx.check(dims.size() >= 2, str("the input must have batch and channels. Got ", to_string(dims)));
  const size_t channel_axis = channels_last(ctx.node()) ? dims.size() - 1 : 1;
  Dims output(dims.size(), 1);
  output[0] = dims[0];
  output[channel_axis] = dims[channel_axis];
  const auto x = real_elements(ctx, 0, read_scale(ctx, 1, 2));
  const auto group = broadcast_indices(ctx, output, dims);
  auto mean = make_scratch<double>(element_count(output));
  const double count = static_cast<double>(x.size()) / static_cast<double>(std::max<size_t>(1, mean.size()));
  for (size_t i = 0; i < x.size(); ++i) mean[static_cast<size_t>(group[i])] += x[i] / count;
  store_quantized(ctx.output(0, ctx.input(0).dtype(), output), read_scale(ctx, 3, 4), mean);
}

// QLinearConcat (y scale, y zero, then x, scale, zero of every part)

void infer_qlinear_concat(InferContext& ctx) {
  ctx.check((ctx.input_count() - 2) % 3 == 0,
            str("every part must have a scale and a zero point. Got ", ctx.input_count(), " inputs"));
  const DType dtype = ctx.dtype(2);
  bool ranked = true;
  for (int i = 2; i < ctx.input_count(); i += 3) {
    check_dtype(ctx, i, DTypeClass::Integer);
    check_same_dtype(ctx, 2, i);
    ranked = ranked && ctx.ranked(i);
  }
  if (!ranked) return ctx.set_output(0, dtype, Shape());
  std::vector<Dim> dims = ctx.shape(2).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), static_cast<int>(dims.size()));
  for (int i = 5; i < ctx.input_count(); i += 3) {
    ctx.check_rank(i, static_cast<int>(dims.size()));
    for (int a = 0; a < static_cast<int>(dims.size()); ++a) {
      Dim& dim = dims[static_cast<size_t>(a)];
      dim = a == axis ? dim + ctx.shape(i)[a]
                      : unify(ctx, dim, ctx.shape(i)[a], "parts must agree on the axes that are not joined");
    }
  }
  ctx.set_output(0, dtype, Shape(std::move(dims)));
}

void reference_qlinear_concat(ReferenceContext& ctx) {
  Dims dims = ctx.input(2).dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", 0), static_cast<int>(dims.size()));
  int64_t joined = 0;
  for (int i = 2; i < ctx.input_count(); i += 3) {
    Dims part = ctx.input(i).dims();
    ctx.check(part.size() == dims.size(), str("parts must have one rank. Got ", to_string(part)));
    joined += part[static_cast<size_t>(axis)];
    part[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
    ctx.check(part == dims, str("parts must agree on the axes that are not joined. Got ", to_string(part)));
  }
  dims[static_cast<size_t>(axis)] = joined;
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t row = count_between(dims, axis, static_cast<int>(dims.size()));
  auto y = make_scratch<double>(outer * row);
  int64_t offset = 0;
  for (int i = 2; i < ctx.input_count(); i += 3) {
    const auto x = real_elements(ctx, i, read_scale(ctx, i + 1, i + 2));
    const int64_t run = outer == 0 ? 0 : static_cast<int64_t>(x.size()) / outer;
    for (int64_t o = 0; o < outer; ++o) std::copy_n(x.begin() + o * run, run, y.begin() + o * row + offset);
    offset += run;
  }
  store_quantized(ctx.output(0, ctx.input(2).dtype(), dims), read_scale(ctx, 0, 1), y);
}

}  // namespace

void add_quantized_elementwise_ops(OpRegistry& ops) {
  const auto add = [&ops](const char* name, int min_inputs, int max_inputs, auto infer, auto reference, auto work) {
    ops.add({.name = name,
             .min_inputs = min_inputs,
             .max_inputs = max_inputs,
             .infer = infer,
             .reference = reference,
             .work = work});
  };
  add("com.microsoft.QLinearAdd", 7, 8, infer_qlinear_binary, reference_qlinear_binary, nullptr);
  add("com.microsoft.QLinearMul", 7, 8, infer_qlinear_binary, reference_qlinear_binary, nullptr);
  add("com.microsoft.QLinearSigmoid", 4, 5, infer_qlinear_unary, reference_qlinear_unary, nullptr);
  add("com.microsoft.QLinearLeakyRelu", 4, 5, infer_qlinear_unary, reference_qlinear_unary, nullptr);
  add("com.microsoft.QLinearSoftmax", 5, 5, infer_qlinear_softmax, reference_qlinear_softmax, nullptr);
  add("com.microsoft.QLinearAveragePool", 4, 5, infer_qlinear_pool, reference_qlinear_pool, pool_work);
  add("com.microsoft.QLinearGlobalAveragePool", 5, 5, infer_qlinear_global_pool, reference_qlinear_global_pool,
      input_work);
  add("com.microsoft.QLinearConcat", 5, -1, infer_qlinear_concat, reference_qlinear_concat, nullptr);
}

}  // namespace neo
