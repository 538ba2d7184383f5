#include <algorithm>
#include <cmath>

#include "passes/linear.h"
#include "passes/pattern.h"

namespace neo {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752;
constexpr double kSqrtTwoOverPi = 0.79788456080286536;
constexpr double kGeluCubic = 0.044715;

// An operator that computes a node from one value. The operands of Clip and PRelu are among the attributes until it is
// made.
struct FoundActivation {
  std::string_view op;
  Value* x = nullptr;
  Attrs attrs = {};
};

FoundActivation swish(Value* x, double alpha) {
  return {"Swish", x, alpha == 1 ? Attrs{} : Attrs{{"alpha", alpha}}};
}

// sqrt(2 / pi) * (x + 0.044715 * x^3), or the same with x taken out.
bool is_gelu_polynomial(const Rewriter& rewriter, Value* value, Value* x) {
  const Product product = as_product(rewriter, value);
  if (!product.divisors.empty() || !is_near(product.number, kSqrtTwoOverPi)) return false;
  if (product.factors.size() == 1) {
    const Node* sum = made_by(product.factors[0], "Add");
    if (!sum) return false;
    return (sum->inputs[0] == x && as_product(rewriter, sum->inputs[1]).is(kGeluCubic, {x, x, x})) ||
           (sum->inputs[1] == x && as_product(rewriter, sum->inputs[0]).is(kGeluCubic, {x, x, x}));
  }
  if (product.factors.size() != 2) return false;
  for (size_t side = 0; side < 2; ++side) {
    const auto sum = as_shifted(product.factors[1 - side]);
    if (product.factors[side] == x && sum && is_near(sum->number, 1) &&
        as_product(rewriter, sum->value).is(kGeluCubic, {x, x}))
      return true;
  }
  return false;
}

// number * x * (a + a * f(x)) with number * a = 1/2, f = erf(x / sqrt(2)) or its approximation by tanh.
std::optional<FoundActivation> match_gelu(const Rewriter& rewriter, double number, Value* x, Value* gate) {
  const auto sum = as_shifted(gate);
  if (!sum || !is_near(number * sum->number, 0.5)) return std::nullopt;
  const Product inner = as_product(rewriter, sum->value);
  if (inner.factors.size() != 1 || !inner.divisors.empty() || !is_near(inner.number, sum->number)) return std::nullopt;
  if (const Node* erf = made_by(inner.factors[0], "Erf")) {
    if (as_product(rewriter, erf->inputs[0]).is(kSqrtHalf, {x})) return FoundActivation{"Gelu", x};
  }
  if (const Node* tanh = made_by(inner.factors[0], "Tanh")) {
    if (is_gelu_polynomial(rewriter, tanh->inputs[0], x))
      return FoundActivation{"Gelu", x, {{"approximate", std::string("tanh")}}};
  }
  return std::nullopt;
}

// clip(x + shift, 0, top)
struct Ramp {
  Value* x;
  double shift;
  double top;
};
std::optional<Ramp> as_ramp(const Value* value) {
  const Node* clip = made_by(value, "Clip");
  const auto bounds = clip ? bounds_of(*clip) : std::nullopt;
  if (!bounds || bounds->lo != 0 || !std::isfinite(bounds->hi) || bounds->hi <= 0) return std::nullopt;
  const auto sum = as_shifted(clip->inputs.front());
  return sum ? std::optional(Ramp{sum->value, sum->number, bounds->hi}) : std::nullopt;
}

std::optional<FoundActivation> match_gated(const Rewriter& rewriter, double number, Value* x, Value* gate) {
  if (rewriter.uses(gate) != 1) return std::nullopt;
  if (is_near(number, 1)) {
    if (const Node* sigmoid = made_by(gate, "Sigmoid")) {
      if (sigmoid->inputs[0] == x) return swish(x, 1);
      const Product inner = as_product(rewriter, sigmoid->inputs[0]);
      if (inner.divisors.empty() && inner.factors == std::vector<Value*>{x}) return swish(x, inner.number);
    }
    const Node* hard = made_by(gate, "HardSigmoid");
    if (hard && hard->inputs[0] == x && is_near(hard->float_attr("alpha", 0.2), 1.0 / 6) &&
        is_near(hard->float_attr("beta", 0.5), 0.5)) {
      return FoundActivation{"HardSwish", x};
    }
    if (const Node* tanh = made_by(gate, "Tanh")) {
      const Node* softplus = made_by(tanh->inputs[0], "Softplus");
      if (softplus && softplus->inputs[0] == x) return FoundActivation{"Mish", x};
    }
  }
  if (const auto ramp = as_ramp(gate)) {
    if (ramp->x == x && is_near(ramp->shift, 3) && is_near(ramp->top, 6) && is_near(number, 1.0 / 6))
      return FoundActivation{"HardSwish", x};
  }
  return match_gelu(rewriter, number, x, gate);
}

// 1 + exp(-x)
Value* logistic_divisor(const Value* value) {
  const auto sum = as_shifted(value);
  const Node* exp = sum && sum->number == 1 ? made_by(sum->value, "Exp") : nullptr;
  const Node* neg = exp ? made_by(exp->inputs[0], "Neg") : nullptr;
  return neg ? neg->inputs[0] : nullptr;
}

std::optional<FoundActivation> match_activation_product(const Rewriter& rewriter, const Node& root) {
  const Product product = as_whole_product(rewriter, root.outputs.front());
  if (product.divisors.size() == 1 && is_near(product.number, 1)) {
    Value* x = logistic_divisor(product.divisors[0]);
    if (x && product.factors.empty()) return FoundActivation{"Sigmoid", x};
    if (x && product.factors == std::vector<Value*>{x}) return swish(x, 1);
  }
  if (!product.divisors.empty()) return std::nullopt;
  if (product.factors.size() == 1) {
    const auto ramp = as_ramp(product.factors[0]);
    if (!ramp || rewriter.uses(product.factors[0]) != 1 || !is_near(product.number * ramp->top, 1)) return std::nullopt;
    return FoundActivation{"HardSigmoid", ramp->x, {{"alpha", product.number}, {"beta", product.number * ramp->shift}}};
  }
  if (product.factors.size() != 2) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    if (auto found = match_gated(rewriter, product.number, product.factors[side], product.factors[1 - side]))
      return found;
  }
  return std::nullopt;
}

