#include "passes/expansion.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"

namespace neo {
namespace {

bool moves_data(const Node& node) {
  static constexpr std::string_view kMovements[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"};
  return std::find(std::begin(kMovements), std::end(kMovements), node.op) != std::end(kMovements) &&
         node.symbols.empty();
}

// Operators that a movement passes through where their other operands are constants.
bool lets_pass(const Node& node) {
  return node.op == "Add" || node.op == "Mul" || node.op == "Concat";
}

// Nodes behind a movement that is not directly behind the node.
constexpr size_t kMaxFollowers = 8;

// The only reader of a value that no graph output is, where it reads nothing else; null otherwise.
const Node* only_reader(const Value* value, const Graph::Users& users, const Graph& graph) {
  const auto it = users.find(value);
  if (it == users.end() || it->second.size() != 1 || graph.is_output(value)) return nullptr;
  const Node* reader = it->second.front().first;
  const bool is_alone = std::all_of(reader->inputs.begin(), reader->inputs.end(),
                                    [&](const Value* v) { return !v || v == value || v->constant; });
  return is_alone && reader->outputs.size() == 1 ? reader : nullptr;
}

// The nodes from a value to the last movement that can be reached.
std::vector<const Node*> followers(const Value* value, const Graph::Users& users, const Graph& graph) {
  std::vector<const Node*> nodes;
  size_t kept = 0;
  for (const Node* n = only_reader(value, users, graph);
       n && nodes.size() < kMaxFollowers && (moves_data(*n) || lets_pass(*n));
       n = only_reader(n->outputs.front(), users, graph)) {
    nodes.push_back(n);
    if (moves_data(*n)) kept = nodes.size();
  }
  nodes.resize(kept);
  return nodes;
}

// The movement that makes a value which nobody else reads; null otherwise.
const Node* movement_before(const Value* value, const Graph::Users& users, const Graph& graph) {
  const Node* maker = value->constant ? nullptr : value->producer;
  if (!maker || !moves_data(*maker) || maker->inputs.front()->constant || graph.is_output(value)) return nullptr;
  const auto it = users.find(value);
  return it != users.end() && it->second.size() == 1 ? maker : nullptr;
}

// The nodes as a graph of their own.
std::unique_ptr<Graph> copy_nodes(const std::vector<const Node*>& nodes, const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph.symbols());
  std::unordered_map<const Value*, Value*> twins{{nullptr, nullptr}};
  for (const Node* node : nodes) {
    std::vector<Value*> inputs;
    for (const Value* v : node->inputs) {
      auto [it, fresh] = twins.try_emplace(v, nullptr);
      if (fresh && v->constant) {
        it->second = copy->add_constant(v->name, *v->constant);
      } else if (fresh) {
        it->second = copy->add_input(v->name, v->type);
        it->second->contents = v->contents;
      }
      inputs.push_back(it->second);
    }
    std::vector<std::string> names;
    for (const Value* v : node->outputs) names.push_back(v ? v->name : "");
    Node* twin = copy->add_node(node->op, std::move(inputs), names, node->attrs, node->name);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (!node->outputs[i]) continue;
      twin->outputs[i]->type = node->outputs[i]->type;
      twin->outputs[i]->contents = node->outputs[i]->contents;
      twins[node->outputs[i]] = twin->outputs[i];
    }
  }
  copy->outputs = {twins.at(nodes.back()->outputs.front())};
  return copy;
}

// Names that tell an inner graph's nodes and values from those around it.
void name_after(const Node& root, Graph& graph) {
  const Value* result = graph.outputs.front();
  for (const auto& value : graph.values()) {
    const bool is_input = std::find(graph.inputs.begin(), graph.inputs.end(), value.get()) != graph.inputs.end();
    if (value.get() != result && !is_input) graph.rename(value.get(), str(result->name, "/", value->name));
  }
  const std::string& prefix = root.name.empty() ? result->name : root.name;
  std::unordered_map<std::string, int> seen;
  for (const auto& node : graph.nodes()) {
    const int number = seen[node->op]++;
    node->name = number == 0 ? str(prefix, "/", node->op) : str(prefix, "/", node->op, "_", number);
  }
}

}  // namespace

std::span<const NodeExpansion> standard_expansions() {
  static constexpr NodeExpansion expansions[] = {
      {"multiply_patches", "Conv", multiply_patches},
      {"split_groups", "Conv", split_groups},
      {"split_groups", "ConvTranspose", split_groups},
      {"gather_frames", "Conv", gather_frames},
  };
  return expansions;
}

std::string text_of(const NodeExpansion& expansion) {
  return str("expansion/", expansion.name);
}

std::vector<std::vector<const Node*>> expandable_groups(const Node& node, const Graph::Users& users,
                                                        const Graph& graph) {
  std::vector<std::vector<const Node*>> groups{{&node}};
  std::vector<const Node*> around{&node};
  for (const Node* n = movement_before(node.inputs.front(), users, graph); n;
       n = movement_before(n->inputs.front(), users, graph))
    around.insert(around.begin(), n);
  const std::vector<const Node*> behind = followers(node.outputs.front(), users, graph);
  around.insert(around.end(), behind.begin(), behind.end());
  if (around.size() > 1) groups.push_back(std::move(around));
  return groups;
}

std::unique_ptr<Graph> expand(const NodeExpansion& expansion, const std::vector<const Node*>& nodes, const Graph& graph,
                              const OpRegistry& ops) {
  std::unique_ptr<Graph> inner = copy_nodes(nodes, graph);
  const PassContext context = reference_context(ops);
  if (!expansion.rewrite(*inner, context)) return nullptr;
  run_passes(*inner, standard_pipeline(), context);
  NEO_ASSERT(inner->outputs.size() == 1 && inner->outputs.front()->producer && !inner->outputs.front()->constant,
             expansion.name, " leaves nothing of ", nodes.back()->place());
  // The guards of the nodes are checked by what takes their place.
  std::vector<Guard>& guards = inner->outputs.front()->producer->guards;
  for (const Node* node : nodes) guards.insert(guards.end(), node->guards.begin(), node->guards.end());
  name_after(*nodes.back(), *inner);
  return inner;
}

}  // namespace neo
