#include <algorithm>
#include <map>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

// A Concat whose first inputs are, in order, all inputs of an earlier Concat on the same axis reads that one's result
// instead.
bool chain(Graph& graph) {
  bool changed = false;
  std::multimap<const Value*, Node*> by_first;
  for (const auto& node : graph.nodes()) {
    if (node->op != "Concat" || node->inputs.empty()) continue;
    const auto [begin, end] = by_first.equal_range(node->inputs.front());
    Node* longest = nullptr;
    for (auto it = begin; it != end; ++it) {
      Node* earlier = it->second;
      const size_t n = earlier->inputs.size();
      if (n < 2 || n >= node->inputs.size() || earlier->int_attr("axis", 0) != node->int_attr("axis", 0)) continue;
      if (!std::equal(earlier->inputs.begin(), earlier->inputs.end(), node->inputs.begin())) continue;
      if (!longest || n > longest->inputs.size()) longest = earlier;
    }
    by_first.emplace(node->inputs.front(), node.get());
    if (!longest) continue;
    const auto n = static_cast<std::ptrdiff_t>(longest->inputs.size());
    // Later nodes compare with the inputs as they were.
    std::vector<Value*> inputs{longest->outputs.front()};
    inputs.insert(inputs.end(), node->inputs.begin() + n, node->inputs.end());
    by_first.emplace(inputs.front(), node.get());
    node->inputs = std::move(inputs);
    changed = true;
  }
  return changed;
}

}  // namespace

// A concatenation of everything before (DenseNet) becomes a chain of growing ones: the problem stays thin and one
// growing buffer serves all of them.
bool chain_concats(Graph& graph, const PassContext&) {
  return for_each_body(graph, [](Graph& g) { return chain(g); });
}

}  // namespace neo
