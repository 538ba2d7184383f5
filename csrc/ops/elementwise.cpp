#include "ops/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Unary functions

struct Unary {
  std::string_view name;
  double (*real)(double);
  int64_t (*whole)(DType, int64_t);  // null: floating point only, or by way of double
  bool integers = false;             // integers are allowed
};

double sign(double x) {
  return std::isnan(x) ? x : (x > 0) - (x < 0);
}

int64_t whole_sign(DType dtype, int64_t x) {
  return dtype == DType::UInt64 ? x != 0 : (x > 0) - (x < 0);
}

int64_t whole_negate(DType, int64_t x) {
  return wrap_subtract(0, x);
}

constexpr std::array kUnary = {
    Unary{"Abs", [](double x) { return std::fabs(x); }, whole_abs, true},
    Unary{"Acos", [](double x) { return std::acos(x); }, nullptr},
    Unary{"Acosh", [](double x) { return std::acosh(x); }, nullptr},
    Unary{"Asin", [](double x) { return std::asin(x); }, nullptr},
    Unary{"Asinh", [](double x) { return std::asinh(x); }, nullptr},
    Unary{"Atan", [](double x) { return std::atan(x); }, nullptr},
    Unary{"Atanh", [](double x) { return std::atanh(x); }, nullptr},
    Unary{"Ceil", [](double x) { return std::ceil(x); }, nullptr},
    Unary{"Cos", [](double x) { return std::cos(x); }, nullptr},
    Unary{"Cosh", [](double x) { return std::cosh(x); }, nullptr},
    Unary{"Erf", [](double x) { return std::erf(x); }, nullptr, true},
    Unary{"Exp", [](double x) { return std::exp(x); }, nullptr},
    Unary{"Floor", [](double x) { return std::floor(x); }, nullptr},
    Unary{"Log", [](double x) { return std::log(x); }, nullptr},
    Unary{"Neg", [](double x) { return -x; }, whole_negate, true},
    Unary{"Reciprocal", [](double x) { return 1.0 / x; }, nullptr},
    Unary{"Round", [](double x) { return std::nearbyint(x); }, nullptr},
    Unary{"Sign", sign, whole_sign, true},
    Unary{"Sin", [](double x) { return std::sin(x); }, nullptr},
    Unary{"Sinh", [](double x) { return std::sinh(x); }, nullptr},
    Unary{"Sqrt", [](double x) { return std::sqrt(x); }, nullptr},
    Unary{"Tan", [](double x) { return std::tan(x); }, nullptr},
};

const Unary& get_unary(const Node& node) {
  const auto* found =
      std::find_if(kUnary.begin(), kUnary.end(), [&](const Unary& unary) { return unary.name == node.op; });
  NEO_ASSERT(found != kUnary.end(), node.op);
  return *found;
}

void infer_unary(InferContext& ctx) {
  check_dtype(ctx, 0, get_unary(ctx.node()).integers ? DTypeClass::Number : DTypeClass::Float);
  infer_same(ctx);
}

// Neg, of sizes too.
void infer_negate(InferContext& ctx) {
  infer_unary(ctx);
  auto contents = shape_contents(ctx, 0);
  if (!contents || !is_signed(ctx.dtype(0))) return;
  for (Dim& dim : *contents) {
    const auto negated = unless_overflow([](DType, const Dim& a, const Dim& b) { return std::optional(a - b); },
                                         ctx.dtype(0), Dim(0), dim);
    if (!negated) return;
    dim = *negated;
  }
  ctx.set_contents(0, std::move(*contents));
}

void reference_unary(ReferenceContext& ctx) {
  const Unary& unary = get_unary(ctx.node());
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, dtype, ctx.input(0).dims());
  if (unary.whole && is_integer(dtype)) {
    auto elements = ctx.ints(0);
    for (int64_t& x : elements) x = unary.whole(dtype, x);
    return store_ints(y, elements);
  }
  auto elements = ctx.doubles(0);
  for (double& x : elements) x = unary.real(x);
  store_doubles(y, elements);
}

// Binary arithmetic

struct Binary {
  std::string_view name;
  RealBinary real;
  WholeBinary whole;
  SizeBinary size;
};

