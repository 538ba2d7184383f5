#include <algorithm>
#include <map>

#include "passes/pass.h"

namespace neo {
namespace {

bool same_values(const std::vector<Value*>& a, const std::vector<Value*>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value* x, const Value* y) {
    if (x == y) return true;
    return x && y && x->constant && y->constant && x->constant->size() <= 64 && identical(*x->constant, *y->constant);
  });
}

bool same_computation(const Node& a, const Node& b) {
  if (a.op != b.op || a.outputs.size() != b.outputs.size() || !same_values(a.inputs, b.inputs)) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!a.outputs[i] != !b.outputs[i]) return false;
  }
  return std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && identical(x.second, y.second); });
}

// Results whose sizes are born with the node have names of their own.
bool defines_symbols(const Node& node) {
  if (!node.symbols.empty()) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Value* v) {
    return v && (!v->type.is_tensor() || !v->shape().has_rank());
  });
}

bool merge(Graph& graph, const OpRegistry& ops) {
  bool changed = false;
  std::multimap<std::string, Node*> seen;
  for (const auto& node : graph.nodes()) {
    const Op* op = ops.find(node->op);
    if (!op || op->random || !node->bodies.empty() || defines_symbols(*node)) continue;
    std::string key = node->op;
    for (const Value* v : node->inputs) {
      if (v && !v->constant) key += " " + v->name;
    }
    const auto [first, last] = seen.equal_range(key);
    const auto twin = std::find_if(first, last, [&](const auto& entry) { return same_computation(*entry.second, *node); });
    if (twin == last) {
      seen.emplace(std::move(key), node.get());
      continue;
    }
    bool replaced = true;
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      Value* from = node->outputs[i];
      Value* to = twin->second->outputs[i];
      if (!from) continue;
      // Two outputs of the graph keep their two names.
      if (graph.is_output(from) && graph.is_output(to)) {
        replaced = false;
        continue;
      }
      graph.replace_uses(from, to);
    }
    changed = changed || replaced;
  }
  return changed;
}

}  // namespace

// Nodes that compute the same from the same values become one.
bool merge_common_nodes(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [&](Graph& g) { return merge(g, context.ops); });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
