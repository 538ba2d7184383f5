#include "passes/transposes.h"

#include <algorithm>
#include <numeric>

#include "passes/pattern.h"

namespace neo {
namespace {

using Permutation = std::vector<int64_t>;

// A value that is Transpose(x, perm).
struct Turned {
  Value* x = nullptr;
  Permutation perm;
};

std::optional<Turned> as_turned(const Value* value) {
  const Node* node = made_by(value, "Transpose");
  const auto perm = node ? axes_of_transpose(*node) : std::nullopt;
  return perm ? std::optional(Turned{node->inputs.front(), *perm}) : std::nullopt;
}

bool is_identity(const Permutation& perm) {
  return std::is_sorted(perm.begin(), perm.end());
}

Permutation inverse(const Permutation& perm) {
  Permutation inverted(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverted[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverted;
}

// The value with its axes in the given order; `value` itself where that is the order it has.
Value* turn(Rewriter& rewriter, const Node& position, Value* value, const Permutation& perm,
            std::string_view like = {}) {
  return is_identity(perm) ? value : rewriter.insert(&position, "Transpose", {value}, {{"perm", perm}}, like);
}

int64_t from_end(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

// A constant of at most as many axes, turned back.
Value* turn_constant(Rewriter& rewriter, const Value& constant, const Permutation& perm) {
  Dims dims = constant.constant->dims();
  dims.insert(dims.begin(), perm.size() - dims.size(), 1);
  const Permutation back = inverse(perm);
  Node transpose;
  transpose.op = "Transpose";
  transpose.attrs["perm"] = back;
  Value in;
  Value out;
  transpose.inputs = {&in};
  transpose.outputs = {&out};
  const std::vector<HostValue> operands{HostValue(constant.constant->reshaped(dims))};
  return rewriter.add_constant(constant.name, rewriter.context().evaluate(transpose, operands).front().tensor);
}

// Whether an operation on untransposed values can take an operand: what is transposed alike, one element, a constant,
// and what is so much smaller than the result that it may be transposed itself.
bool can_turn_back(const Node& node, const Value* value, const Permutation& perm) {
  if (!value->type.is_tensor() || !value->shape().has_rank() || value->shape().rank() > static_cast<int>(perm.size()))
    return false;
  if (const auto turned = as_turned(value)) return turned->perm == perm;
  if (value->shape().element_count().is(1) || value->constant) return true;
  const Shape& out = node.outputs.front()->shape();
  constexpr int64_t kSmall = 4;
  return value->shape().rank() == static_cast<int>(perm.size()) && value->shape().is_static() && out.is_static() &&
         kSmall * element_count(value->shape().to_dims()) <= element_count(out.to_dims());
}

Value* turn_back(Rewriter& rewriter, const Node& node, Value* value, const Permutation& perm) {
  if (const auto turned = as_turned(value)) return turned->x;
  if (value->shape().element_count().is(1)) return value;
  return value->constant ? turn_constant(rewriter, *value, perm)
                         : turn(rewriter, node, value, inverse(perm), value->name);
}

// Integers of an operand, where it is a constant.
std::optional<std::vector<int64_t>> ints_of(const Value* value) {
  return value && value->constant ? std::optional(load_ints(*value->constant)) : std::nullopt;
}

Value* add_ints_like(Rewriter& rewriter, const Value& like, const std::vector<int64_t>& numbers) {
  return rewriter.add_ints(like.name, numbers, like.dtype());
}

// All operands take part alike: elementwise operators and Concat.
bool sink_through_operands(Rewriter& rewriter, Node& node, Attrs attrs) {
  std::optional<Turned> first;
  for (const Value* v : node.inputs) {
    if (v && !first) first = as_turned(v);
  }
  const Value* out = node.outputs.front();
  if (!first || out->shape().rank() != static_cast<int>(first->perm.size())) return false;
  for (const Value* v : node.inputs) {
    if (v && !can_turn_back(node, v, first->perm)) return false;
  }
  if (node.op == "Concat")
    attrs["axis"] = first->perm[static_cast<size_t>(from_end(node.int_attr("axis", 0), first->perm.size()))];
  std::vector<Value*> inputs;
  for (Value* v : node.inputs) inputs.push_back(v ? turn_back(rewriter, node, v, first->perm) : nullptr);
  Value* result = rewriter.insert(&node, node.op, std::move(inputs), std::move(attrs));
  rewriter.replace(node.outputs.front(), turn(rewriter, node, result, first->perm));
  return true;
}

bool sink_through_concat(Rewriter& rewriter, Node& node) {
  const bool whole = std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value* v) {
    return as_turned(v) || (v->constant && v->shape().element_count().range().lo > 1);
  });
  return whole && sink_through_operands(rewriter, node, node.attrs);
}

// Scales along an axis move with it.
bool sink_through_linear(Rewriter& rewriter, Node& node, const Turned& x) {
  if (node.int_attr("block_size", 0) != 0) return false;
  Attrs attrs = node.attrs;
  if (!node.inputs[1]->shape().has_rank()) return false;
  if (!node.inputs[1]->shape().element_count().is(1))
    attrs["axis"] = x.perm[static_cast<size_t>(from_end(node.int_attr("axis", 1), x.perm.size()))];
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = x.x;
  rewriter.replace(node.outputs.front(),
                   turn(rewriter, node, rewriter.insert(&node, node.op, std::move(inputs), std::move(attrs)), x.perm));
  return true;
}

bool sink_through_pad(Rewriter& rewriter, Node& node, const Turned& x) {
  const auto pads = ints_of(node.inputs[1]);
  if (!pads || node.input(3) || pads->size() != 2 * x.perm.size()) return false;
  std::vector<int64_t> turned(pads->size());
  for (size_t i = 0; i < x.perm.size(); ++i) {
    const auto axis = static_cast<size_t>(x.perm[i]);
    turned[axis] = (*pads)[i];
    turned[axis + x.perm.size()] = (*pads)[i + x.perm.size()];
  }
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = x.x;
  inputs[1] = add_ints_like(rewriter, *node.inputs[1], turned);
  rewriter.replace(node.outputs.front(),
                   turn(rewriter, node, rewriter.insert(&node, "Pad", std::move(inputs), node.attrs), x.perm));
  return true;
}

// Reductions and Squeeze: the axes of the second input are turned, or taken out.
bool sink_through_axes(Rewriter& rewriter, Node& node, const Turned& x, bool keeps) {
  auto axes = ints_of(node.input(1));
  if (!axes || axes->empty()) return false;
  std::vector<bool> gone(x.perm.size(), false);
  for (int64_t& axis : *axes) {
    axis = x.perm[static_cast<size_t>(from_end(axis, x.perm.size()))];
    gone[static_cast<size_t>(axis)] = true;
  }
  std::sort(axes->begin(), axes->end());
  Permutation perm;
  for (const int64_t axis : x.perm) {
    if (keeps) {
      perm.push_back(axis);
    } else if (!gone[static_cast<size_t>(axis)]) {
      perm.push_back(axis - std::count(gone.begin(), gone.begin() + axis, true));
    }
  }
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = x.x;
  inputs[1] = add_ints_like(rewriter, *node.inputs[1], *axes);
  rewriter.replace(node.outputs.front(),
                   turn(rewriter, node, rewriter.insert(&node, node.op, std::move(inputs), node.attrs), perm));
  return true;
}

bool sink_through_slice(Rewriter& rewriter, Node& node, const Turned& x) {
  const auto starts = ints_of(node.inputs[1]);
  if (!starts) return false;
  std::vector<int64_t> axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.input(3)) {
    const auto given = ints_of(node.input(3));
    if (!given) return false;
    axes = *given;
  }
  for (int64_t& axis : axes) axis = x.perm[static_cast<size_t>(from_end(axis, x.perm.size()))];
  std::vector<Value*> inputs = node.inputs;
  inputs.resize(std::max<size_t>(4, inputs.size()), nullptr);
  inputs[0] = x.x;
  inputs[3] = add_ints_like(rewriter, *node.inputs[1], axes);
  rewriter.replace(node.outputs.front(),
                   turn(rewriter, node, rewriter.insert(&node, "Slice", std::move(inputs), node.attrs), x.perm));
  return true;
}

bool sink_through_split(Rewriter& rewriter, Node& node, const Turned& x) {
  Attrs attrs = node.attrs;
  attrs["axis"] = x.perm[static_cast<size_t>(from_end(node.int_attr("axis", 0), x.perm.size()))];
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = x.x;
  const std::vector<Value*> parts = rewriter.insert_like(node, std::move(inputs), std::move(attrs));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]) rewriter.replace(node.outputs[i], turn(rewriter, node, parts[i], x.perm));
  }
  return true;
}

