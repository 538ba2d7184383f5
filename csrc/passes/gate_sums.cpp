#include "passes/gate_sums.h"

#include <algorithm>

namespace neo {
namespace {

constexpr int kMaxSumDepth = 12;

std::optional<int64_t> last_extent(const Value* value) {
  if (!value || !value->type.is_tensor() || !value->shape().has_rank() || value->shape().rank() < 1)
    return std::nullopt;
  const Dim& d = value->shape().dims().back();
  return d.is_constant() && d.value() > 0 ? std::optional(d.value()) : std::nullopt;
}

// Dims without the leading ones.
std::vector<Dim> significant(const Shape& shape) {
  auto begin = shape.dims().begin();
  while (begin != shape.dims().end() && begin->is(1)) ++begin;
  return {begin, shape.dims().end()};
}

bool changes_rank_only(const Node& node) {
  if (node.op == "Identity") return true;
  if (node.op != "Squeeze" && node.op != "Unsqueeze" && node.op != "Reshape" && node.op != "Flatten") return false;
  const auto from = last_extent(node.inputs.front()), to = last_extent(node.outputs.front());
  return from && to && *from == *to;
}

void narrow(GateSum& sum, int64_t first, int64_t width) {
  sum.width = width;
  for (GateTerm& term : sum.terms) term.first_column += first;
  sum.bias = {sum.bias.begin() + first, sum.bias.begin() + first + width};
}

bool is_last_axis(const Value* value, int64_t axis) {
  const int rank = value->shape().rank();
  return axis == -1 || axis == rank - 1;
}

// The columns that one output of a Split, or a Slice, takes of its input.
std::optional<int64_t> first_column(const Node& node, const Value* value) {
  const Value* whole = node.inputs.front();
  const auto extent = last_extent(whole);
  if (!extent) return std::nullopt;
  if (node.op == "Split") {
    if (!is_last_axis(whole, node.int_attr("axis", 0))) return std::nullopt;
    int64_t first = 0;
    for (int i = 0; i < value->output_index; ++i) {
      const auto before = last_extent(node.outputs[static_cast<size_t>(i)]);
      if (before) first += *before;
      if (!before) {  // an output that nobody reads has no value
        const Value* sizes = node.input(1);
        if (sizes && !sizes->constant) return std::nullopt;
        first += sizes ? load_ints(*sizes->constant)[static_cast<size_t>(i)] : *last_extent(value);
      }
    }
    return first;
  }
  std::vector<std::vector<int64_t>> numbers;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.inputs[i] || !node.inputs[i]->constant) return std::nullopt;
    numbers.push_back(load_ints(*node.inputs[i]->constant));
    if (numbers.back().size() != 1) return std::nullopt;
  }
  const int64_t axis = numbers.size() > 2 ? numbers[2][0] : 0;
  if (numbers.size() < 2 || !is_last_axis(whole, axis) || (numbers.size() > 3 && numbers[3][0] != 1))
    return std::nullopt;
  const int64_t start = numbers[0][0] < 0 ? numbers[0][0] + *extent : numbers[0][0];
  return std::clamp<int64_t>(start, 0, *extent);
}

std::optional<GateSum> read_sum(Value* value, int depth);

// Rows of a matrix times what a Concat puts side by side.
bool add_products(GateSum& sum, Value* operand, const Value* weights, bool transposed, int64_t first_row) {
  operand = unranked(operand);
  const auto depth = last_extent(operand);
  if (!depth) return false;
  const Node* concat = made_by(operand, "Concat");
  if (concat && is_last_axis(operand, concat->int_attr("axis", 0))) {
    for (Value* part : concat->inputs) {
      const auto extent = last_extent(part);
      if (!extent || !add_products(sum, part, weights, transposed, first_row)) return false;
      first_row += *extent;
    }
    return true;
  }
  sum.terms.push_back({operand, weights, transposed, first_row, *depth, 0});
  return true;
}

std::optional<GateSum> read_product(const Node& node, int64_t width, int depth) {
  const bool is_gemm = node.op == "Gemm";
  const Value* weights = node.inputs[1];
  if (!weights->constant || weights->constant->is_absent() || weights->constant->rank() != 2) return std::nullopt;
  if (is_gemm && (node.int_attr("transA", 0) != 0 || node.float_attr("alpha", 1) != 1 ||
                  (node.input(2) && node.float_attr("beta", 1) != 1))) {
    return std::nullopt;
  }
  for (const auto& [key, attr] : node.attrs) {  // a MatMul may have a clamp
    if (!is_gemm || (key != "transA" && key != "transB" && key != "alpha" && key != "beta")) return std::nullopt;
  }
  GateSum sum{width, {}, std::vector<double>(static_cast<size_t>(width))};
  if (!add_products(sum, node.inputs[0], weights, is_gemm && node.int_attr("transB", 0) != 0, 0)) return std::nullopt;
  if (!node.input(2)) return sum;
  const auto bias = as_row(node.inputs[2], width);
  if (bias) {
    sum.bias = *bias;
    return sum;
  }
  const auto other = depth < kMaxSumDepth ? read_sum(node.inputs[2], depth + 1) : std::nullopt;
  if (!other || other->width != width ||
      significant(node.inputs[2]->shape()) != significant(node.outputs.front()->shape())) {
    return std::nullopt;
  }
  sum.terms.insert(sum.terms.end(), other->terms.begin(), other->terms.end());
  sum.bias = other->bias;
  return sum;
}

