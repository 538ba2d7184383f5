#include <algorithm>
#include <numeric>

#include "ops/window.h"
#include "passes/pass.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// The types of all operands are one type of floats that routines compute with, and the rank is known.
bool is_plain_norm(const Node& node) {
  const Value* x = node.inputs.front();
  if (!x->type.is_tensor() || !x->shape().has_rank()) return false;
  if (x->dtype() != DType::Float32 && x->dtype() != DType::Float64) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Value* v) { return v && v->type.is_tensor() && v->dtype() == x->dtype(); });
}

// The parts of one node, before it.
class NormParts {
 public:
  NormParts(Rewriter& rewriter, Node* node) : rewriter_(rewriter), node_(node), name_(node->outputs.front()->name) {}

  Value* add(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(node_, op, std::move(inputs), std::move(attrs));
  }
  Value* number(std::string_view what, double x) {
    return rewriter_.add_scalar(name_ + "." + std::string(what), node_->inputs.front()->dtype(), x);
  }
  Value* reduce(std::string_view op, Value* x, const std::vector<int64_t>& axes) {
    return add(op, {x, rewriter_.add_ints(name_ + ".axes", axes)}, {{"keepdims", int64_t{1}}});
  }
  // One number per channel as a tensor that broadcasts to the input.
  Value* along_channels(Value* x) {
    const int rank = node_->inputs.front()->shape().rank();
    if (rank < 3) return x;
    std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
    std::iota(axes.begin(), axes.end(), 1);
    return add("Unsqueeze", {x, rewriter_.add_ints(name_ + ".axes", axes)});
  }

 private:
  Rewriter& rewriter_;
  Node* node_;
  std::string name_;
};

// x / norm, where a norm of zero is one of zeros alone.
Value* expand_lp_norm(NormParts& parts, const Node& node) {
  Value* x = node.inputs.front();
  if (x->shape().rank() == 0) return nullptr;
  Value* norm = parts.reduce(node.int_attr("p", 2) == 1 ? "ReduceL1" : "ReduceL2", x, {node.int_attr("axis", -1)});
  Value* is_zero = parts.add("Equal", {norm, parts.number("zero", 0)});
  return parts.add("Div", {x, parts.add("Where", {is_zero, parts.number("one", 1), norm})});
}

// (x - mean) / (deviation + 1e-9)
Value* expand_mvn(NormParts& parts, const Node& node) {
  Value* x = node.inputs.front();
  std::vector<int64_t> axes = {0, 2, 3};
  if (node.has_attr("axes")) {
    axes = node.ints_attr("axes");
  } else {
    axes.erase(std::remove_if(axes.begin(), axes.end(), [&](int64_t a) { return a >= x->shape().rank(); }), axes.end());
  }
  if (axes.empty()) return nullptr;
  Value* centred = parts.add("Sub", {x, parts.reduce("ReduceMean", x, axes)});
  Value* variance = parts.reduce("ReduceMean", parts.add("Mul", {centred, centred}), axes);
  Value* deviation = parts.add("Add", {parts.add("Sqrt", {variance}), parts.number("least", 1e-9)});
  return parts.add("Div", {centred, deviation});
}

// x * factor + (bias - mean * factor) with factor = scale / sqrt(variance + epsilon): parameters that are no constants.
Value* expand_batch_norm(NormParts& parts, const Node& node) {
  const auto& in = node.inputs;
  if (node.int_attr("training_mode", 0) != 0 || node.outputs.size() > 1 || in.front()->shape().rank() < 2) {
    return nullptr;
  }
  // Sizes that only a call tells are for the operator to check: the parts would broadcast.
  for (size_t i = 1; i < 5; ++i) {
    const Shape& shape = in[i]->shape();
    if (!shape.has_rank() || shape.rank() != 1 || !(shape[0] == in.front()->shape()[1])) return nullptr;
  }
  Value* shifted = parts.add("Add", {in[4], parts.number("epsilon", node.float_attr("epsilon", 1e-5F))});
  Value* factor = parts.add("Div", {in[1], parts.add("Sqrt", {shifted})});
  Value* shift = parts.add("Sub", {in[2], parts.add("Mul", {in[3], factor})});
  return parts.add("Add", {parts.add("Mul", {in[0], parts.along_channels(factor)}), parts.along_channels(shift)});
}

