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
      // 0 in the target copies a size of the input, which would be another's.
      const bool copies = !target || !target->contents ||
                          std::any_of(target->contents->begin(), target->contents->end(),
                                      [](const Dim& d) { return d.range().lo <= 0; });
      const bool fixed = target && target->constant && node->int_attr("allowzero", 0) == 0 && [&] {
        const std::vector<int64_t> dims = load_ints(*target->constant);
        return std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d != 0; });
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

}  // namespace

// Reshapes to the same shape go; of reshapes in a row the last remains; those around a product by a matrix go.
bool eliminate_reshapes(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [&](Graph& g) {
    const bool multiplied = multiply_in_place(g, context);
    return eliminate_reshapes_in_body(g) || multiplied;
  });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