// relu(x) + other, where other = -slope * relu(-x)
std::optional<FoundActivation> match_prelu(const Rewriter& rewriter, Value* kept, Value* other, double sign) {
  const Node* relu = made_by(kept, "Relu");
  if (!relu) return std::nullopt;
  Value* x = relu->inputs[0];
  const Product product = as_product(rewriter, other);
  if (!product.divisors.empty() || product.factors.empty() || product.factors.size() > 2) return std::nullopt;
  Value* slope = nullptr;
  bool reflected = false;
  for (Value* v : product.factors) {
    const Node* below = made_by(v, "Relu");
    const Node* neg = below ? made_by(below->inputs[0], "Neg") : nullptr;
    if (neg && neg->inputs[0] == x) {
      reflected = true;
    } else if (v->constant) {
      slope = v;
    }
  }
  if (!reflected || (product.factors.size() == 2) != (slope != nullptr)) return std::nullopt;
  if (!slope) return FoundActivation{"LeakyRelu", x, {{"alpha", -sign * product.number}}};
  Tensor slopes(slope->dtype(), slope->constant->dims());
  std::vector<double> numbers = load_doubles(*slope->constant);
  for (double& n : numbers) n *= -sign * product.number;
  store_doubles(slopes, numbers);
  FoundActivation found{"PRelu", x};
  found.attrs["slope"] = slopes;
  return found;
}

std::optional<FoundActivation> match_sum(const Rewriter& rewriter, const Node& root) {
  if (root.op == "Sub") return match_prelu(rewriter, root.inputs[0], root.inputs[1], -1);
  for (size_t side = 0; side < 2; ++side) {
    if (auto found = match_prelu(rewriter, root.inputs[side], root.inputs[1 - side], 1)) return found;
  }
  return std::nullopt;
}

// Max(x, a * x)
std::optional<FoundActivation> match_leaky_relu(const Rewriter& rewriter, const Node& root) {
  if (root.op != "Max" || root.inputs.size() != 2) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    Value* x = root.inputs[side];
    const Product other = as_product(rewriter, root.inputs[1 - side]);
    const bool leaks =
        other.divisors.empty() && other.factors == std::vector<Value*>{x} && other.number > 0 && other.number < 1;
    if (leaks) return FoundActivation{"LeakyRelu", x, {{"alpha", other.number}}};
  }
  return std::nullopt;
}

