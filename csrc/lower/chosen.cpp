#include "lower/chosen.h"

namespace neo {

const SelectionProblem::Choice& Chosen::of(const Node& node) const {
  const auto variable = static_cast<size_t>(problem_.index.at(&node));
  return problem_.nodes[variable].choices[static_cast<size_t>(choices_[variable])];
}

const Node& Chosen::executing_node(const Node& node) const {
  const int group = of(node).absorbed_by;
  return group < 0 ? node : *problem_.groups[static_cast<size_t>(group)].nodes.back();
}

std::vector<const Node*> Chosen::nodes(const Graph& graph) const {
  std::vector<const Node*> found;
  for (const auto& node : graph.nodes()) {
    const Node& executing = executing_node(*node);
    const int expansion = of(executing).expansion;
    if (expansion < 0) {
      found.push_back(node.get());
    } else if (&executing == node.get()) {
      for (const auto& inner : problem_.expansions[static_cast<size_t>(expansion)].graph->nodes())
        found.push_back(inner.get());
    }
  }
  return found;
}

std::vector<const Graph*> Chosen::inner_graphs(const Graph& graph) const {
  std::vector<const Graph*> found;
  for (const auto& expanded : problem_.expansions) {
    if (expanded.around == &graph) found.push_back(expanded.graph.get());
  }
  return found;
}

const Node* Chosen::maker(const Value& value) const {
  if (!value.producer || value.constant) return nullptr;
  const Node& executing = executing_node(*value.producer);
  const int expansion = of(executing).expansion;
  if (expansion < 0) return &executing;
  return &executing_node(*problem_.expansions[static_cast<size_t>(expansion)].graph->outputs.front()->producer);
}

std::vector<const Value*> Chosen::read_values(const Node& node) const {
  std::vector<const Value*> values;
  if (const auto& candidate = of(node).candidate) {
    for (size_t i = 0; i < candidate->inputs.size(); ++i) {
      if (candidate->inputs[i]) values.push_back(problem_.outer(candidate->workload->inputs[i]));
    }
  } else {
    for (const Value* v : node.inputs) {
      if (v) values.push_back(problem_.outer(v));
    }
  }
  return values;
}

}  // namespace neo
