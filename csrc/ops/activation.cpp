#include "ops/activation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// One input, at most two float attributes.
struct Activation {
  std::string_view name;
  std::string_view first;  // attribute of `a`; empty: none
  double first_default;
  std::string_view second;  // attribute of `b`
  double second_default;
  double (*real)(double x, double a, double b);
  int64_t (*whole)(DType dtype, int64_t x, double a, double b) = nullptr;  // null: no integers
};

double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double shrink(double x, double bias, double lambd) {
  if (x < -lambd) return x + bias;
  return x > lambd ? x - bias : 0.0;
}

// A long double holds every int64 and uint64 and its sum with a whole bias. A result outside the type's range wraps.
int64_t whole_shrink(DType dtype, int64_t x, double bias, double lambd) {
  constexpr long double kHalf = 9223372036854775808.0L;
  const bool is_unsigned = dtype == DType::UInt64;
  const auto number = is_unsigned ? static_cast<long double>(static_cast<uint64_t>(x)) : static_cast<long double>(x);
  if (number >= -lambd && number <= lambd) return 0;
  const long double shrunk = number < 0 ? number + bias : number - bias;
  if (shrunk >= kHalf && shrunk < 2 * kHalf) return static_cast<int64_t>(static_cast<uint64_t>(shrunk));
  return shrunk >= -kHalf && shrunk < kHalf ? static_cast<int64_t>(shrunk) : 0;
}

