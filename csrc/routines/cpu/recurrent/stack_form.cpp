#include "routines/cpu/recurrent/stack_form.h"

#include <algorithm>
#include <set>
#include <utility>

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

// The layers of which each reads the hidden states of the one before, the root last, with what lies between.
std::vector<const Node*> chain_to(const Node& root) {
  std::vector<const Node*> nodes;  // the last one first
  size_t taken = 0;                // up to the first layer
  for (const Node* layer = &root; layer && is_layer(*layer);) {
    nodes.push_back(layer);
    taken = nodes.size();
    const Value* x = layer->inputs[0];
    while (x->producer && is_reshape(*x->producer)) {
      nodes.push_back(x->producer);
      x = x->producer->inputs[0];
    }
    layer = x->producer && x == x->producer->output(0) ? x->producer : nullptr;
  }
  nodes.resize(taken);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

// Whether one node alone reads what a node of a chain gives, which is its first output.
bool is_closed(const Node& node, const Graph::Users& users, const Graph& graph) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    const Value* state = node.outputs[i];
    if (state && (users.count(state) > 0 || graph.is_output(state))) return false;
  }
  return read_only_by_one(node.output(0), users, graph);
}

// The values of a chain but its last node that others read; none where they read the hidden states of a layer in two
// forms, or a node of the chain reads more of it than the one before.
std::optional<std::vector<Value*>> find_inner(const std::vector<const Node*>& chain, const Graph::Users& users,
                                              const Graph& graph) {
  const std::set<const Node*> members(chain.begin(), chain.end());
  std::vector<Value*> inner;
  bool has_sequence = false;
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (is_layer(*chain[i])) has_sequence = false;
    for (Value* v : chain[i]->outputs) {
      if (!v) continue;
      bool is_read = graph.is_output(v);
      if (const auto it = users.find(v); it != users.end()) {
        for (const auto& [reader, input] : it->second) {
          const bool is_next = v == chain[i]->output(0) && reader == chain[i + 1] && input == 0;
          if (!is_next && members.count(reader) > 0) return std::nullopt;
          is_read = is_read || !is_next;
        }
      }
      if (!is_read) continue;
      if (v == chain[i]->output(0) && std::exchange(has_sequence, true)) return std::nullopt;
      inner.push_back(v);
    }
  }
  return inner;
}

// Whether all that a chain reads can be computed where its first node stands, by few nodes that stand behind it. They
// are no layers, so that of two chains one comes first, nor are there sizes that only running tells.
bool may_stand_first(const std::vector<const Node*>& chain, const Graph& graph) {
  constexpr size_t kMaxBefore = 64;
  std::set<const Node*> behind;  // the first node, up to the last one
  for (const auto& node : graph.nodes()) {
    if (behind.empty() && node.get() != chain.front()) continue;
    if (!node->symbols.empty()) return false;
    behind.insert(node.get());
    if (node.get() == chain.back()) break;
  }
  std::set<const Node*> seen;
  std::vector<const Value*> wanted;
  for (const Node* node : chain)
    wanted.insert(wanted.end(), node->inputs.begin() + (node == chain.front() ? 0 : 1), node->inputs.end());
  while (!wanted.empty()) {
    const Value* v = wanted.back();
    wanted.pop_back();
    const Node* node = v && !v->constant ? v->producer : nullptr;
    if (behind.count(node) == 0 || !seen.insert(node).second) continue;
    if (is_layer(*node) || !node->bodies.empty() || seen.size() > kMaxBefore) return false;
    wanted.insert(wanted.end(), node->inputs.begin(), node->inputs.end());
  }
  return true;
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
  std::vector<const Node*> chain = chain_to(root);
  if (chain.size() == 1) return {};
  if (auto inner = find_inner(chain, users, graph); inner && (inner->empty() || may_stand_first(chain, graph)))
    return {Workload::of(std::move(chain), *std::move(inner))};
  size_t first = chain.size() - 1;
  for (size_t i = first; i-- > 0 && is_closed(*chain[i], users, graph);) {
    if (is_layer(*chain[i])) first = i;
  }
  chain.erase(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(first));
  return chain.size() == 1 ? std::vector<Workload>() : std::vector<Workload>{Workload::of(std::move(chain))};
}

std::optional<RecurrentStack> read_stack(const Workload& workload, std::string* why) {
  const auto refuse = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  RecurrentStack stack;
  for (const Node* node : workload.nodes) {
    if (is_layer(*node))
      stack.results.push_back(node->output(0));
    else if (std::find(workload.outputs.begin(), workload.outputs.end(), node->output(0)) != workload.outputs.end())
      stack.results.back() = node->output(0);
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
