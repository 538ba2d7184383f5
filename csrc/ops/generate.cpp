#include "ops/generate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/signal_window.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// More elements than this are not kept as expressions.
constexpr int64_t kMaxGenerated = 256;

// Constant

Tensor constant_value(const Node& node) {
  if (const Tensor* value = node.tensor_attr("value")) return *value;
  if (node.has_attr("value_int")) {
    const int64_t value = node.int_attr("value_int", 0);
    return Tensor::from<int64_t>(DType::Int64, {}, std::span(&value, 1));
  }
  if (node.has_attr("value_float")) {
    const auto value = static_cast<float>(node.float_attr("value_float", 0));
    return Tensor::from<float>(DType::Float32, {}, std::span(&value, 1));
  }
  if (node.has_attr("value_string")) {
    const std::string value = node.string_attr("value_string", "");
    return Tensor::from<std::string>(DType::String, {}, std::span(&value, 1));
  }
  if (node.has_attr("value_ints")) {
    const auto values = node.ints_attr("value_ints");
    return Tensor::from<int64_t>(DType::Int64, {static_cast<int64_t>(values.size())}, values);
  }
  if (node.has_attr("value_floats")) {
    const auto values = node.floats_attr("value_floats");
    const std::vector<float> rounded(values.begin(), values.end());
    return Tensor::from<float>(DType::Float32, {static_cast<int64_t>(values.size())}, rounded);
  }
  NEO_CHECK(node.has_attr("value_strings"), Model, node.op, "one attribute must hold the value. Got none - at ",
            node.place());
  const auto values = node.strings_attr("value_strings");
  return Tensor::from<std::string>(DType::String, {static_cast<int64_t>(values.size())}, values);
}

void infer_constant(InferContext& ctx) {
  const Tensor value = constant_value(ctx.node());
  ctx.set_output(0, value.dtype(), Shape::of(value.dims()));
  if (is_integer(value.dtype()) && value.rank() <= 1 && value.size() <= kMaxGenerated) {
    const auto elements = load_ints(value);
    ctx.set_contents(0, {elements.begin(), elements.end()});
  }
}

void reference_constant(ReferenceContext& ctx) {
  const Tensor value = constant_value(ctx.node());
  copy_tensor(value, ctx.output(0, value.dtype(), value.dims()));
}

// neo.Dims: the expressions of attribute `dims` as int64; with `scalar` the only one, of rank 0.

const std::vector<Dim>& dims_attr(const Node& node) {
  const auto found = node.attrs.find("dims");
  const auto* dims = found == node.attrs.end() ? nullptr : std::get_if<std::vector<Dim>>(&found->second);
  NEO_CHECK(dims != nullptr, Model, node.op, "attribute dims must be a list of sizes - at ", node.place());
  NEO_CHECK(node.int_attr("scalar", 0) == 0 || dims->size() == 1, Model, node.op, "a scalar must be one size. Got ",
            dims->size(), " - at ", node.place());
  return *dims;
}

void infer_dims(InferContext& ctx) {
  const auto& dims = dims_attr(ctx.node());
  const bool scalar = ctx.node().int_attr("scalar", 0) != 0;
  ctx.set_output(0, dtype_attr(ctx.node(), "dtype", DType::Int64),
                 scalar ? Shape::of({}) : Shape::of({static_cast<int64_t>(dims.size())}));
  ctx.set_contents(0, dims);
}

void reference_dims(ReferenceContext& ctx) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims_attr(ctx.node())) {
    if (!dim.is_constant()) {
      ctx.fail(ErrorKind::Internal, str("symbols have no values outside a binding. Got ", dim.to_string()));
    }
    sizes.push_back(dim.value());
  }
  const bool scalar = ctx.node().int_attr("scalar", 0) != 0;
  store_ints(ctx.output(0, dtype_attr(ctx.node(), "dtype", DType::Int64),
                        scalar ? Dims{} : Dims{static_cast<int64_t>(sizes.size())}),
             sizes);
}

// ConstantOfShape

Tensor fill_value(const Node& node) {
  if (const Tensor* value = node.tensor_attr("value")) {
    NEO_CHECK(value->size() == 1, Model, node.op, "value must hold one element. Got ", to_string(value->dims()),
              " - at ", node.place());
    return *value;
  }
  const float zero = 0;
  return Tensor::from<float>(DType::Float32, {1}, std::span(&zero, 1));
}