constexpr std::array kActivations = {
    Activation{"Celu", "alpha", 1.0, "", 0,
               [](double x, double a, double) { return std::max(0.0, x) + std::min(0.0, a * std::expm1(x / a)); }},
    Activation{"Elu", "alpha", 1.0, "", 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
    Activation{"HardSigmoid", "alpha", 0.2f, "beta", 0.5,
               [](double x, double a, double b) { return std::max(0.0, std::min(1.0, a * x + b)); }},
    Activation{"HardSwish", "", 0, "", 0,
               [](double x, double, double) { return x * std::max(0.0, std::min(1.0, x / 6.0 + 0.5)); }},
    Activation{"LeakyRelu", "alpha", 0.01f, "", 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    Activation{"Mish", "", 0, "", 0, [](double x, double, double) { return x * std::tanh(softplus(x)); }},
    Activation{"Relu", "", 0, "", 0, [](double x, double, double) { return x < 0 ? 0.0 : x; },
               [](DType dtype, int64_t x, double, double) { return int_less(dtype, x, 0) ? 0 : x; }},
    Activation{"Selu", "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875,
               [](double x, double a, double b) { return b * (x > 0 ? x : a * std::expm1(x)); }},
    Activation{"Shrink", "bias", 0.0, "lambd", 0.5, shrink, whole_shrink},
    Activation{"Sigmoid", "", 0, "", 0, [](double x, double, double) { return sigmoid(x); }},
    Activation{"Softplus", "", 0, "", 0, [](double x, double, double) { return softplus(x); }},
    Activation{"Softsign", "", 0, "", 0, [](double x, double, double) { return x / (1.0 + std::fabs(x)); }},
    Activation{"Swish", "alpha", 1.0, "", 0, [](double x, double a, double) { return x * sigmoid(a * x); }},
    Activation{"Tanh", "", 0, "", 0, [](double x, double, double) { return std::tanh(x); }},
    Activation{"ThresholdedRelu", "alpha", 1.0, "", 0, [](double x, double a, double) { return x > a ? x : 0.0; }},
    Activation{"com.microsoft.QuickGelu", "alpha", 1.702f, "", 0,
               [](double x, double a, double) { return x * sigmoid(a * x); }},
};

const Activation& get_activation(const Node& node) {
  const auto* found = std::find_if(kActivations.begin(), kActivations.end(),
                                   [&](const Activation& activation) { return activation.name == node.op; });
  NEO_ASSERT(found != kActivations.end(), node.op);
  return *found;
}

void infer_activation(InferContext& ctx) {
  check_dtype(ctx, 0, get_activation(ctx.node()).whole ? DTypeClass::Number : DTypeClass::Float);
  infer_same(ctx);
}

void reference_activation(ReferenceContext& ctx) {
  const Activation& activation = get_activation(ctx.node());
  const auto attribute = [&](std::string_view key, double fallback) {
    return key.empty() ? fallback : ctx.node().float_attr(key, fallback);
  };
  const double a = attribute(activation.first, activation.first_default);
  const double b = attribute(activation.second, activation.second_default);
  if (is_integer(ctx.input(0).dtype())) {
    const DType dtype = ctx.input(0).dtype();
    auto elements = ctx.ints(0);
    for (int64_t& x : elements) x = activation.whole(dtype, x, a, b);
    return store_ints(ctx.output(0, dtype, ctx.input(0).dims()), elements);
  }
  auto elements = ctx.doubles(0);
  for (double& x : elements) x = activation.real(x, a, b);
  store_doubles(ctx.output(0, ctx.input(0).dtype(), ctx.input(0).dims()), elements);
}

// Activations named by attributes of other operators

struct Named {
  std::string_view name;
  int parameters;
  double first_default;
  double second_default;
  double (*function)(double x, double a, double b);
};

constexpr std::array kNamed = {
    Named{"", 0, 0, 0, [](double x, double, double) { return x; }},
    Named{"Affine", 2, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    Named{"Clip", 2, -HUGE_VAL, HUGE_VAL, [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
    Named{"Elu", 1, 1, 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
    Named{"HardSigmoid", 2, 0.2f, 0.5, [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    Named{"LeakyRelu", 1, 0.01f, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    Named{"Relu", 0, 0, 0, [](double x, double, double) { return x < 0 ? 0.0 : x; }},
    Named{"ScaledTanh", 2, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    Named{"Sigmoid", 0, 0, 0, [](double x, double, double) { return sigmoid(x); }},
    Named{"Softplus", 0, 0, 0, [](double x, double, double) { return softplus(x); }},
    Named{"Softsign", 0, 0, 0, [](double x, double, double) { return x / (1.0 + std::fabs(x)); }},
    Named{"Tanh", 0, 0, 0, [](double x, double, double) { return std::tanh(x); }},
    Named{"ThresholdedRelu", 1, 1, 0, [](double x, double a, double) { return x >= a ? x : 0.0; }},
};

const Named& get_named(const Node& node, std::string_view name) {
  const auto same_letter = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
  const auto* found = std::find_if(kNamed.begin(), kNamed.end(), [&](const Named& named) {
    return std::equal(named.name.begin(), named.name.end(), name.begin(), name.end(), same_letter);
  });
  NEO_CHECK(found != kNamed.end(), Unsupported, node.op, "the activation is not known. Got \"", name, "\" - at ",
            node.place());
  return *found;
}

// Gelu and its forms with a bias

// input 0 + the optional bias of input 1.
void infer_biased(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  if (ctx.has_input(1)) {
    check_same_dtype(ctx, 0, 1);
    if (ctx.ranked(0)) ctx.broadcast(ctx.shape(0), ctx.shape(1));
  }
  infer_same(ctx);
}

void infer_gelu(InferContext& ctx) {
  const std::string approximate = ctx.node().string_attr("approximate", "none");
  ctx.check(approximate == "none" || approximate == "tanh",
            str("attribute approximate must be none or tanh. Got \"", approximate, "\""));
  infer_biased(ctx);
}

void reference_gelu(ReferenceContext& ctx) {
  const bool fast =
      ctx.node().op == "com.microsoft.FastGelu" || ctx.node().string_attr("approximate", "none") == "tanh";
  const Dims dims = ctx.input(0).dims();
  auto elements = ctx.doubles(0);
  if (ctx.has_input(1)) {
    const auto bias = broadcast_doubles(ctx, 1, dims);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] += bias[i];
  }
  for (double& x : elements) x = fast ? gelu_tanh(x) : 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), elements);
}

// PRelu. The ONNX text has the slope broadcast to the input; ONNX Runtime broadcasts both.

void infer_prelu(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Number);
  check_same_dtype(ctx, 0, 1);
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
}

void reference_prelu(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  const Dims dims = broadcast_all_dims(ctx);
  const Tensor& y = ctx.output(0, dtype, dims);
  if (is_integer(dtype)) {
    auto elements = broadcast_ints(ctx, 0, dims);
    const auto slope = broadcast_ints(ctx, 1, dims);
    for (size_t i = 0; i < elements.size(); ++i) {
      if (int_less(dtype, elements[i], 0)) elements[i] = wrap_multiply(elements[i], slope[i]);
    }
    return store_ints(y, elements);
  }
  auto elements = broadcast_doubles(ctx, 0, dims);
  const auto slope = broadcast_doubles(ctx, 1, dims);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] < 0) elements[i] *= slope[i];
  }
  store_doubles(y, elements);
}

// SwiGLU

void infer_swiglu(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  check_same_dtype(ctx, 0, 1);
  if (ctx.ranked(0) && ctx.ranked(1)) {
    ctx.check_rank(1, ctx.shape(0).rank());
    for (int i = 0; i < ctx.shape(0).rank(); ++i) {
      ctx.require_equal(ctx.shape(0)[i], ctx.shape(1)[i], "both inputs must have one shape");
    }
  }
  infer_same(ctx);
}

void reference_swiglu(ReferenceContext& ctx) {
  ctx.check(ctx.input(0).dims() == ctx.input(1).dims(),
            str("both inputs must have one shape. Got ", to_string(ctx.input(0).dims()), " and ",
                to_string(ctx.input(1).dims())));
  const double alpha = ctx.node().float_attr("alpha", 1.0);
  auto gate = ctx.doubles(0);
  const auto linear = ctx.doubles(1);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= sigmoid(alpha * gate[i]) * linear[i];
  store_doubles(ctx.output(0, ctx.input(0).dtype(), ctx.input(0).dims()), gate);
}

}  // namespace

double sigmoid(double x) {
  if (x >= 0) return 1.0 / (1.0 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1.0 + e);
}

NamedActivation::NamedActivation(const Node& node, std::string_view name, const std::vector<double>& params) {
  const Named& named = get_named(node, name);
  name_ = named.name;
  function_ = named.function;
  a_ = params.empty() ? named.first_default : params[0];
  b_ = params.size() < 2 ? named.second_default : params[1];
}

int NamedActivation::parameter_count(const Node& node, std::string_view name) {
  return get_named(node, name).parameters;
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

void add_activation_ops(OpRegistry& ops) {
  for (const Activation& activation : kActivations) {
    ops.add({.name = std::string(activation.name),
             .layout = LayoutClass::Oblivious,
             .infer = infer_activation,
             .reference = reference_activation});
  }
  ops.add({.name = "Gelu", .layout = LayoutClass::Oblivious, .infer = infer_gelu, .reference = reference_gelu});
  ops.add({.name = "com.microsoft.Gelu",
           .layout = LayoutClass::Oblivious,
           .infer = infer_biased,
           .reference = reference_gelu});
  ops.add({.name = "com.microsoft.FastGelu", .max_inputs = 2, .infer = infer_biased, .reference = reference_gelu});
  ops.add({.name = "com.microsoft.BiasGelu",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_biased,
           .reference = reference_gelu});
  ops.add({.name = "PRelu",
           .min_inputs = 2,
           .max_inputs = 2,
           .layout = LayoutClass::Oblivious,
           .infer = infer_prelu,
           .reference = reference_prelu});
  ops.add({.name = "SwiGLU",
           .min_inputs = 2,
           .max_inputs = 2,
           .layout = LayoutClass::Oblivious,
           .infer = infer_swiglu,
           .reference = reference_swiglu});
}

}  // namespace neo
