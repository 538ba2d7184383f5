#include <algorithm>
#include <unordered_map>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

// Captured values that are constants outside become constants of the bodies.
bool sink_constants(Node& node) {
  bool changed = false;
  const bool is_if = node.op == "If";
  auto captured = static_cast<size_t>(node.int_attr("num_captured", 0));
  const size_t first = is_if ? 1 : node.inputs.size() - captured;
  for (size_t i = node.inputs.size(); i-- > first;) {
    const Value* outer = node.inputs[i];
    if (!outer || !outer->constant) continue;
    for (auto& [name, body] : node.bodies) {
      const size_t at = body->inputs.size() - (node.inputs.size() - i);
      Value* inner = body->inputs[at];
      if (body->is_output(inner)) {
        Node* copy = body->add_node("Identity", {inner}, {inner->name});
        copy->outputs[0]->type = inner->type;
        std::replace(body->outputs.begin(), body->outputs.end(), inner, copy->outputs[0]);
      }
      body->replace_uses(inner, body->add_constant(inner->name, *outer->constant));
      body->inputs.erase(body->inputs.begin() + static_cast<std::ptrdiff_t>(at));
      body->erase_unused_values();
    }
    node.inputs.erase(node.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    if (!is_if) node.attrs["num_captured"] = static_cast<int64_t>(--captured);
    changed = true;
  }
  return changed;
}

// Moves the nodes of the branch that is always taken to where the If stands.
void inline_branch(Graph& graph, Node& node, Graph& branch) {
  std::unordered_map<const Value*, Value*> outer;
  for (size_t i = 0; i < branch.inputs.size(); ++i) outer[branch.inputs[i]] = node.inputs[i + 1];
  for (const auto& value : branch.values()) {
    if (value->constant) outer[value.get()] = graph.add_constant(value->name, *value->constant);
  }
  for (const auto& inner : branch.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : inner->inputs) inputs.push_back(v ? outer.at(v) : nullptr);
    std::vector<std::string> names;
    for (const Value* v : inner->outputs) names.push_back(v ? v->name : "");
    Node* moved = graph.insert_before(&node, inner->op, std::move(inputs), names, std::move(inner->attrs), inner->name);
    moved->bodies = std::move(inner->bodies);
    moved->symbols = std::move(inner->symbols);
    moved->guards = std::move(inner->guards);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!inner->outputs[i]) continue;
      moved->outputs[i]->type = inner->outputs[i]->type;
      moved->outputs[i]->contents = inner->outputs[i]->contents;
      outer[inner->outputs[i]] = moved->outputs[i];
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) graph.replace_uses(node.outputs[i], outer.at(branch.outputs[i]));
  }
}

bool inline_all(Graph& graph) {
  bool changed = false;
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (!node->bodies.empty()) nodes.push_back(node.get());
  }
  std::vector<const Node*> gone;
  for (Node* node : nodes) {
    changed = sink_constants(*node) || changed;
    for (auto& [name, body] : node->bodies) changed = inline_all(*body) || changed;
    if (node->op != "If" || !node->inputs[0]->constant || node->inputs[0]->constant->size() != 1) continue;
    const bool taken = load_int64(DType::Bool, node->inputs[0]->constant->data()) != 0;
    inline_branch(graph, *node, node->body(taken ? "then_branch" : "else_branch"));
    gone.push_back(node);
  }
  if (!gone.empty()) {
    graph.erase_nodes([&](const Node& node) { return std::find(gone.begin(), gone.end(), &node) != gone.end(); });
    graph.erase_unused_values();
    changed = true;
  }
  return changed;
}

}  // namespace

// Bodies hold the constants that they read, and an If whose condition is a constant gives way to its branch.
bool inline_branches(Graph& graph, const PassContext& context) {
  const bool changed = inline_all(graph);
  if (changed) infer_graph(graph, context.ops);
  return changed;
}

}  // namespace neo
