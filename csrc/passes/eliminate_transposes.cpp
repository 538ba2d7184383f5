#include <algorithm>
#include <numeric>
#include <set>

#include "passes/pattern.h"
#include "passes/transposes.h"

namespace neo {
namespace {

// Elements that transposes of a graph move; those that keep the order of all axes of more than one element move none,
// and what two nodes would compute alike counts once.
int64_t moved_elements(const Graph& graph) {
  int64_t total = 0;
  std::set<std::pair<const Value*, std::vector<int64_t>>> seen;
  for (const auto& node : graph.nodes()) {
    const auto perm = axes_of_transpose(*node);
    if (!perm || !seen.emplace(node->inputs.front(), *perm).second) continue;
    const Shape& shape = node->inputs.front()->shape();
    int64_t last = -1;
    int64_t elements = 1;
    bool moves = false;
    for (const int64_t axis : *perm) {
      const Dim& size = shape[static_cast<int>(axis)];
      elements *= std::clamp<int64_t>(size.hint(), 1, 1 << 20);
      elements = std::min<int64_t>(elements, int64_t{1} << 40);
      if (size.is(1)) continue;
      moves = moves || axis < last;
      last = std::max(last, axis);
    }
    if (moves) total += elements;
  }
  return total;
}

bool is_transposing(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return node->op == "Transpose"; });
}

// Transposes that move nothing go, neighbours become one, and single positions are taken before them.
bool clean(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (!rewriter.is_retired(node) && !take_positions_first(rewriter, *node)) join_transposes(rewriter, *node);
  }
  return rewriter.finish();
}

// In topological order, so that a transpose moves down as far as it can.
void sink(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node)) continue;
    if (node->op == "Transpose") {
      join_transposes(rewriter, *node);
    } else {
      sink_transposes(rewriter, *node);
    }
  }
  rewriter.finish();
}

bool eliminate_transposes_in_body(Graph& graph, const PassContext& context) {
  if (!is_transposing(graph)) return false;
  const bool cleaned = clean(graph, context);
  // Whether it pays is seen at the end: some meet their inverses, some only move.
  const std::unique_ptr<Graph> trial = graph.clone();
  sink(*trial, context);
  if (moved_elements(*trial) >= moved_elements(graph)) return cleaned;
  sink(graph, context);
  return true;
}

}  // namespace

// Transposes that move nothing go, neighbours become one, and where fewer elements move in the end, all others sink
// through elementwise operators, Concat, Split, Slice, Pad, Squeeze and reductions until they meet their inverses.
bool eliminate_transposes(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return eliminate_transposes_in_body(g, context); });
}

}  // namespace neo