// The elements of an LpPool's window, and the window's padding with the part of the last windows beyond the input, so
// that each of them has as many. Where a size is not a constant, each window fits what the stride could lack; none
// where a window could then lie in the padding alone, which ceil_mode leaves out.
std::optional<int64_t> fill_window(const Node& node, Attrs& attrs) {
  const Shape &x = node.inputs.front()->shape(), &y = node.outputs.front()->shape();
  Window window = read_window(node, x.rank() - 2);
  int64_t taps = 1;
  for (int axis = 0; axis < window.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    taps *= window.kernel[i];
    if (!window.ceil_mode || window.auto_pad != AutoPad::NotSet) continue;
    const Dim input = x[axis + 2], output = y[axis + 2];
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t& end = window.pads[i + static_cast<size_t>(window.rank())];
    if (input.is_constant() && output.is_constant()) {
      end = std::max(end, (output.value() - 1) * window.strides[i] + extent - input.value() - window.pads[i]);
      continue;
    }
    end += window.strides[i] - 1;
    if (end >= extent) return std::nullopt;
  }
  if (window.auto_pad == AutoPad::NotSet) {
    attrs["pads"] = window.pads;
    attrs.erase("auto_pad");
  }
  attrs.erase("ceil_mode");
  return taps;
}

// The root of the sum of powers of the magnitudes below a window, or in a plane.
Value* expand_lp_pool(NormParts& parts, const Node& node) {
  Value* x = node.inputs.front();
  const int rank = x->shape().rank();
  const int64_t p = node.int_attr("p", 2);
  const bool is_global = node.op == "GlobalLpPool";
  if (rank < 3 || rank > 5 || !node.outputs.front()->shape().has_rank()) return nullptr;
  if (is_global && p <= 2) return nullptr;  // a reduction
  Attrs attrs = node.attrs;
  attrs.erase("p");
  attrs["count_include_pad"] = int64_t{1};
  const auto taps = is_global ? std::optional<int64_t>(1) : fill_window(node, attrs);
  if (!taps) return nullptr;
  Value* power = p == 2 ? parts.add("Mul", {x, x}) : parts.add("Abs", {x});
  if (p > 2) power = parts.add("Pow", {power, parts.number("power", static_cast<double>(p))});
  Value* sum = nullptr;
  if (is_global) {
    std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
    std::iota(axes.begin(), axes.end(), 2);
    sum = parts.reduce("ReduceSum", power, axes);
  } else {
    Value* mean = parts.add("AveragePool", {power}, std::move(attrs));
    sum = parts.add("Mul", {mean, parts.number("taps", static_cast<double>(*taps))});
  }
  if (p == 1) return sum;
  return p == 2 ? parts.add("Sqrt", {sum}) : parts.add("Pow", {sum, parts.number("root", 1 / static_cast<double>(p))});
}

bool expand_normalizations_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const auto expand = node->op == "LpNormalization"                        ? expand_lp_norm
                        : node->op == "MeanVarianceNormalization"            ? expand_mvn
                        : node->op == "BatchNormalization"                   ? expand_batch_norm
                        : node->op == "LpPool" || node->op == "GlobalLpPool" ? expand_lp_pool
                                                                             : nullptr;
    if (!expand || rewriter.is_retired(node) || !is_plain_norm(*node)) continue;
    NormParts parts(rewriter, node);
    if (Value* result = expand(parts, *node)) rewriter.replace(node->outputs.front(), result);
  }
  return rewriter.finish();
}

}  // namespace

// Normalizations and pools of norms that have no routine of their own, as reductions, means and elementwise operators.
bool expand_normalizations(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return expand_normalizations_in_body(g, context); });
}

}  // namespace neo