void infer_constant_of_shape(InferContext& ctx) {
  const Tensor value = fill_value(ctx.node());
  const auto target = shape_contents(ctx, 0);
  if (!target) {
    const auto rank = constant_length(ctx, 0);
    return ctx.set_output(0, value.dtype(), rank ? Shape(fresh_dims(ctx, *rank, "size")) : Shape());
  }
  for (const Dim& dim : *target) ctx.require_less_equal(0, dim, "a size must not be negative");
  const Shape result(*target);
  ctx.set_output(0, value.dtype(), result);
  if (!is_integer(value.dtype()) || result.rank() > 1 || !result.is_static()) return;
  const int64_t count = element_count(result.to_dims());
  if (count > kMaxGenerated) return;
  ctx.set_contents(0, std::vector<Dim>(static_cast<size_t>(count), Dim(load_int64(value.dtype(), value.data()))));
}

void reference_constant_of_shape(ReferenceContext& ctx) {
  const Tensor value = fill_value(ctx.node());
  const Tensor& y = ctx.output(0, value.dtype(), ctx.ints(0));
  fill_elements(value.dtype(), y.data(), 0, y.size(), value.data());
}

// Range

}  // namespace

int64_t range_count(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  NEO_CHECK(count <= static_cast<double>(kMaxExtent), Shape, "Range", "the range must be finite. Got ", start, " to ",
            limit, " by ", delta);
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

int64_t range_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  return static_cast<int64_t>((distance - 1) / step + 1);
}

namespace {

void infer_range(InferContext& ctx) {
  const DType dtype = ctx.dtype(0);
  for (int i = 1; i < 3; ++i) {
    ctx.check(ctx.dtype(i) == dtype,
              str("start, limit and delta must have one element type. Got ", name(dtype), " and ", name(ctx.dtype(i))));
  }
  const auto start = scalar_contents(ctx, 0);
  const auto limit = scalar_contents(ctx, 1);
  const auto delta = scalar_contents(ctx, 2);
  if (start && limit && delta && delta->is_constant() && std::abs(static_cast<double>(delta->value())) <= kMaxExtent) {
    const int64_t step = delta->value();
    ctx.check(step != 0, "delta must not be 0");
    const Dim span = step > 0 ? *limit - *start : *start - *limit;
    const Dim count = larger(0, step == 1 || step == -1 ? span : ceildiv(span, std::abs(step)));
    ctx.set_output(0, dtype, Shape({count}));
    if (!count.is_constant() || count.value() > kMaxGenerated) return;
    std::vector<Dim> contents;
    for (int64_t i = 0; i < count.value(); ++i) contents.push_back(*start + Dim(i * step));
    return ctx.set_contents(0, std::move(contents));
  }
  const Tensor* constants[] = {ctx.constant(0), ctx.constant(1), ctx.constant(2)};
  if (std::all_of(std::begin(constants), std::end(constants),
                  [](const Tensor* t) { return t != nullptr && t->size() == 1; })) {
    double numbers[3];
    for (int i = 0; i < 3; ++i) numbers[i] = load_double(dtype, constants[i]->data());
    ctx.check(numbers[2] != 0, "delta must not be 0");
    return ctx.set_output(0, dtype, Shape::of({range_count(numbers[0], numbers[1], numbers[2])}));
  }
  ctx.set_output(0, dtype, Shape({ctx.fresh("range")}));
}

void reference_range(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  if (!is_float(dtype)) {
    const int64_t start = scalar_int(ctx, 0);
    const int64_t delta = scalar_int(ctx, 2);
    ctx.check(delta != 0, "delta must not be 0");
    const int64_t count = range_count(start, scalar_int(ctx, 1), delta);
    auto elements = make_scratch<int64_t>(count);
    for (int64_t i = 0; i < count; ++i) {
      elements[static_cast<size_t>(i)] =
          static_cast<int64_t>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    }
    return store_ints(ctx.output(0, dtype, {count}), elements);
  }
  const double start = scalar_double(ctx, 0);
  const double delta = scalar_double(ctx, 2);
  ctx.check(delta != 0, "delta must not be 0");
  const int64_t count = range_count(start, scalar_double(ctx, 1), delta);
  auto elements = make_scratch<double>(count);
  // Every operation is rounded to the type it happens in: float32 for the 16-bit types unless stash_type says
  // otherwise.
  const bool narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
  const DType stash = narrow && ctx.node().int_attr("stash_type", 1) == 1 ? DType::Float32 : dtype;
  const auto rounded = [stash](double x) {
    alignas(8) char element[8];
    store_double(stash, element, x);
    return load_double(stash, element);
  };
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = rounded(start + rounded(static_cast<double>(i) * delta));
  store_doubles(ctx.output(0, dtype, {count}), elements);
}

// EyeLike

void infer_eye_like(InferContext& ctx) {
  ctx.check_rank(0, 2);
  ctx.set_output(0, dtype_attr(ctx.node(), "dtype", ctx.dtype(0)), ctx.shape(0));
}

void reference_eye_like(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  ctx.check(dims.size() == 2, str("the input must have a rank of 2. Got ", to_string(dims)));
  const int64_t k = ctx.node().int_attr("k", 0);
  auto elements = make_scratch<int64_t>(dims[0] * dims[1], 0);
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (k >= -i && k < dims[1] - i) elements[static_cast<size_t>(i * dims[1] + i + k)] = 1;
  }
  store_ints(ctx.output(0, dtype_attr(ctx.node(), "dtype", ctx.input(0).dtype()), dims), elements);
}

