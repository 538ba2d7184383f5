#include <set>

#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

bool fold(Graph& graph) {
  bool changed = false;
  Graph::Users users = graph.users();
  std::set<const Node*> dead;
  for (const auto& node : graph.nodes()) {
    const bool is_mul = node->op == "Mul";
    if (!is_mul && node->op != "Add" && node->op != "Sub") continue;
    for (size_t side = 0; side < 2; ++side) {
      if (node->op == "Sub" && side == 1) break;
      Value* input = node->inputs[side];
      const Value* constant = node->inputs[1 - side];
      Node* producer = input->producer;
      if (!producer || dead.count(producer) || !constant->constant || only_reader(graph, users, input) != node.get()) continue;
      const auto linear = as_linear(*producer);
      if (!linear || !(node->outputs.front()->shape() == input->shape())) continue;
      const auto numbers = per_channel(*constant, input->shape().rank(), linear->channel_axis, linear->channels);
      if (!numbers) continue;
      std::vector<double> bias = bias_of(*linear);
      if (is_mul) {
        producer->inputs[1] = graph.add_constant(producer->inputs[1]->name, scaled_weights(*linear, *numbers));
        for (size_t c = 0; c < bias.size(); ++c) bias[c] *= (*numbers)[c];
        if (producer->input(linear->bias_input)) set_bias(graph, *linear, bias);
      } else {
        const double sign = node->op == "Sub" ? -1 : 1;
        for (size_t c = 0; c < bias.size(); ++c) bias[c] += sign * (*numbers)[c];
        set_bias(graph, *linear, bias);
      }
      graph.replace_uses(node->outputs.front(), input);
      dead.insert(node.get());
      changed = true;
      users = graph.users();
      break;
    }
  }
  graph.erase_nodes([&](const Node& n) { return dead.count(&n) > 0; });
  graph.erase_unused_values();
  return changed;
}

}  // namespace

// Additions, subtractions and multiplications by constants per channel go into the bias and the weights of the Conv, Gemm or MatMul
// before them.
bool fold_biases(Graph& graph, const PassContext&) {
  return for_each_body(graph, [](Graph& g) { return fold(g); });
}

}  // namespace neo
