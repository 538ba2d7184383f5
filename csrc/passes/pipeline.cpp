#include "base/check.h"
#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {

// What an exporter wrote, to what neo's routines take. Order matters: constants and shapes first, so that the rest sees numbers;
// recognition before folding, so that patterns are whole; folds of neighbours last.
std::span<const Pass> standard_pipeline() {
  static const Pass passes[] = {
      {"fold_constants", fold_constants},
      {"fold_shapes", fold_shapes},
      {"remove_identities", remove_identities},
      {"remove_dead_nodes", remove_dead_nodes},
      {"merge_common_nodes", merge_common_nodes},
      {"eliminate_reshapes", eliminate_reshapes},
      {"eliminate_transposes", eliminate_transposes},
      {"chain_concats", chain_concats},
      {"fold_batch_norms", fold_batch_norms},
      {"fold_biases", fold_biases},
      {"fold_clamps", fold_clamps},
      {"remove_dead_nodes", remove_dead_nodes},
  };
  return passes;
}

bool for_each_body(Graph& graph, const std::function<bool(Graph&)>& run) {
  bool changed = run(graph);
  for (const auto& node : graph.nodes()) {
    for (auto& [name, body] : node->bodies) changed = for_each_body(*body, run) || changed;
  }
  return changed;
}

void run_passes(Graph& graph, std::span<const Pass> passes, const PassContext& context, const PassObserver& observer) {
  for (const Pass& pass : passes) {
    const bool changed = pass.run(graph, context);
    if (observer) observer(pass, graph, changed);
  }
}

PassContext reference_context(const OpRegistry& ops) {
  return {ops, [&ops](const Node& node, std::span<const HostValue> inputs) { return evaluate_node(node, ops, inputs); }};
}

}  // namespace neo
