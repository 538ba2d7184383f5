#pragma once

#include <unordered_set>

#include "ops/op.h"

namespace neo {

// Sets types, contents and guards of one node's outputs; checks arity and attributes. Errors name the node.
void infer_node(Node& node, const OpRegistry& ops, SymbolTable& symbols);

// By input: the rank that the operator needs of an input whose rank is open; -1 where any may do. Infers the node.
std::vector<int> required_ranks(Node& node, const OpRegistry& ops, SymbolTable& symbols);

// Infers a copy of a node with the types that its inputs turned out to have: what could not be checked before. For
// nodes with inputs of unknown rank; others are left alone.
void check_ranks(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs);
// Infers again, in order, the nodes that read one of the changed values and the stale ones, and what reads a result
// that this changes.
void infer_again(Graph& graph, const OpRegistry& ops, std::unordered_set<const Value*> changed,
                 const std::unordered_set<const Node*>& stale = {});
// Every node in order, bodies included. Outputs keep declared types where inference knows less.
void infer_graph(Graph& graph, const OpRegistry& ops);

// Runs a graph with the references alone, bodies included: constant folding, tests, the oracle of everything faster.
std::vector<HostValue> evaluate_graph(const Graph& graph, const OpRegistry& ops, std::span<const HostValue> inputs);

// One node with the reference; control flow too.
std::vector<HostValue> evaluate_node(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs);

// The longest sum behind one element of any node's result, from the operators' work at the sizes' hints; at least 1.
// Accuracy checks take their tolerance from it.
int64_t longest_reduction(const Graph& graph, const OpRegistry& ops);

}  // namespace neo
