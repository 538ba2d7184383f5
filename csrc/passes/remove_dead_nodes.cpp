#include <set>

#include "passes/pass.h"

namespace neo {
namespace {

bool remove_dead(Graph& graph) {
  std::set<const Node*> live;
  std::vector<const Value*> wanted(graph.outputs.begin(), graph.outputs.end());
  while (!wanted.empty()) {
    const Value* v = wanted.back();
    wanted.pop_back();
    if (!v || !v->producer || !live.insert(v->producer).second) continue;
    wanted.insert(wanted.end(), v->producer->inputs.begin(), v->producer->inputs.end());
  }
  const size_t before = graph.nodes().size();
  graph.erase_nodes([&](const Node& node) { return live.count(&node) == 0; });
  graph.erase_unused_values();
  return graph.nodes().size() != before;
}

}  // namespace

// Nodes that no output depends on go, and the constants only they read.
bool remove_dead_nodes(Graph& graph, const PassContext&) {
  return for_each_body(graph, [](Graph& g) { return remove_dead(g); });
}

}  // namespace neo
