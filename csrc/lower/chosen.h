#pragma once

#include <vector>

#include "candidates/problem.h"

namespace neo {

// The nodes that compute the nodes and values of a graph by the choices of a selection.
class Chosen {
 public:
  Chosen(const SelectionProblem& problem, const std::vector<int>& choices) : problem_(problem), choices_(choices) {}

  const SelectionProblem::Choice& of(const Node& node) const;
  // The node whose candidate computes another one: itself, or the root of the group that absorbed it.
  const Node& executing_node(const Node& node) const;
  // The nodes of a graph in order, those of inner graphs in the places of the roots that they compute.
  std::vector<const Node*> nodes(const Graph& graph) const;
  // All inner graphs for nodes of a graph, those that are not taken included.
  std::vector<const Graph*> inner_graphs(const Graph& graph) const;
  // The executing node that makes a value around inner graphs, which may be one of theirs; null for inputs and
  // constants.
  const Node* maker(const Value& value) const;
  // The values that are read when the node runs, those around an inner graph in place of its inputs.
  std::vector<const Value*> read_values(const Node& node) const;

 private:
  const SelectionProblem& problem_;
  const std::vector<int>& choices_;
};

}  // namespace neo
