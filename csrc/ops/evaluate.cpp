#include <new>
#include <unordered_map>

#include "base/budget.h"
#include "ops/control.h"
#include "ops/infer.h"

namespace neo {
namespace {

void check_input(const Graph& graph, const Value& input, const HostValue& value) {
  const bool tensor = input.type.is_tensor();
  NEO_CHECK(!tensor || value.kind == HostValue::Kind::Tensor, Type, "run", "the input \"", input.name, "\" of graph \"",
            graph.name, "\" must be a tensor. Got ", value.kind == HostValue::Kind::Empty ? "nothing" : "a sequence");
  NEO_CHECK(!tensor || input.type.dtype == DType::Undefined || value.tensor.dtype() == input.type.dtype, Type, "run",
            "the input \"", input.name, "\" of graph \"", graph.name, "\" has the wrong dtype. Got ",
            name(value.tensor.dtype()), ", expected ", name(input.type.dtype));
}

}  // namespace

std::vector<HostValue> evaluate_node(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs) {
  return at_node(node, [&] {
    const Op& op = ops.get(node.op);
    check_arity(node, op);
    NEO_ASSERT(inputs.size() == node.inputs.size(), "got ", inputs.size(), " inputs for ", node.place());
    if (op.reference == nullptr) return evaluate_control(node, ops, inputs);
    std::vector<HostValue> outputs(node.outputs.size());
    check_ranks(node, ops, inputs);
    ReferenceContext context(node, inputs, outputs);
    op.reference(context);
    return outputs;
  });
}

std::vector<HostValue> evaluate_graph(const Graph& graph, const OpRegistry& ops, std::span<const HostValue> inputs) {
  NEO_CHECK(inputs.size() == graph.inputs.size(), Model, "run", "graph \"", graph.name, "\" has ", graph.inputs.size(),
            " inputs. Got ", inputs.size());
  std::unordered_map<const Value*, int> uses;
  for (const auto& node : graph.nodes()) {
    for (const Value* v : node->inputs) ++uses[v];
  }
  for (const Value* v : graph.outputs) ++uses[v];
  std::unordered_map<const Value*, HostValue> held;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_input(graph, *graph.inputs[i], inputs[i]);
    held[graph.inputs[i]] = inputs[i];
  }
  const auto read = [&](const Value* v) {
    if (v->constant) return HostValue(*v->constant);
    const auto it = held.find(v);
    NEO_ASSERT(it != held.end(), "\"", v->name, "\" is read before it is computed");
    return it->second;
  };
  for (const auto& node : graph.nodes()) {
    checkpoint();
    std::vector<HostValue> operands;
    for (const Value* v : node->inputs) operands.push_back(v ? read(v) : HostValue());
    for (const Value* v : node->inputs) {
      if (--uses[v] == 0) held.erase(v);
    }
    std::vector<HostValue> results = evaluate_node(*node, ops, operands);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      const Value* v = node->outputs[i];
      if (v && uses[v] > 0) held[v] = std::move(results[i]);
    }
  }
  std::vector<HostValue> outputs;
  for (const Value* v : graph.outputs) outputs.push_back(read(v));
  return outputs;
}

}  // namespace neo