constexpr SignalWindow kWindows[] = {
    {"HannWindow", 0.5, -0.5, 0.0},
    {"HammingWindow", 25.0 / 46.0, 25.0 / 46.0 - 1.0, 0.0},
    {"BlackmanWindow", 0.42, -0.5, 0.08},
};

void infer_window(InferContext& ctx) {
  const auto size = scalar_contents(ctx, 0);
  if (size) ctx.require_less_equal(0, *size, "size must not be negative");
  ctx.set_output(0, dtype_attr(ctx.node(), "output_datatype", DType::Float32),
                 Shape({size ? *size : ctx.fresh("window")}));
}

void reference_window(ReferenceContext& ctx) {
  const SignalWindow& window = signal_window(ctx.node().op);
  const int64_t size = scalar_int(ctx, 0);
  ctx.check(size >= 0, str("size must not be negative. Got ", size));
  const bool periodic = ctx.node().int_attr("periodic", 1) != 0;
  const auto length = static_cast<double>(std::max<int64_t>(1, periodic ? size : size - 1));
  auto elements = make_scratch<double>(size, 1.0);
  for (size_t n = 0; n < elements.size() && size > 1; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / length;
    elements[n] = window.a + window.b * std::cos(angle) + window.c * std::cos(2 * angle);
  }
  if (periodic && size == 1) elements[0] = window.a + window.b + window.c;
  store_doubles(ctx.output(0, dtype_attr(ctx.node(), "output_datatype", DType::Float32), {size}), elements);
}

}  // namespace

const SignalWindow& signal_window(std::string_view op) {
  return *std::find_if(std::begin(kWindows), std::end(kWindows), [=](const SignalWindow& w) { return w.op == op; });
}

void add_generate_ops(OpRegistry& ops) {
  ops.add({.name = "Constant",
           .min_inputs = 0,
           .max_inputs = 0,
           .infer = infer_constant,
           .reference = reference_constant,
           .work = no_work});
  ops.add({.name = "neo.Dims",
           .min_inputs = 0,
           .max_inputs = 0,
           .infer = infer_dims,
           .reference = reference_dims,
           .work = no_work});
  ops.add({.name = "ConstantOfShape",
           .infer = infer_constant_of_shape,
           .reference = reference_constant_of_shape,
           .work = movement_work,
           .shape_inputs = {0}});
  ops.add({.name = "Range", .min_inputs = 3, .max_inputs = 3, .infer = infer_range, .reference = reference_range});
  ops.add({.name = "EyeLike",
           .infer = infer_eye_like,
           .reference = reference_eye_like,
           .work = movement_work,
           .shape_inputs = {0}});
  for (const SignalWindow& window : kWindows) {
    ops.add(
        {.name = std::string(window.op), .infer = infer_window, .reference = reference_window, .shape_inputs = {0}});
  }
}

}  // namespace neo
