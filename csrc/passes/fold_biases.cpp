#include <algorithm>
#include <cmath>
#include <functional>

#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

bool is_clamped(const Node& node) {
  return node.has_attr("clamp_min") || node.has_attr("clamp_max");
}

// Moves the bounds of a clamp by a function that is the same for all channels; `turns` where that makes the lower one
// the upper one.
void move_clamp(Node& node, bool turns, const std::function<double(double)>& move) {
  const bool has_min = node.has_attr("clamp_min"), has_max = node.has_attr("clamp_max");
  const double lo = has_min ? move(node.float_attr("clamp_min", 0)) : 0;
  const double hi = has_max ? move(node.float_attr("clamp_max", 0)) : 0;
  node.attrs.erase("clamp_min");
  node.attrs.erase("clamp_max");
  if (has_min) node.attrs.insert_or_assign(turns ? "clamp_max" : "clamp_min", lo);
  if (has_max) node.attrs.insert_or_assign(turns ? "clamp_min" : "clamp_max", hi);
}

bool fold_biases_in_body(Graph& graph, const PassContext& context) {
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
      const auto linear = as_linear(*producer, true);
      if (!linear || !(node->outputs.front()->shape() == input->shape())) continue;
      auto numbers = per_channel(*constant, input->shape().rank(), linear->channel_axis, linear->channels);
      if (!numbers) continue;
      // The bounds of a clamp are one for all channels.
      const bool clamped = is_clamped(*producer);
      const double first = numbers->empty() ? 0 : numbers->front();
      if (clamped && (!std::isfinite(first) || (is_product && first == 0) ||
                      std::any_of(numbers->begin(), numbers->end(), [&](double x) { return x != first; }))) {
        continue;
      }
      std::vector<double> bias = bias_of(*linear);
      if (is_product) {
        if (node->op == "Div") {
          if (std::any_of(numbers->begin(), numbers->end(), [](double x) { return x == 0; })) continue;
          for (double& x : *numbers) x = 1 / x;
        }
        for (size_t c = 0; c < bias.size(); ++c) bias[c] *= (*numbers)[c];
        const double scale = node->op == "Div" ? 1 / first : first;
        if (clamped) move_clamp(*producer, scale < 0, [&](double x) { return x * scale; });
        const bool has_bias = producer->input(LinearNode::kBias) != nullptr;
        set_weights(rewriter, *linear, *numbers);
        if (has_bias) set_bias(rewriter, *linear, bias);
      } else {
        const double sign = node->op == "Sub" ? -1 : 1;
        for (size_t c = 0; c < bias.size(); ++c) bias[c] += sign * (*numbers)[c];
        if (clamped) move_clamp(*producer, false, [&](double x) { return x + sign * first; });
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
// Gemm or MatMul before them; ones that are the same for all channels also through a clamp, whose bounds they move.
bool fold_biases(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold_biases_in_body(g, context); });
}

}  // namespace neo