std::optional<GateSum> read_addition(const Node& node, int64_t width, int depth) {
  const double sign = node.op == "Sub" ? -1 : 1;
  GateSum sum{width, {}, std::vector<double>(static_cast<size_t>(width))};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Value* part = node.inputs[i];
    auto row = as_row(part, width);
    if (!row) {
      if (i > 0 && sign < 0) return std::nullopt;
      if (significant(part->shape()) != significant(node.outputs.front()->shape())) return std::nullopt;
      auto other = read_sum(part, depth + 1);
      if (!other || other->width != width) return std::nullopt;
      sum.terms.insert(sum.terms.end(), other->terms.begin(), other->terms.end());
      row = std::move(other->bias);
    }
    for (size_t c = 0; c < row->size(); ++c) sum.bias[c] += (i > 0 ? sign : 1) * (*row)[c];
  }
  return sum;
}

std::optional<GateSum> read_sum(Value* value, int depth) {
  value = unranked(value);
  const auto width = last_extent(value);
  if (!width || !value->shape().has_rank()) return std::nullopt;
  if (auto row = as_row(value, *width)) return GateSum{*width, {}, std::move(*row)};
  const Node* node = value->producer;
  if (node && depth < kMaxSumDepth) {
    std::optional<GateSum> sum;
    if (node->op == "Gemm" || node->op == "MatMul") {
      sum = read_product(*node, *width, depth);
    } else if (node->op == "Add" || node->op == "Sub" || node->op == "Sum") {
      sum = read_addition(*node, *width, depth);
    } else if (node->op == "Split" || node->op == "Slice") {
      const auto first = first_column(*node, value);
      sum = first ? read_sum(node->inputs.front(), depth + 1) : std::nullopt;
      if (sum && *first + *width > sum->width) sum.reset();
      if (sum) narrow(*sum, *first, *width);
    }
    if (sum) return sum;
  }
  return GateSum{*width, {{value, nullptr, false, 0, *width, 0}}, std::vector<double>(static_cast<size_t>(*width))};
}

}  // namespace

std::optional<std::vector<double>> as_row(const Value* value, int64_t width) {
  if (!value->constant || value->constant->is_absent()) return std::nullopt;
  const Tensor& tensor = *value->constant;
  const int64_t last = tensor.rank() > 0 ? tensor.dims().back() : 1;
  if (tensor.size() < 1 || (last != width && last != 1)) return std::nullopt;
  const std::vector<double> numbers = load_doubles(tensor);
  std::vector<double> row(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) row[static_cast<size_t>(i)] = numbers[static_cast<size_t>(i % last)];
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != numbers[i % static_cast<size_t>(last)]) return std::nullopt;
  }
  return row;
}

bool GateTerm::has_weights_of(const GateTerm& other) const {
  if (transposed != other.transposed || first_row != other.first_row || depth != other.depth ||
      first_column != other.first_column || !weights || !other.weights)
    return false;
  return weights == other.weights || identical(*weights->constant, *other.weights->constant);
}

std::optional<GateSum> read_gate_sum(Value* value) {
  return is_float(value->dtype()) ? read_sum(value, 0) : std::nullopt;
}

std::optional<GateFunction> read_gate_function(Value* value) {
  const Node* node = value ? unranked(value)->producer : nullptr;
  if (!node) return std::nullopt;
  Value* in = node->input(0);
  for (const char* plain : {"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"}) {
    if (node->op == plain) return GateFunction{node->op, {}, in};
  }
  if (node->op == "HardSigmoid")
    return GateFunction{node->op, {node->float_attr("alpha", 0.2), node->float_attr("beta", 0.5)}, in};
  if (node->op == "LeakyRelu") return GateFunction{node->op, {node->float_attr("alpha", 0.01)}, in};
  if (node->op == "Elu") return GateFunction{node->op, {node->float_attr("alpha", 1)}, in};
  return std::nullopt;
}

Value* unranked(Value* value) {
  while (value->producer && changes_rank_only(*value->producer)) value = value->producer->inputs.front();
  return value;
}

bool is_zero(Value* value) {
  const Value* base = unranked(value);
  if (base->constant) {
    if (base->constant->is_absent() || !is_float(base->dtype())) return false;
    const std::vector<double> numbers = load_doubles(*base->constant);
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == 0; });
  }
  const Node* filled = made_by(base, "ConstantOfShape");
  if (!filled) return false;
  const Tensor* number = filled->tensor_attr("value");
  return !number || load_doubles(*number).front() == 0;
}

bool is_same_state(Value* a, Value* b) {
  return unranked(a) == unranked(b) || (is_zero(a) && is_zero(b));
}

void copy_columns(const GateTerm& term, int64_t width, bool negate, double* to, int64_t stride) {
  const Tensor& weights = *term.weights->constant;
  const std::vector<double> numbers = load_doubles(weights);
  const int64_t row_step = term.transposed ? 1 : weights.dims()[1];
  const int64_t column_step = term.transposed ? weights.dims()[1] : 1;
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t r = 0; r < term.depth; ++r) {
      const int64_t at = (term.first_row + r) * row_step + (term.first_column + c) * column_step;
      to[c * stride + r] += negate ? -numbers[static_cast<size_t>(at)] : numbers[static_cast<size_t>(at)];
    }
  }
}

}  // namespace neo
