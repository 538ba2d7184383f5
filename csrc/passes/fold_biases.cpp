#include <algorithm>

#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

bool fold(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const bool is_product = node->op == "Mul" || node->op == "Div";
    const bool is_ordered = node->op == "Sub" || node->op == "Div";
    if (!is_product && node->op != "Add" && node->op != "Sub") continue;
    for (size_t side = 0; side < (is_ordered ? 1 : 2); ++side) {
      Value* input = node->inputs[side];
      const Value* constant = node->inputs[1 - side];
      Node* producer = input->producer;
      if (!producer || !constant->constant || rewriter.only_reader(input) != node) continue;
      const auto linear = as_linear(*producer);
      if (!linear || !(node->outputs.front()->shape() == input->shape())) continue;
      auto numbers = per_channel(*constant, input->shape().rank(), linear->channel_axis, linear->channels);
      if (!numbers) continue;
      std::vector<double> bias = bias_of(*linear);
      if (is_product) {
        if (node->op == "Div") {
          if (std::any_of(numbers->begin(), numbers->end(), [](double x) { return x == 0; })) continue;
          for (double& x : *numbers) x = 1 / x;
        }
        for (size_t c = 0; c < bias.size(); ++c) bias[c] *= (*numbers)[c];
        const bool has_bias = producer->input(linear->bias_input) != nullptr;
        set_weights(rewriter, *linear, *numbers);
        if (has_bias) set_bias(rewriter, *linear, bias);
      } else {
        const double sign = node->op == "Sub" ? -1 : 1;
        for (size_t c = 0; c < bias.size(); ++c) bias[c] += sign * (*numbers)[c];
        set_bias(rewriter, *linear, bias);
      }
      rewriter.fold_into(node->outputs.front(), input);
      break;
    }
  }
  return rewriter.finish();
}

}  // namespace

// Additions of constants and multiplications by constants per channel go into the bias and the weights of the Conv,
// Gemm or MatMul before them.
bool fold_biases(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold(g, context); });
}

}  // namespace neo
