#include "passes/pass.h"

namespace neo {
namespace {

bool is_identity(const Node& node) {
  const Value* in = node.input(0);
  const Value* out = node.output(0);
  if (!in || !out) return false;
  if (node.op == "Identity") return true;
  if (node.op == "Dropout") return node.output(1) == nullptr && (!node.input(2) || node.input(2)->constant);
  if (node.op == "Cast") return in->type.is_tensor() && in->dtype() == out->dtype() && in->dtype() != DType::Undefined;
  return false;
}

bool remove(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!is_identity(*node)) continue;
    if (node->op == "Dropout" && node->input(2) && load_int64(DType::Bool, node->input(2)->constant->data()) != 0) continue;
    Value* in = node->inputs.front();
    Value* out = node->outputs.front();
    // A graph's output keeps its own name; an input or constant handed straight out stays a copy.
    if (graph.is_output(out) && (!in->producer || graph.is_output(in))) continue;
    graph.replace_uses(out, in);
    changed = true;
  }
  return changed;
}

}  // namespace

// Identity, inference-time Dropout and casts to the same dtype go.
bool remove_identities(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [](Graph& g) { return remove(g); });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