// Min and Max with a number, and clamps of clamps; Clip's bounds are made from `attrs`.
std::optional<FoundActivation> match_clamp(const Rewriter& rewriter, const Node& root) {
  constexpr double kInfinity = HUGE_VAL;
  Value* x = nullptr;
  std::optional<Bounds> bounds;
  if ((root.op == "Min" || root.op == "Max") && root.inputs.size() == 2) {
    for (size_t side = 0; side < 2; ++side) {
      const auto number = uniform(root.inputs[side]);
      if (!number || std::isnan(*number)) continue;
      x = root.inputs[1 - side];
      bounds = root.op == "Min" ? Bounds{-kInfinity, *number} : Bounds{*number, kInfinity};
    }
  } else if ((bounds = bounds_of(root))) {
    x = root.inputs.front();
  }
  if (!bounds) return std::nullopt;
  const Node* inner = x->producer;
  const auto inner_bounds = inner && rewriter.uses(x) == 1 ? bounds_of(*inner) : std::nullopt;
  if (inner_bounds) {
    x = inner->inputs.front();
    bounds = within(*inner_bounds, *bounds);
  } else if (root.op == "Clip" ? bounds->lo != 0 || bounds->hi != kInfinity : root.op == "Relu") {
    return std::nullopt;
  }
  if (bounds->lo == 0 && bounds->hi == kInfinity) return FoundActivation{"Relu", x};
  return FoundActivation{"Clip", x, {{"lo", bounds->lo}, {"hi", bounds->hi}}};
}

// clip(alpha * x + beta, 0, 1); what a linear node before it would take in is left to it.
std::optional<FoundActivation> match_hard_sigmoid(const Rewriter& rewriter, const Node& root) {
  const auto bounds = root.op == "Clip" ? bounds_of(root) : std::nullopt;
  if (!bounds || bounds->lo != 0 || bounds->hi != 1) return std::nullopt;
  const Value* input = root.inputs.front();
  const auto sum = as_shifted(input);
  if (!sum || rewriter.uses(input) != 1) return std::nullopt;
  const Product product = as_product(rewriter, sum->value);
  if (product.factors.size() != 1 || !product.divisors.empty() || product.number == 1 || product.number <= 0)
    return std::nullopt;
  Value* x = product.factors[0];
  if (x->producer && rewriter.uses(x) == 1 && as_linear(*x->producer)) return std::nullopt;
  return FoundActivation{"HardSigmoid", x, {{"alpha", product.number}, {"beta", sum->number}}};
}

// log(1 + exp(x))
std::optional<FoundActivation> match_softplus(const Node& root) {
  const auto sum = root.op == "Log" ? as_shifted(root.inputs.front()) : std::nullopt;
  const Node* exp = sum && sum->number == 1 ? made_by(sum->value, "Exp") : nullptr;
  return exp ? std::optional(FoundActivation{"Softplus", exp->inputs[0]}) : std::nullopt;
}

std::optional<FoundActivation> match_activation(const Rewriter& rewriter, const Node& root) {
  if (root.op == "Mul" || root.op == "Div" || root.op == "Reciprocal") return match_activation_product(rewriter, root);
  if (root.op == "Add" || root.op == "Sub") return match_sum(rewriter, root);
  if (auto found = match_leaky_relu(rewriter, root)) return found;
  if (auto found = match_hard_sigmoid(rewriter, root)) return found;
  if (auto found = match_softplus(root)) return found;
  return match_clamp(rewriter, root);
}

Value* make(Rewriter& rewriter, const Node& root, FoundActivation found) {
  std::vector<Value*> inputs{found.x};
  const std::string& name = root.outputs.front()->name;
  if (found.op == "Clip") {
    for (const std::string_view key : {"lo", "hi"}) {
      const double bound = std::get<double>(found.attrs.at(std::string(key)));
      const bool is_open = bound == (key == "lo" ? -HUGE_VAL : HUGE_VAL);
      inputs.push_back(is_open ? nullptr : rewriter.add_scalar(name + "." + std::string(key), found.x->dtype(), bound));
    }
    if (!inputs.back()) inputs.pop_back();
    found.attrs.clear();
  } else if (found.op == "PRelu") {
    inputs.push_back(rewriter.add_constant(name + ".slope", std::get<Tensor>(found.attrs.at("slope"))));
    found.attrs.clear();
  }
  return rewriter.insert(&root, found.op, std::move(inputs), std::move(found.attrs));
}

bool recognize_activations_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node) || node->outputs.empty() || !node->outputs.front()) continue;
    Value* out = node->outputs.front();
    if (!out->type.is_tensor() || !is_float(out->dtype()) || !out->shape().has_rank()) continue;
    auto found = match_activation(rewriter, *node);
    if (!found || !(found->x->type == out->type)) continue;
    rewriter.replace(out, make(rewriter, *node, std::move(*found)));
  }
  return rewriter.finish();
}

}  // namespace

// Activations that exporters write out in parts become one node: Sigmoid, HardSigmoid, Swish, HardSwish, Mish, Gelu by
// erf and by tanh, Softplus, PRelu, LeakyRelu, and clamps.
bool recognize_activations(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return recognize_activations_in_body(g, context); });
}

}  // namespace neo
