#include <algorithm>
#include <cmath>

#include "passes/linear.h"
#include "passes/pattern.h"

namespace neo {
namespace {

// (x - mean) / sqrt(variance + epsilon) over some axes, or without the mean.
struct Statistics {
  Value* x = nullptr;
  Value* mean = nullptr;  // null: not subtracted
  std::vector<int64_t> axes;
  double epsilon = 0;
};

// The base of a square.
Value* as_square(const Value* value) {
  const Node* node = value->producer;
  if (!node) return nullptr;
  if (node->op == "Mul" && node->inputs[0] == node->inputs[1]) return node->inputs[0];
  return node->op == "Pow" && uniform(node->inputs[1]) == 2.0 ? node->inputs[0] : nullptr;
}

// x of x - mean(x), the mean over the given axes.
struct Centred {
  Value* x;
  Value* mean;
};
std::optional<Centred> as_centred(const Value* value, const std::vector<int64_t>& axes) {
  const Node* sub = made_by(value, "Sub");
  if (!sub) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    const Node* mean = made_by(sub->inputs[1 - side], "ReduceMean");
    if (mean && mean->inputs[0] == sub->inputs[side] && reduced_axes(*mean, true) == axes)
      return Centred{sub->inputs[side], sub->inputs[1 - side]};
  }
  return std::nullopt;
}

// The statistics of which sqrt(value) is the deviation.
std::optional<Statistics> as_variance(const Value* value) {
  Statistics statistics;
  if (const auto sum = as_shifted(value)) {
    statistics.epsilon = sum->number;
    value = sum->value;
  }
  const Node* reduce = made_by(value, "ReduceMean");
  const auto axes = reduce ? reduced_axes(*reduce, true) : std::nullopt;
  if (!axes || statistics.epsilon < 0) return std::nullopt;
  statistics.axes = *axes;
  Value* base = as_square(reduce->inputs[0]);
  if (!base) return std::nullopt;
  if (const auto centred = as_centred(base, *axes)) {
    statistics.x = centred->x;
    statistics.mean = centred->mean;
  } else {
    statistics.x = base;
  }
  return statistics;
}

// The statistics behind a value that is sqrt(variance + epsilon).
std::optional<Statistics> as_deviation(const Value* value) {
  const Node* node = value->producer;
  if (!node) return std::nullopt;
  if (node->op == "Sqrt" || (node->op == "Pow" && uniform(node->inputs[1]) == 0.5)) return as_variance(node->inputs[0]);
  return std::nullopt;
}

// The statistics behind a value that is 1 / sqrt(variance + epsilon) and stands as a factor.
std::optional<Statistics> as_inverse(const Value* value) {
  const Node* node = value->producer;
  if (!node) return std::nullopt;
  if (node->op == "Pow" && uniform(node->inputs[1]) == -0.5) return as_variance(node->inputs[0]);
  if (node->op == "Reciprocal") return as_deviation(node->inputs[0]);
  if (node->op == "Div" && uniform(node->inputs[0]) == 1.0) return as_deviation(node->inputs[1]);
  return std::nullopt;
}

// statistics' part * number * gamma, gamma a constant or null.
struct Scaled {
  Statistics statistics;
  std::vector<Value*> others;  // what is scaled
  double number = 1;
  const Value* gamma = nullptr;
};

std::optional<Scaled> as_scaled(const Product& product) {
  Scaled scaled;
  scaled.number = product.number;
  std::optional<Statistics> statistics;
  if (product.divisors.size() > 1) return std::nullopt;
  if (!product.divisors.empty() && !(statistics = as_deviation(product.divisors[0]))) return std::nullopt;
  for (Value* factor : product.factors) {
    if (factor->constant && !scaled.gamma) {
      scaled.gamma = factor;
      continue;
    }
    auto found = statistics ? std::nullopt : as_inverse(factor);
    if (found) {
      statistics = std::move(found);
    } else {
      scaled.others.push_back(factor);
    }
  }
  if (!statistics) return std::nullopt;
  scaled.statistics = std::move(*statistics);
  return scaled;
}

// A whole normalization: normalize(x) * number * gamma + beta.
struct Normalization {
  Statistics statistics;
  bool centred = false;
  double number = 1;
  const Value* gamma = nullptr;
  const Value* beta = nullptr;
};

std::optional<Normalization> match_normalization_product(const Rewriter& rewriter, Value* value) {
  const auto scaled = as_scaled(as_whole_product(rewriter, value));
  if (!scaled || scaled->others.size() != 1) return std::nullopt;
  Normalization found{scaled->statistics, false, scaled->number, scaled->gamma, nullptr};
  Value* numerator = scaled->others[0];
  if (found.statistics.mean) {
    const auto centred = as_centred(numerator, found.statistics.axes);
    if (!centred || centred->x != found.statistics.x) return std::nullopt;
    found.centred = true;
    return found;
  }
  return numerator == found.statistics.x ? std::optional(found) : std::nullopt;
}

// x * s + (beta - mean * s) with s = gamma / deviation, as TensorFlow writes it.
std::optional<Normalization> match_affine(const Rewriter& rewriter, Value* kept, Value* shift) {
  const Node* sub = made_by(shift, "Sub");
  if (!sub || !sub->inputs[0]->constant) return std::nullopt;
  Product product = as_product(rewriter, kept);
  const Product mean = as_product(rewriter, sub->inputs[1]);
  if (product.factors.size() != 2 || mean.factors.size() != 2 || !product.divisors.empty() || !mean.divisors.empty() ||
      product.number != mean.number) {
    return std::nullopt;
  }
  for (size_t side = 0; side < 2; ++side) {
    Value* s = product.factors[side];
    Value* x = product.factors[1 - side];
    const auto at = std::find(mean.factors.begin(), mean.factors.end(), s);
    if (at == mean.factors.end()) continue;
    const Value* subtracted = mean.factors[at == mean.factors.begin() ? 1 : 0];
    Product whole = as_whole_product(rewriter, s);
    // The inverse deviation itself is a factor where nothing scales it.
    if (as_inverse(s)) whole = {1, {s}, {}};
    const auto scaled = as_scaled(whole);
    if (!scaled || !scaled->others.empty() || scaled->statistics.x != x || scaled->statistics.mean != subtracted ||
        !subtracted)
      continue;
    return Normalization{scaled->statistics, true, product.number * scaled->number, scaled->gamma, sub->inputs[0]};
  }
  return std::nullopt;
}

std::optional<Normalization> match_normalization(const Rewriter& rewriter, const Node& root) {
  Value* out = root.outputs.front();
  if (root.op == "Mul" || root.op == "Div") return match_normalization_product(rewriter, out);
  if (root.op != "Add") return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    Value* left = root.inputs[side];
    Value* right = root.inputs[1 - side];
    if (auto found = match_affine(rewriter, left, right)) return found;
    if (!right->constant || rewriter.uses(left) != 1) continue;
    auto found = match_normalization_product(rewriter, left);
    if (!found) continue;
    found->beta = right;
    return found;
  }
  return std::nullopt;
}

