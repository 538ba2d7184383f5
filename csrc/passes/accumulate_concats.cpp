#include <algorithm>
#include <map>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

struct Concat {
  Node* node;
  std::vector<Value*> inputs;  // as they were, or as they are
};

// A Concat whose first inputs are, in order, all inputs of an earlier Concat on the same axis reads that one's result
// instead.
bool chain(Graph& graph) {
  bool changed = false;
  std::multimap<const Value*, Concat> by_first;
  for (const auto& node : graph.nodes()) {
    if (node->op != "Concat" || node->inputs.empty()) continue;
    const std::vector<Value*> inputs = node->inputs;
    const auto [begin, end] = by_first.equal_range(inputs.front());
    const Concat* longest = nullptr;
    for (auto it = begin; it != end; ++it) {
      const Concat& earlier = it->second;
      const size_t n = earlier.inputs.size();
      if (n < 2 || n >= inputs.size() || earlier.node->int_attr("axis", 0) != node->int_attr("axis", 0)) continue;
      if (!std::equal(earlier.inputs.begin(), earlier.inputs.end(), inputs.begin())) continue;
      if (!longest || n > longest->inputs.size()) longest = &earlier;
    }
    if (longest) {
      node->inputs = {longest->node->outputs.front()};
      node->inputs.insert(node->inputs.end(), inputs.begin() + static_cast<std::ptrdiff_t>(longest->inputs.size()),
                          inputs.end());
      changed = true;
      by_first.emplace(node->inputs.front(), Concat{node.get(), node->inputs});
    }
    by_first.emplace(inputs.front(), Concat{node.get(), inputs});
  }
  return changed;
}

}  // namespace

// A concatenation of everything before (DenseNet) becomes a chain of growing ones: the problem stays thin and one
// growing buffer serves all of them.
bool accumulate_concats(Graph& graph, const PassContext&) {
  return for_each_body(graph, [](Graph& g) { return chain(g); });
}

}  // namespace neo
