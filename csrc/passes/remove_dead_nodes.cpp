#include <unordered_set>

#include "passes/pass.h"

namespace neo {
namespace {

bool remove_dead(Graph& graph, const OpRegistry& ops) {
  std::unordered_set<const Node*> live;
  std::unordered_set<const Value*> read;
  std::vector<const Value*> wanted(graph.outputs.begin(), graph.outputs.end());
  while (!wanted.empty()) {
    const Value* v = wanted.back();
    wanted.pop_back();
    if (!v) continue;
    read.insert(v);
    if (!v->producer || !live.insert(v->producer).second) continue;
    wanted.insert(wanted.end(), v->producer->inputs.begin(), v->producer->inputs.end());
  }
  bool changed = live.size() != graph.nodes().size();
  graph.erase_nodes([&](const Node& node) { return live.count(&node) == 0; });
  for (const auto& node : graph.nodes()) {
    const Op* op = ops.find(node->op);
    // Bodies, and attributes of operators with any number of results, say how many there are.
    if (!op || !node->bodies.empty() || op->max_outputs < 0) continue;
    const auto needed = static_cast<size_t>(op->min_outputs);
    for (size_t i = needed; i < node->outputs.size(); ++i) {
      if (!node->outputs[i] || read.count(node->outputs[i]) > 0) continue;
      node->outputs[i] = nullptr;
      changed = true;
    }
    while (node->outputs.size() > needed && !node->outputs.back()) node->outputs.pop_back();
  }
  graph.erase_unused_values();
  return changed;
}

}  // namespace

// Nodes that no output depends on go, and the constants only they read; so do optional results that nobody reads.
bool remove_dead_nodes(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return remove_dead(g, context.ops); });
}

}  // namespace neo
