#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace neo {

// Another way to compute a node, as a graph of its own that competes with the node's routines (docs/selection.md). Its
// rewrite is a pass that no pipeline runs: whether the rewritten form is faster is a matter of cost.
struct NodeExpansion {
  std::string_view name;  // of the pass, too
  std::string_view op;    // of the node that it rewrites
  bool (*rewrite)(Graph&, const PassContext&);
};
std::span<const NodeExpansion> standard_expansions();
std::string text_of(const NodeExpansion& expansion);  // "expansion/multiply_patches"

// The groups of nodes that an inner graph for a node would compute, each in topological order: the node alone, and with
// the movements of data before and behind it that nobody else reads, since the rewritten form may need none of them;
// sums and products with constants and joins to them may lie between.
std::vector<std::vector<const Node*>> expandable_groups(const Node& node, const Graph::Users& users,
                                                        const Graph& graph);

// The nodes as a graph that takes what they read, in order of first use and but for constants, and gives what the last
// one makes, under the same names, with `expansion` applied; null where it does not apply. Other values are named after
// the result.
std::unique_ptr<Graph> expand(const NodeExpansion& expansion, const std::vector<const Node*>& nodes, const Graph& graph,
                              const OpRegistry& ops);

}  // namespace neo