// A constant times a number, written out to the sizes of a row; nothing where it varies along other axes.
std::optional<Tensor> spread(const Value* constant, double number, double fallback, const Dims& row, DType dtype) {
  const int64_t count = element_count(row);
  std::vector<double> elements(static_cast<size_t>(count), fallback * number);
  if (constant) {
    Dims dims = constant->constant->dims();
    while (!dims.empty() && dims.front() == 1 && dims.size() > row.size()) dims.erase(dims.begin());
    if (dims.size() > row.size()) return std::nullopt;
    dims.insert(dims.begin(), row.size() - dims.size(), 1);
    const std::vector<double> numbers = load_doubles(*constant->constant);
    Dims strides = dense_strides(dims);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) strides[i] = 0;
      if (dims[i] != 1 && dims[i] != row[i]) return std::nullopt;
    }
    const Dims row_strides = dense_strides(row);
    for (int64_t i = 0; i < count; ++i) {
      int64_t from = 0;
      for (size_t axis = 0; axis < row.size(); ++axis) from += i / row_strides[axis] % row[axis] * strides[axis];
      elements[static_cast<size_t>(i)] = numbers[static_cast<size_t>(from)] * number;
    }
  }
  Tensor tensor(dtype, row);
  store_doubles(tensor, elements);
  return tensor;
}

