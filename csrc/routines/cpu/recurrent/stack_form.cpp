#include "routines/cpu/recurrent/stack_form.h"

#include <algorithm>

#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

bool is_layer(const Node& node) {
  return node.op == "LSTM" || node.op == "GRU" || node.op == "RNN";
}

// Keeps the order of the elements.
bool is_reshape(const Node& node) {
  return node.op == "Squeeze" || node.op == "Reshape" || node.op == "Unsqueeze" || node.op == "Identity";
}

// Whether the group alone reads what a layer gives, which is its hidden states.
bool is_inner(const Node& layer, const Graph::Users& users, const Graph& graph) {
  for (size_t i = 1; i < layer.outputs.size(); ++i) {
    const Value* state = layer.outputs[i];
    if (state && (users.count(state) > 0 || graph.is_output(state))) return false;
  }
  return layer.output(0) && read_only_by_one(layer.output(0), users, graph);
}

std::optional<std::string> why_alone(const RecurrentForm& form) {
  if (form.dtype != DType::Float32) return "the numbers are float64";
  if (!form.has_constant_weights) return "the weights are not constants";
  if (form.lengths) return "the sequences have lengths of their own";
  if (form.directions != 1 || form.reverse) return "a layer needs the last step before the first one";
  if (form.batch_first && !form.x->shape()[0].is(1)) return "the rows of a step lie apart";
  return std::nullopt;
}

}  // namespace

std::vector<Workload> match_stacks(const Node& root, const Graph::Users& users, const Graph& graph) {
  std::vector<const Node*> nodes;  // the last one first
  size_t taken = 0;                // up to the first layer
  for (const Node* layer = &root; layer && is_layer(*layer);) {
    nodes.push_back(layer);
    taken = nodes.size();
    const Value* x = layer->inputs[0];
    const Node* before = x->producer;
    while (before && is_reshape(*before) && read_only_by_one(x, users, graph)) {
      nodes.push_back(before);
      x = before->inputs[0];
      before = x->producer;
    }
    layer = before && x == before->output(0) && is_layer(*before) && is_inner(*before, users, graph) ? before : nullptr;
  }
  nodes.resize(taken);
  if (taken == 1) return {};
  std::reverse(nodes.begin(), nodes.end());
  return {Workload::of(std::move(nodes))};
}

std::optional<RecurrentStack> read_stack(const Workload& workload, std::string* why) {
  const auto refuse = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  RecurrentStack stack;
  for (const Node* node : workload.nodes) {
    if (!is_layer(*node)) continue;
    std::string reason;
    std::optional<RecurrentForm> form = read_recurrent(*node, &reason);
    if (!form) return refuse(reason);
    if (const auto alone = why_alone(*form)) return refuse(*alone);
    if (stack.layers.empty()) {
      stack.steps_axis = form->batch_first ? 1 : 0;
    } else {
      const Shape& x = form->x->shape();
      const bool fits = x[form->batch_first ? 1 : 0] == stack.steps() &&
                        x[form->batch_first ? 0 : 1] == stack.batch() && form->input == stack.layers.back().hidden;
      if (!fits) return refuse("a step of a layer is not a step of the next one");
    }
    form->batch_first = false;
    stack.nodes.push_back(node);
    stack.layers.push_back(*std::move(form));
  }
  return stack;
}

}  // namespace neo
