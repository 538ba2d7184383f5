#include <cmath>
#include <set>

#include "ops/infer.h"
#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

// Inference-time batch norm as y = x * scale + shift per channel.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

std::optional<Affine> as_affine(const Node& node) {
  if (node.op != "BatchNormalization" || node.int_attr("training_mode", 0) != 0) return std::nullopt;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) return std::nullopt;
  }
  std::vector<std::vector<double>> p;
  for (size_t i = 1; i < 5; ++i) {
    if (!node.input(i) || !node.input(i)->constant) return std::nullopt;
    p.push_back(load_doubles(*node.input(i)->constant));
  }
  const double epsilon = node.float_attr("epsilon", 1e-5);
  Affine affine;
  for (size_t c = 0; c < p[0].size(); ++c) {
    const double scale = p[0][c] / std::sqrt(p[3][c] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(p[1][c] - p[2][c] * scale);
  }
  return affine;
}

bool fold(Graph& graph, const PassContext& context) {
  bool changed = false;
  Graph::Users users = graph.users();
  std::set<const Node*> dead;
  std::vector<Node*> nodes;
  for (const auto& n : graph.nodes()) nodes.push_back(n.get());
  for (Node* node : nodes) {
    const auto affine = as_affine(*node);
    if (!affine) continue;
    Value* input = node->inputs.front();
    Value* output = node->outputs.front();
    Node* producer = input->producer;
    std::optional<LinearNode> linear;
    if (producer && !dead.count(producer) && only_reader(graph, users, input) == node) linear = as_linear(*producer);
    if (linear && linear->channel_axis == 1 && linear->channels == static_cast<int64_t>(affine->scale.size())) {
      std::vector<double> bias = bias_of(*linear);
      for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine->scale[c] + affine->shift[c];
      producer->inputs[1] = graph.add_constant(producer->inputs[1]->name, scaled_weights(*linear, affine->scale));
      set_bias(graph, *linear, bias);
      graph.replace_uses(output, input);
    } else if (input->shape().has_rank() && input->dtype() == DType::Float32) {
      // On its own it is a multiplication and an addition, which elementwise programs take.
      Dims dims(static_cast<size_t>(input->shape().rank()), 1);
      dims[1] = static_cast<int64_t>(affine->scale.size());
      Tensor scale(input->dtype(), dims);
      Tensor shift(input->dtype(), dims);
      store_doubles(scale, affine->scale);
      store_doubles(shift, affine->shift);
      Node* mul = graph.insert_before(node, "Mul", {input, graph.add_constant(output->name + ".scale", scale)}, {output->name + ".scaled"}, {}, node->name);
      infer_node(*mul, context.ops, *graph.symbols());
      Node* add = graph.insert_before(node, "Add", {mul->outputs.front(), graph.add_constant(output->name + ".shift", shift)}, {output->name}, {}, node->name);
      infer_node(*add, context.ops, *graph.symbols());
      graph.replace_uses(output, add->outputs.front());
    } else {
      continue;
    }
    dead.insert(node);
    changed = true;
    users = graph.users();
  }
  graph.erase_nodes([&](const Node& n) { return dead.count(&n) > 0; });
  graph.erase_unused_values();
  return changed;
}

}  // namespace

// Inference-time BatchNormalization goes into the weights of the node before it, or becomes a multiplication and an addition.
bool fold_batch_norms(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold(g, context); });
}

}  // namespace neo