Value* make_row_norm(Rewriter& rewriter, const Node& root, const Normalization& found) {
  Value* x = found.statistics.x;
  const int rank = x->shape().rank();
  const auto count = static_cast<int>(found.statistics.axes.size());
  Dims row;
  for (int i = 0; i < count; ++i) {
    if (found.statistics.axes[static_cast<size_t>(i)] != rank - count + i ||
        !x->shape()[rank - count + i].is_constant())
      return nullptr;
    row.push_back(x->shape()[rank - count + i].value());
  }
  constexpr int64_t kMaxRow = int64_t{1} << 22;
  if (element_count(row) > kMaxRow) return nullptr;
  const auto gamma = spread(found.gamma, found.number, 1, row, x->dtype());
  const auto beta = found.beta ? spread(found.beta, 1, 0, row, x->dtype()) : std::nullopt;
  if (!gamma || (found.beta && !beta)) return nullptr;
  const std::string& name = root.outputs.front()->name;
  std::vector<Value*> inputs{x, rewriter.add_constant(name + ".scale", *gamma)};
  if (beta && found.centred) inputs.push_back(rewriter.add_constant(name + ".bias", *beta));
  const Attrs attrs{{"axis", int64_t{-count}}, {"epsilon", found.statistics.epsilon}};
  Value* normal =
      rewriter.insert(&root, found.centred ? "LayerNormalization" : "RMSNormalization", std::move(inputs), attrs);
  if (!beta || found.centred) return normal;
  return rewriter.insert(&root, "Add", {normal, rewriter.add_constant(name + ".bias", *beta)});
}

// Mean and variance of every plane.
Value* make_instance_norm(Rewriter& rewriter, const Node& root, const Normalization& found) {
  Value* x = found.statistics.x;
  const int rank = x->shape().rank();
  if (!found.centred || rank < 3 || static_cast<int>(found.statistics.axes.size()) != rank - 2 ||
      found.statistics.axes.front() != 2)
    return nullptr;
  if (!x->shape()[1].is_constant()) return nullptr;
  const int64_t channels = x->shape()[1].value();
  std::vector<double> scale(static_cast<size_t>(channels), 1);
  std::vector<double> bias(static_cast<size_t>(channels), 0);
  for (const auto& [constant, numbers] : {std::pair(found.gamma, &scale), std::pair(found.beta, &bias)}) {
    if (!constant) continue;
    auto given = per_channel(*constant, rank, 1, channels);
    if (!given) return nullptr;
    *numbers = std::move(*given);
  }
  for (double& s : scale) s *= found.number;
  const std::string& name = root.outputs.front()->name;
  Tensor scales(x->dtype(), {channels});
  Tensor biases(x->dtype(), {channels});
  store_doubles(scales, scale);
  store_doubles(biases, bias);
  return rewriter.insert(
      &root, "InstanceNormalization",
      {x, rewriter.add_constant(name + ".scale", scales), rewriter.add_constant(name + ".bias", biases)},
      {{"epsilon", found.statistics.epsilon}});
}

