#include "passes/rewriter.h"

namespace neo {
namespace {

bool split(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Sum" || node->inputs.size() < 2) continue;
    Value* sum = node->inputs.front();
    for (size_t i = 1; i < node->inputs.size(); ++i) sum = rewriter.insert(node, "Add", {sum, node->inputs[i]});
    rewriter.replace(node->outputs.front(), sum);
  }
  return rewriter.finish();
}

}  // namespace

// Sum becomes additions of two, which folds and fused routines know.
bool binarize_sum(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return split(g, context); });
}

}  // namespace neo