std::optional<Dim> divide_sizes(DType, const Dim& a, const Dim& b) {
  if (a.range().lo < 0 || b.range().lo < 1) return std::nullopt;
  return floordiv(a, b);
}

constexpr std::array kBinary = {
    Binary{"Add", [](double a, double b) { return a + b; }, [](DType, int64_t a, int64_t b) { return wrap_add(a, b); },
           [](DType, const Dim& a, const Dim& b) { return std::optional(a + b); }},
    Binary{"Sub", [](double a, double b) { return a - b; },
           [](DType, int64_t a, int64_t b) { return wrap_subtract(a, b); },
           [](DType, const Dim& a, const Dim& b) { return std::optional(a - b); }},
    Binary{"Mul", [](double a, double b) { return a * b; },
           [](DType, int64_t a, int64_t b) { return wrap_multiply(a, b); },
           [](DType, const Dim& a, const Dim& b) { return std::optional(a * b); }},
    Binary{"Div", [](double a, double b) { return a / b; }, int_divide, divide_sizes},
};

const Binary& get_binary(const Node& node) {
  const auto* found =
      std::find_if(kBinary.begin(), kBinary.end(), [&](const Binary& binary) { return binary.name == node.op; });
  NEO_ASSERT(found != kBinary.end(), node.op);
  return *found;
}

void infer_arithmetic(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_same_dtype(ctx, 0, 1);
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
  infer_binary_contents(ctx, 0, 1, get_binary(ctx.node()).size);
}

void reference_arithmetic(ReferenceContext& ctx) {
  const Binary& binary = get_binary(ctx.node());
  reference_binary(ctx, binary.real, binary.whole);
}

// Mod

double floor_modulo(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

int64_t whole_remainder(DType dtype, int64_t a, int64_t b) {
  return wrap_subtract(a, wrap_multiply(int_divide(dtype, a, b), b));
}

int64_t whole_modulo(DType dtype, int64_t a, int64_t b) {
  const int64_t r = whole_remainder(dtype, a, b);
  return dtype != DType::UInt64 && r != 0 && b != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::optional<Dim> modulo_of_sizes(DType, const Dim& a, const Dim& b) {
  if (a.range().lo < 0 || b.range().lo < 1) return std::nullopt;
  return mod(a, b);
}

void infer_mod(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_same_dtype(ctx, 0, 1);
  const int64_t fmod = ctx.node().int_attr("fmod", 0);
  ctx.check(fmod == 0 || fmod == 1, str("attribute fmod must be 0 or 1. Got ", fmod));
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
  infer_binary_contents(ctx, 0, 1, modulo_of_sizes);
}

void reference_mod(ReferenceContext& ctx) {
  if (ctx.node().int_attr("fmod", 0) != 0) {
    return reference_binary(
        ctx, [](double a, double b) { return std::fmod(a, b); }, whole_remainder);
  }
  reference_binary(ctx, floor_modulo, whole_modulo);
}

// Pow

int64_t whole_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = wrap_multiply(result, base);
    base = wrap_multiply(base, base);
  }
  return result;
}

void infer_pow(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_dtype(ctx, 1, DTypeClass::Number);
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
}

void reference_pow(ReferenceContext& ctx) {
  const Dims dims = broadcast_all_dims(ctx);
  const Tensor& y = ctx.output(0, ctx.input(0).dtype(), dims);
  if (is_integer(ctx.input(0).dtype()) && is_integer(ctx.input(1).dtype())) {
    auto base = broadcast_ints(ctx, 0, dims);
    const auto exponent = broadcast_ints(ctx, 1, dims);
    for (size_t i = 0; i < base.size(); ++i) base[i] = whole_power(base[i], exponent[i]);
    return store_ints(y, base);
  }
  auto base = broadcast_doubles(ctx, 0, dims);
  const auto exponent = broadcast_doubles(ctx, 1, dims);
  for (size_t i = 0; i < base.size(); ++i) base[i] = std::pow(base[i], exponent[i]);
  store_doubles(y, base);
}

// Max, Min, Sum, Mean: any number of operands