// Gather of one known position, which has an axis less than what it reads.
bool takes_one_position(const Node& node) {
  const Value* index = node.op == "Gather" ? node.input(1) : nullptr;
  return index && index->constant && index->shape().rank() == 0;
}

void take_before_transpose(Rewriter& rewriter, Node& node, const Turned& x) {
  const size_t at = static_cast<size_t>(from_end(node.int_attr("axis", 0), x.perm.size()));
  const int64_t taken = x.perm[at];
  Permutation perm;
  for (const int64_t axis : x.perm) {
    if (axis != taken) perm.push_back(axis > taken ? axis - 1 : axis);
  }
  Value* part = rewriter.insert(&node, "Gather", {x.x, node.inputs[1]}, {{"axis", taken}});
  rewriter.replace(node.outputs.front(), turn(rewriter, node, part, perm));
}

bool is_reduction(const Node& node) {
  static constexpr std::string_view kOps[] = {"ReduceMean",   "ReduceSum",      "ReduceMax", "ReduceMin",
                                              "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                              "ReduceLogSum", "ReduceLogSumExp"};
  return std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

}  // namespace

std::optional<std::vector<int64_t>> axes_of_transpose(const Node& node) {
  if (node.op != "Transpose" || !node.inputs.front()->shape().has_rank()) return std::nullopt;
  Permutation reversed(static_cast<size_t>(node.inputs.front()->shape().rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return node.ints_attr("perm", reversed);
}

bool join_transposes(Rewriter& rewriter, Node& node) {
  auto perm = axes_of_transpose(node);
  if (!perm) return false;
  Value* x = node.inputs.front();
  Value* out = node.outputs.front();
  const auto before = as_turned(x);
  if (before) {
    for (int64_t& axis : *perm) axis = before->perm[static_cast<size_t>(axis)];
    x = before->x;
  }
  if (is_identity(*perm)) {
    // A graph's output keeps its own name; an input or constant handed straight out stays a copy.
    if (rewriter.graph().is_output(out) && (!x->producer || rewriter.graph().is_output(x))) return false;
    rewriter.replace(out, x);
    return true;
  }
  if (!before) return false;
  node.attrs.insert_or_assign("perm", *perm);
  rewriter.set_input(&node, 0, x);
  return true;
}

bool take_positions_first(Rewriter& rewriter, Node& node) {
  if ((node.op != "Squeeze" && !takes_one_position(node)) || !node.symbols.empty()) return false;
  const auto x = as_turned(node.inputs.front());
  if (!x || !node.outputs.front()->shape().has_rank()) return false;
  const Value* read = node.op == "Squeeze" ? node.outputs.front() : node.inputs.front();
  const std::vector<Node*> readers = rewriter.readers(read);
  const bool all_take = rewriter.uses(read) == readers.size() && !readers.empty() &&
                        std::all_of(readers.begin(), readers.end(),
                                    [&](const Node* n) { return takes_one_position(*n) && n->inputs[0] == read; });
  if (!all_take) return false;
  if (node.op == "Squeeze") return sink_through_axes(rewriter, node, *x, false);
  take_before_transpose(rewriter, node, *x);
  return true;
}

bool sink_transposes(Rewriter& rewriter, Node& node) {
  if (node.inputs.empty() || !node.inputs.front() || !node.symbols.empty() || !node.bodies.empty()) return false;
  for (const Value* v : node.outputs) {
    if (v && (!v->type.is_tensor() || !v->shape().has_rank())) return false;
  }
  const auto x = as_turned(node.inputs.front());
  if (node.op == "Split") return x && sink_through_split(rewriter, node, *x);
  if (node.outputs.size() != 1 || !node.outputs.front()) return false;
  if (node.op == "Concat") return sink_through_concat(rewriter, node);
  const Op* op = rewriter.context().ops.find(node.op);
  if (op && op->layout == LayoutClass::Oblivious && !op->random)
    return sink_through_operands(rewriter, node, node.attrs);
  if (!x) return false;
  if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") return sink_through_linear(rewriter, node, *x);
  if (node.op == "Pad") return sink_through_pad(rewriter, node, *x);
  if (node.op == "Slice") return sink_through_slice(rewriter, node, *x);
  if (node.op == "Squeeze") return sink_through_axes(rewriter, node, *x, false);
  if (is_reduction(node)) return sink_through_axes(rewriter, node, *x, node.int_attr("keepdims", 1) != 0);
  return false;
}

}  // namespace neo
