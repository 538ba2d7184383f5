#include <algorithm>

#include "passes/pattern.h"

namespace neo {
namespace {

bool is_reshape(const Node& node) {
  return node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" || node.op == "Unsqueeze";
}

bool eliminate_reshapes_in_body(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!is_reshape(*node)) continue;
    Value* in = node->inputs.front();
    Value* out = node->outputs.front();
    if (!in->type.is_tensor() || !in->shape().has_rank() || !out->shape().has_rank()) continue;
    // Sizes that a reshape gives names to are read off its result.
    if (!node->symbols.empty() || (in->producer && !in->producer->symbols.empty())) continue;
    if (in->shape() == out->shape() && !(graph.is_output(out) && (!in->producer || graph.is_output(in)))) {
      graph.replace_uses(out, in);
      changed = true;
      continue;
    }
    // A reshape of a reshape reads the first one's input.
    if (in->producer && is_reshape(*in->producer) && node->op == "Reshape") {
      const Value* target = node->input(1);
      // 0 in the target copies a size of the input, which may be another's.
      const bool copies = !target || !target->contents ||
                          std::any_of(target->contents->begin(), target->contents->end(),
                                      [](const Dim& d) { return d.range().lo <= 0; });
      const bool fixed = target && target->constant && node->int_attr("allowzero", 0) == 0 && [&] {
        const Shape& source = in->producer->inputs.front()->shape();
        const std::vector<int64_t> dims = load_ints(*target->constant);
        for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
          const bool is_same =
              source.has_rank() && i < std::min(source.rank(), in->shape().rank()) && source[i] == in->shape()[i];
          if (dims[static_cast<size_t>(i)] == 0 && !is_same) return false;
        }
        return true;
      }();
      if (copies && !fixed) continue;
      node->inputs.front() = in->producer->inputs.front();
      changed = true;
    }
  }
  return changed;
}

// Whether two shapes differ in nothing but the last axis.
bool has_rows_of(const Shape& a, const Shape& b) {
  return a.has_rank() && b.has_rank() && a.rank() == b.rank() && a.rank() >= 2 &&
         std::equal(a.dims().begin(), a.dims().end() - 1, b.dims().begin());
}

// Exporters multiply by a matrix with all rows in one axis: Reshape(MatMul(Reshape(x), w)) is MatMul(x, w) where the
// rows come back as they were.
bool multiply_in_place(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (!is_reshape(*node)) continue;
    const Node* product = made_by(node->inputs.front(), "MatMul");
    if (!product || rewriter.only_reader(node->inputs.front()) != node) continue;
    const Node* flat = product->inputs.front()->producer;
    if (!flat || !is_reshape(*flat) || !node->symbols.empty() || !flat->symbols.empty()) continue;
    Value* x = flat->inputs.front();
    const Shape& weights = product->inputs[1]->shape();
    const Shape& out = node->outputs.front()->shape();
    if (!weights.has_rank() || weights.rank() != 2 || !has_rows_of(x->shape(), out)) continue;
    if (x->shape().dims().back() != weights[0] || out.dims().back() != weights[1]) continue;
    std::vector<Value*> inputs = product->inputs;
    inputs.front() = x;
    rewriter.replace(node->outputs.front(), rewriter.insert(node, "MatMul", std::move(inputs), product->attrs));
  }
  return rewriter.finish();
}

// The axis of a shape that another has as two, all others being equal; -1 where there is none.
int split_axis(const Shape& whole, const Shape& split) {
  if (!whole.has_rank() || !split.has_rank() || split.rank() != whole.rank() + 1) return -1;
  int axis = 0;
  while (axis + 1 < whole.rank() && whole[axis] == split[axis]) ++axis;
  if (!(split[axis] * split[axis + 1] == whole[axis])) return -1;
  for (int i = axis + 1; i < whole.rank(); ++i) {
    if (!(whole[i] == split[i + 1])) return -1;
  }
  return axis;
}

// An axis that is split behind a transpose, as batch and heads are by some exporters, is split before it: the transpose
// is then next to the product that reads it.
bool split_before_transposing(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Reshape" || !node->symbols.empty()) continue;
    const Node* turn = made_by(node->inputs.front(), "Transpose");
    if (!turn || rewriter.only_reader(node->inputs.front()) != node || !turn->has_attr("perm")) continue;
    const Shape& to = node->outputs.front()->shape();
    const int axis = split_axis(turn->outputs.front()->shape(), to);
    Value* x = turn->inputs.front();
    if (axis < 0 || !x->shape().has_rank()) continue;
    const std::vector<int64_t> axes = turn->ints_attr("perm");
    const int64_t parted = axes[static_cast<size_t>(axis)];
    std::vector<Dim> dims = x->shape().dims();
    dims[static_cast<size_t>(parted)] = to[axis];
    dims.insert(dims.begin() + parted + 1, to[axis + 1]);
    std::vector<int64_t> target, perm;
    for (const Dim& d : dims) target.push_back(d.is_constant() ? d.value() : -1);
    if (std::count(target.begin(), target.end(), -1) > 1 || std::count(target.begin(), target.end(), 0) > 0) continue;
    for (const int64_t from : axes) {
      perm.push_back(from > parted ? from + 1 : from);
      if (from == parted) perm.push_back(from + 1);
    }
    Value* split = rewriter.insert(node, "Reshape", {x, rewriter.add_ints(x->name + ".split", target)}, {}, x->name);
    rewriter.replace(node->outputs.front(), rewriter.insert(node, "Transpose", {split}, {{"perm", perm}}));
  }
  return rewriter.finish();
}

}  // namespace

// Reshapes to the same shape go; of reshapes in a row the last remains; those around a product by a matrix go, and
// those that split an axis go before a transpose.
bool eliminate_reshapes(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [&](Graph& g) {
    bool any = eliminate_reshapes_in_body(g);
    any = multiply_in_place(g, context) || any;
    return split_before_transposing(g, context) || any;
  });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