double larger_of(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

double smaller_of(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}

struct Variadic {
  std::string_view name;
  RealBinary real;
  WholeBinary whole;  // null: floating point only
  SizeBinary size;
};

constexpr std::array kVariadic = {
    Variadic{"Max", larger_of, [](DType dtype, int64_t a, int64_t b) { return int_less(dtype, a, b) ? b : a; },
             [](DType, const Dim& a, const Dim& b) { return std::optional(larger(a, b)); }},
    Variadic{"Min", smaller_of, [](DType dtype, int64_t a, int64_t b) { return int_less(dtype, b, a) ? b : a; },
             [](DType, const Dim& a, const Dim& b) { return std::optional(smaller(a, b)); }},
    Variadic{"Sum", [](double a, double b) { return a + b; }, nullptr, nullptr},
    Variadic{"Mean", [](double a, double b) { return a + b; }, nullptr, nullptr},
};

const Variadic& get_variadic(const Node& node) {
  const auto* found = std::find_if(kVariadic.begin(), kVariadic.end(),
                                   [&](const Variadic& variadic) { return variadic.name == node.op; });
  NEO_ASSERT(found != kVariadic.end(), node.op);
  return *found;
}

void infer_variadic(InferContext& ctx) {
  const Variadic& variadic = get_variadic(ctx.node());
  check_dtype(ctx, 0, variadic.whole ? DTypeClass::Number : DTypeClass::Float);
  Shape shape = ctx.shape(0);
  for (int i = 1; i < ctx.input_count(); ++i) {
    check_same_dtype(ctx, 0, i);
    shape = ctx.broadcast(shape, ctx.shape(i));
  }
  ctx.set_output(0, ctx.dtype(0), std::move(shape));
  if (variadic.size && ctx.input_count() == 2) infer_binary_contents(ctx, 0, 1, variadic.size);
}

void reference_variadic(ReferenceContext& ctx) {
  const Variadic& variadic = get_variadic(ctx.node());
  const Dims dims = broadcast_all_dims(ctx);
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, dtype, dims);
  if (variadic.whole && is_integer(dtype)) {
    auto result = broadcast_ints(ctx, 0, dims);
    for (int i = 1; i < ctx.input_count(); ++i) {
      const auto operand = broadcast_ints(ctx, i, dims);
      for (size_t j = 0; j < result.size(); ++j) result[j] = variadic.whole(dtype, result[j], operand[j]);
    }
    return store_ints(y, result);
  }
  auto result = broadcast_doubles(ctx, 0, dims);
  for (int i = 1; i < ctx.input_count(); ++i) {
    const auto operand = broadcast_doubles(ctx, i, dims);
    for (size_t j = 0; j < result.size(); ++j) result[j] = variadic.real(result[j], operand[j]);
  }
  if (ctx.node().op == "Mean") {
    for (double& x : result) x /= ctx.input_count();
  }
  store_doubles(y, result);
}

Work variadic_work(const Node& node) {
  return {element_count_or_zero(node.output(0)) * Dim(static_cast<int64_t>(node.inputs.size())), operand_bytes(node)};
}

// Clip

void infer_clip(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  for (int i = 1; i <= 2; ++i) {
    if (!ctx.has_input(i)) continue;
    check_same_dtype(ctx, 0, i);
    if (ctx.ranked(i)) {
      ctx.require_equal(ctx.shape(i).element_count(), 1, "min and max must hold one element");
    }
  }
  infer_same(ctx);
  auto contents = shape_contents(ctx, 0);
  if (!contents) return;
  const auto bound = [&](int i, const std::function<Dim(const Dim&, const Dim&)>& apply) {
    if (!ctx.has_input(i)) return true;
    const auto limit = scalar_contents(ctx, i);
    if (!limit) return false;
    for (Dim& dim : *contents) dim = apply(dim, *limit);
    return true;
  };
  if (bound(1, larger) && bound(2, smaller)) ctx.set_contents(0, std::move(*contents));
}

