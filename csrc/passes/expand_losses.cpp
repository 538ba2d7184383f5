#include "passes/rewriter.h"

namespace neo {
namespace {

bool expand_losses_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const Value* x = node->inputs.empty() ? nullptr : node->inputs[0];
    if (node->op != "SoftmaxCrossEntropyLoss" || !x->shape().has_rank() || !is_float(x->dtype())) continue;
    std::vector<Value*> operands = node->inputs;
    operands[0] = rewriter.insert(node, "LogSoftmax", {operands[0]}, {{"axis", int64_t{1}}});
    if (Value* probabilities = node->output(1)) rewriter.replace(probabilities, operands[0]);
    if (Value* loss = node->output(0)) {
      rewriter.replace(loss, rewriter.insert(node, "NegativeLogLikelihoodLoss", std::move(operands), node->attrs));
    }
  }
  return rewriter.finish();
}

}  // namespace

// A SoftmaxCrossEntropyLoss is the loss of a LogSoftmax, which has routines.
bool expand_losses(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return expand_losses_in_body(body, context); });
}

}  // namespace neo
