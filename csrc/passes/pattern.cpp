#include "passes/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neo {
namespace {

constexpr int kMaxDepth = 8;
constexpr int64_t kMaxUniform = 4096;

void multiply(const Rewriter& rewriter, Value* value, bool whole, int depth, Product& product) {
  Node* node = value->producer;
  const bool open = node && depth < kMaxDepth && is_float(value->dtype()) && (whole || rewriter.uses(value) == 1);
  const auto factor = [&](Value* v) {
    if (const auto number = uniform(v)) {
      product.number *= *number;
    } else {
      multiply(rewriter, v, false, depth + 1, product);
    }
  };
  if (open && node->op == "Mul") {
    factor(node->inputs[0]);
    factor(node->inputs[1]);
  } else if (open && (node->op == "Div" || node->op == "Reciprocal")) {
    Value* divisor = node->inputs.back();
    if (node->op == "Div") factor(node->inputs[0]);
    if (const auto number = uniform(divisor)) {
      product.number /= *number;
    } else {
      product.divisors.push_back(divisor);
    }
  } else if (open && node->op == "Neg") {
    product.number = -product.number;
    factor(node->inputs[0]);
  } else if (open && node->op == "Pow" && (uniform(node->inputs[1]) == 2.0 || uniform(node->inputs[1]) == 3.0)) {
    product.factors.insert(product.factors.end(), static_cast<size_t>(*uniform(node->inputs[1])), node->inputs[0]);
  } else {
    product.factors.push_back(value);
  }
}

}  // namespace

Node* made_by(const Value* value, std::string_view op) {
  return value && value->producer && value->producer->op == op ? value->producer : nullptr;
}

std::optional<double> uniform(const Value* value) {
  if (!value || !value->constant || (!is_float(value->dtype()) && !is_integer(value->dtype()))) return std::nullopt;
  const Tensor& tensor = *value->constant;
  if (tensor.is_splat())
    return tensor.size() > 0 ? std::optional(load_double(tensor.dtype(), tensor.splat_element())) : std::nullopt;
  if (tensor.size() < 1 || tensor.size() > kMaxUniform) return std::nullopt;
  const std::vector<double> numbers = load_doubles(tensor);
  const bool same = std::all_of(numbers.begin(), numbers.end(), [&](double x) { return x == numbers.front(); });
  return same ? std::optional(numbers.front()) : std::nullopt;
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

bool Product::is(double expected_number, std::vector<Value*> expected_factors) const {
  return divisors.empty() && is_near(number, expected_number) && factors.size() == expected_factors.size() &&
         std::is_permutation(factors.begin(), factors.end(), expected_factors.begin());
}

Product as_product(const Rewriter& rewriter, Value* value) {
  Product product;
  multiply(rewriter, value, false, 0, product);
  return product;
}

Product as_whole_product(const Rewriter& rewriter, Value* value) {
  Product product;
  multiply(rewriter, value, true, 0, product);
  return product;
}

std::optional<Shifted> as_shifted(const Value* value) {
  if (const Node* sub = made_by(value, "Sub")) {
    const auto number = uniform(sub->inputs[1]);
    return number ? std::optional(Shifted{sub->inputs[0], -*number}) : std::nullopt;
  }
  const Node* add = made_by(value, "Add");
  if (!add) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    if (const auto number = uniform(add->inputs[side])) return Shifted{add->inputs[1 - side], *number};
  }
  return std::nullopt;
}

std::optional<Bounds> bounds_of(const Node& node) {
  Bounds bounds{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  if (node.outputs.size() != 1 || !node.outputs.front() || !is_float(node.outputs.front()->dtype()))
    return std::nullopt;
  if (node.op == "Relu") {
    bounds.lo = 0;
    return bounds;
  }
  if (node.op != "Clip") return std::nullopt;
  for (size_t i = 1; i < 3; ++i) {
    const Value* v = node.input(i);
    if (!v) continue;
    if (!v->constant || v->constant->size() != 1) return std::nullopt;
    (i == 1 ? bounds.lo : bounds.hi) = load_double(v->dtype(), v->constant->data());
  }
  return bounds.lo <= bounds.hi ? std::optional(bounds) : std::nullopt;
}

Bounds within(Bounds inner, Bounds outer) {
  return {std::clamp(inner.lo, outer.lo, outer.hi), std::clamp(inner.hi, outer.lo, outer.hi)};
}

std::optional<std::vector<int64_t>> reduced_axes(const Node& node, bool keepdims) {
  if ((node.int_attr("keepdims", 1) != 0) != keepdims || !node.inputs.front()->shape().has_rank()) return std::nullopt;
  const Value* given = node.input(1);
  if (!given || !given->constant || given->constant->size() == 0) return std::nullopt;
  const int rank = node.inputs.front()->shape().rank();
  std::vector<int64_t> axes;
  for (int64_t axis : load_ints(*given->constant)) axes.push_back(axis < 0 ? axis + rank : axis);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

}  // namespace neo