void reference_clip(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, dtype, ctx.input(0).dims());
  if (is_integer(dtype)) {
    auto elements = ctx.ints(0);
    if (ctx.has_input(1)) {
      const int64_t low = scalar_int(ctx, 1);
      for (int64_t& x : elements) x = int_less(dtype, x, low) ? low : x;
    }
    if (ctx.has_input(2)) {
      const int64_t high = scalar_int(ctx, 2);
      for (int64_t& x : elements) x = int_less(dtype, high, x) ? high : x;
    }
    return store_ints(y, elements);
  }
  auto elements = ctx.doubles(0);
  if (ctx.has_input(1)) {
    const double low = scalar_double(ctx, 1);
    for (double& x : elements) x = x < low ? low : x;
  }
  if (ctx.has_input(2)) {
    const double high = scalar_double(ctx, 2);
    for (double& x : elements) x = x > high ? high : x;
  }
  store_doubles(y, elements);
}

}  // namespace

std::optional<Dim> unless_overflow(SizeBinary size, DType dtype, const Dim& a, const Dim& b) {
  try {
    return size(dtype, a, b);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Shape) throw;
    return std::nullopt;
  }
}

void infer_binary_contents(InferContext& ctx, int a, int b, SizeBinary size) {
  const DType dtype = ctx.dtype(a);
  if (dtype != DType::Int64 && dtype != DType::Int32) return;
  const auto left = shape_contents(ctx, a);
  const auto right = shape_contents(ctx, b);
  if (!left || !right) return;
  if (left->size() != right->size() && left->size() != 1 && right->size() != 1) return;
  std::vector<Dim> contents;
  const size_t count = left->size() == 1 ? right->size() : left->size();
  for (size_t i = 0; i < count; ++i) {
    const auto element =
        unless_overflow(size, dtype, (*left)[left->size() == 1 ? 0 : i], (*right)[right->size() == 1 ? 0 : i]);
    if (!element) return;
    if (dtype == DType::Int32 && element->is_constant() &&
        (element->value() < integer_min(dtype) || element->value() > integer_max(dtype))) {
      return;
    }
    contents.push_back(*element);
  }
  ctx.set_contents(0, std::move(contents));
}

void reference_binary(ReferenceContext& ctx, RealBinary real, WholeBinary whole) {
  const Dims dims = broadcast_all_dims(ctx);
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, dtype, dims);
  if (!is_float(dtype)) {
    auto left = broadcast_ints(ctx, 0, dims);
    const auto right = broadcast_ints(ctx, 1, dims);
    for (size_t i = 0; i < left.size(); ++i) left[i] = whole(dtype, left[i], right[i]);
    return store_ints(y, left);
  }
  auto left = broadcast_doubles(ctx, 0, dims);
  const auto right = broadcast_doubles(ctx, 1, dims);
  for (size_t i = 0; i < left.size(); ++i) left[i] = real(left[i], right[i]);
  store_doubles(y, left);
}

void add_elementwise_ops(OpRegistry& ops) {
  for (const Unary& unary : kUnary) {
    ops.add({.name = std::string(unary.name),
             .layout = LayoutClass::Oblivious,
             .infer = unary.name == "Neg" ? infer_negate : infer_unary,
             .reference = reference_unary});
  }
  for (const Binary& binary : kBinary) {
    ops.add({.name = std::string(binary.name),
             .min_inputs = 2,
             .max_inputs = 2,
             .layout = LayoutClass::Oblivious,
             .infer = infer_arithmetic,
             .reference = reference_arithmetic});
  }
  for (const Variadic& variadic : kVariadic) {
    ops.add({.name = std::string(variadic.name),
             .max_inputs = -1,
             .layout = LayoutClass::Oblivious,
             .infer = infer_variadic,
             .reference = reference_variadic,
             .work = variadic_work});
  }
  ops.add({.name = "Mod",
           .min_inputs = 2,
           .max_inputs = 2,
           .layout = LayoutClass::Oblivious,
           .infer = infer_mod,
           .reference = reference_mod});
  ops.add({.name = "Pow",
           .min_inputs = 2,
           .max_inputs = 2,
           .layout = LayoutClass::Oblivious,
           .infer = infer_pow,
           .reference = reference_pow});
  ops.add({.name = "Clip",
           .max_inputs = 3,
           .layout = LayoutClass::Oblivious,
           .infer = infer_clip,
           .reference = reference_clip});
}

}  // namespace neo
