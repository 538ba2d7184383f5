#include "passes/pattern.h"

namespace neo {
namespace {

// The input that a node's result is equal to; null where it computes something.
Value* unchanged(const Node& node) {
  Value* in = node.input(0);
  const Value* out = node.output(0);
  if (!in || !out) return nullptr;
  if (node.op == "Identity" || (node.op == "Sum" && node.inputs.size() == 1)) return in;
  if (node.op == "Dropout") {
    const Value* training = node.input(2);
    const bool trains = training && (!training->constant || load_int64(DType::Bool, training->constant->data()) != 0);
    return node.output(1) || trains ? nullptr : in;
  }
  if (!in->type.is_tensor() || in->dtype() == DType::Undefined) return nullptr;
  if (node.op == "Cast") return in->dtype() == out->dtype() ? in : nullptr;
  const bool sum = node.op == "Add" || node.op == "Sub";
  const bool product = node.op == "Mul" || node.op == "Div";
  if (!sum && !product) return nullptr;
  const bool ordered = node.op == "Sub" || node.op == "Div";
  for (size_t side = 0; side < (ordered ? 1 : 2); ++side) {
    if (uniform(node.inputs[1 - side]) == (sum ? 0.0 : 1.0) && node.inputs[side]->type == out->type)
      return node.inputs[side];
  }
  return nullptr;
}

bool remove(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    Value* in = rewriter.is_retired(node) ? nullptr : unchanged(*node);
    if (!in) continue;
    Value* out = node->outputs.front();
    // A graph's output keeps its own name; an input or constant handed straight out stays a copy.
    if (graph.is_output(out) && (!in->producer || graph.is_output(in))) continue;
    rewriter.replace(out, in);
  }
  return rewriter.finish();
}

}  // namespace

// Identity, inference-time Dropout, casts to the same dtype, sums with 0 and products with 1 go.
bool remove_identities(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return remove(g, context); });
}

}  // namespace neo
