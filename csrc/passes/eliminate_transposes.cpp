#include <algorithm>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

std::optional<std::vector<int64_t>> permutation(const Node& node) {
  if (node.op != "Transpose" || !node.inputs.front()->shape().has_rank()) return std::nullopt;
  std::vector<int64_t> reversed;
  for (int i = node.inputs.front()->shape().rank() - 1; i >= 0; --i) reversed.push_back(i);
  return node.ints_attr("perm", reversed);
}

// Elementwise nodes of one tensor input move through a transpose unchanged.
bool is_pointwise(const Node& node) {
  static constexpr std::string_view kOps[] = {"Relu",    "Clip",   "Sigmoid", "Tanh",      "LeakyRelu", "Elu",  "HardSigmoid", "HardSwish", "Exp",  "Sqrt",
                                              "Neg",     "Abs",    "Cast",    "Softplus",  "Gelu",      "Erf",  "Swish",       "Mish",      "Floor", "Ceil"};
  return std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

bool eliminate(Graph& graph, const PassContext& context) {
  bool changed = false;
  Graph::Users users = graph.users();
  for (const auto& node : graph.nodes()) {
    const auto perm = permutation(*node);
    if (!perm) continue;
    Value* in = node->inputs.front();
    Value* out = node->outputs.front();
    if (std::is_sorted(perm->begin(), perm->end()) && !(graph.is_output(out) && (!in->producer || graph.is_output(in)))) {
      graph.replace_uses(out, in);
      changed = true;
      users = graph.users();
      continue;
    }
    Node* producer = in->producer;
    if (!producer) continue;
    if (const auto first = permutation(*producer)) {
      std::vector<int64_t> both;
      for (int64_t axis : *perm) both.push_back((*first)[static_cast<size_t>(axis)]);
      node->inputs.front() = producer->inputs.front();
      node->attrs.insert_or_assign("perm", both);
      changed = true;
      users = graph.users();
      continue;
    }
    // transpose(f(transpose(x))): the two transposes meet once f has moved behind the second.
    const auto only = users.find(in);
    if (is_pointwise(*producer) && producer->inputs.front()->producer && permutation(*producer->inputs.front()->producer) &&
        only != users.end() && only->second.size() == 1 && !graph.is_output(in)) {
      Value* source = producer->inputs.front();
      const Graph::Users::const_iterator readers = users.find(source);
      if (readers->second.size() != 1 || graph.is_output(source)) continue;
      Node* moved = graph.insert_before(node.get(), "Transpose", {source}, {out->name + ".moved"}, node->attrs, node->name);
      infer_node(*moved, context.ops, *graph.symbols());
      std::vector<Value*> inputs = producer->inputs;
      inputs.front() = moved->outputs.front();
      Node* pointwise = graph.insert_before(node.get(), producer->op, inputs, {out->name + ".pointwise"}, producer->attrs, producer->name);
      infer_node(*pointwise, context.ops, *graph.symbols());
      graph.replace_uses(out, pointwise->outputs.front());
      changed = true;
      break;  // the list of nodes has changed
    }
  }
  return changed;
}

}  // namespace

// Transposes that move nothing go, neighbours become one, and pointwise nodes between two of them step aside.
bool eliminate_transposes(Graph& graph, const PassContext& context) {
  bool changed = false;
  while (for_each_body(graph, [&](Graph& g) { return eliminate(g, context); })) {
    changed = true;
    remove_dead_nodes(graph, context);
  }
  return changed;
}

}  // namespace neo