// sqrt(sum(x^2)), sum(x^2)
Value* make_square_sum(Rewriter& rewriter, const Node& root) {
  const Node* sum = root.op == "Sqrt" ? made_by(root.inputs[0], "ReduceSum") : root.op == "ReduceSum" ? &root : nullptr;
  if (root.op == "Sqrt" && made_by(root.inputs[0], "ReduceSumSquare")) {
    const Node* squares = root.inputs[0]->producer;
    return rewriter.insert(&root, "ReduceL2", squares->inputs, squares->attrs);
  }
  Value* x = sum ? as_square(sum->inputs[0]) : nullptr;
  if (!x || rewriter.uses(sum->inputs[0]) != 1) return nullptr;
  std::vector<Value*> inputs = sum->inputs;
  inputs[0] = x;
  return rewriter.insert(&root, root.op == "Sqrt" ? "ReduceL2" : "ReduceSumSquare", std::move(inputs), sum->attrs);
}

// Microsoft's form of RMSNormalization, whose shift is an input.
bool rename_simplified_norm(Rewriter& rewriter, Node& node) {
  if (node.op != "SimplifiedLayerNormalization" && node.op != "com.microsoft.SimplifiedLayerNormalization")
    return false;
  if (node.output(1)) return false;
  Value* normal = rewriter.insert(&node, "RMSNormalization", {node.inputs[0], node.inputs[1]}, node.attrs);
  if (Value* shift = node.input(2)) normal = rewriter.insert(&node, "Add", {normal, shift});
  rewriter.replace(node.outputs[0], normal);
  return true;
}

// Microsoft's normalization of a sum, as the sum and the normalization.
bool split_skip_norm(Rewriter& rewriter, Node& node) {
  const bool simplified = node.op == "com.microsoft.SkipSimplifiedLayerNormalization";
  if (!simplified && node.op != "com.microsoft.SkipLayerNormalization") return false;
  if (node.output(1) || node.output(2)) return false;
  Value* sum = rewriter.insert(&node, "Add", {node.inputs[0], node.inputs[1]});
  if (Value* bias = node.input(simplified ? 3 : 4)) sum = rewriter.insert(&node, "Add", {sum, bias});
  std::vector<Value*> inputs{sum, node.inputs[2]};
  if (!simplified && node.input(3)) inputs.push_back(node.inputs[3]);
  Value* normal = rewriter.insert(&node, simplified ? "RMSNormalization" : "LayerNormalization", std::move(inputs),
                                  {{"axis", int64_t{-1}}, {"epsilon", node.float_attr("epsilon", 1e-12)}});
  if (node.output(3)) rewriter.replace(node.outputs[3], sum);
  rewriter.replace(node.outputs[0], normal);
  return true;
}

bool recognize_normalizations_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  // From the end: the outermost node of a pattern is met first.
  for (auto it = rewriter.nodes().rbegin(); it != rewriter.nodes().rend(); ++it) {
    Node* node = *it;
    if (rewriter.is_retired(node) || node->outputs.empty() || !node->outputs.front()) continue;
    Value* out = node->outputs.front();
    if (!out->type.is_tensor() || !out->shape().has_rank() || rename_simplified_norm(rewriter, *node) ||
        split_skip_norm(rewriter, *node) || out->dtype() != DType::Float32)
      continue;
    if (Value* sum = make_square_sum(rewriter, *node)) {
      rewriter.replace(out, sum);
      continue;
    }
    const auto found = match_normalization(rewriter, *node);
    if (!found || !(found->statistics.x->type == out->type)) continue;
    Value* normal = make_row_norm(rewriter, *node, *found);
    if (!normal) normal = make_instance_norm(rewriter, *node, *found);
    if (normal) rewriter.replace(out, normal);
  }
  return rewriter.finish();
}

}  // namespace

// Normalizations that exporters write out in parts become LayerNormalization, RMSNormalization or
// InstanceNormalization; square sums and their roots become ReduceSumSquare and ReduceL2.
bool recognize_normalizations(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return recognize_normalizations_in_body(g, context); });
}

}  // namespace neo
