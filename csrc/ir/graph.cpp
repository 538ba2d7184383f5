#include "ir/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/check.h"

namespace neo {
namespace {

template <class Map>
std::string first_free(std::string_view stem, const Map& taken) {
  std::string name(stem);
  for (int i = 1; taken.find(name) != taken.end(); ++i) name = str(stem, "_", i);
  return name;
}

// A node that waits for itself, reached from any node of `waiting` by walking back through producers that wait too.
const Node* find_on_cycle(const std::unordered_set<const Node*>& waiting) {
  std::unordered_set<const Node*> seen;
  const Node* node = *waiting.begin();
  while (seen.insert(node).second) {
    const auto input = std::find_if(node->inputs.begin(), node->inputs.end(),
                                    [&](const Value* v) { return v && v->producer && waiting.count(v->producer); });
    NEO_ASSERT(input != node->inputs.end());
    node = (*input)->producer;
  }
  return node;
}

}  // namespace

Dim SymbolTable::fresh(std::string_view stem, Range range) {
  int& next = used_[std::string(stem)];
  std::string name(stem);
  if (next > 0) {
    do {
      name = str(stem, "_", next++);
    } while (used_.count(name) > 0);
    used_[name] = 1;
  } else {
    next = 1;
  }
  return Dim::symbol(std::move(name), range);
}

void SymbolTable::reserve(const std::string& name) {
  used_.emplace(name, 1);
}

Dim SymbolTable::define(const Dim& formula) {
  if (formula.is_constant() || formula.as_symbol()) return formula;
  const std::string text = formula.to_string();
  if (const auto it = defined_.find(text); it != defined_.end()) return it->second;
  const Range range = formula.range();
  if (range.lo > kMaxExtent || range.hi < -kMaxExtent) return formula;
  Symbol symbol = *fresh("size").as_symbol();
  symbol.range = {std::max(range.lo, -kMaxExtent), std::min(range.hi, kMaxExtent)};
  symbol.hint = std::clamp(formula.hint(), int64_t{1}, kMaxExtent);
  symbol.formula = std::make_shared<const Dim>(formula);
  return defined_[text] = Dim::symbol(std::move(symbol));
}

void SymbolTable::note(const Symbol& symbol) {
  defined_[symbol.formula->to_string()] = Dim::symbol(symbol);
}

Graph::Graph() : symbols_(std::make_shared<SymbolTable>()) {}
Graph::Graph(std::shared_ptr<SymbolTable> symbols) : symbols_(std::move(symbols)) {
  NEO_ASSERT(symbols_ != nullptr, "a graph needs a symbol table");
}
Graph::~Graph() = default;

std::string Graph::unique_name(std::string_view wanted) {
  return first_free(wanted.empty() ? "value" : wanted, by_name_);
}

Value* Graph::add_value(std::string_view wanted) {
  values_.push_back(std::make_unique<Value>());
  Value* value = values_.back().get();
  value->name = unique_name(wanted);
  by_name_[value->name] = value;
  return value;
}

Value* Graph::add_input(std::string_view wanted, Type type) {
  Value* value = add_value(wanted);
  value->type = std::move(type);
  inputs.push_back(value);
  return value;
}

Value* Graph::add_constant(std::string_view wanted, Tensor tensor) {
  NEO_ASSERT(tensor.defined(), "the constant \"", wanted, "\" needs a tensor");
  Value* value = add_value(wanted);
  value->type = Type::tensor(tensor.dtype(), Shape::of(tensor.dims()));
  value->constant = std::move(tensor);
  return value;
}

Node* Graph::add_node(std::string_view op, std::vector<Value*> node_inputs,
                      const std::vector<std::string>& output_names, Attrs attrs, std::string_view node_name) {
  return insert_before(nullptr, op, std::move(node_inputs), output_names, std::move(attrs), node_name);
}

Node* Graph::insert_before(const Node* position, std::string_view op, std::vector<Value*> node_inputs,
                           const std::vector<std::string>& output_names, Attrs attrs, std::string_view node_name) {
  auto at = nodes_.end();
  if (position != nullptr) {
    at = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return n.get() == position; });
    NEO_ASSERT(at != nodes_.end(), position->place(), " is not in the graph");
  }
  auto node = std::make_unique<Node>();
  node->op = op;
  node->name = node_name;
  node->inputs = std::move(node_inputs);
  node->attrs = std::move(attrs);
  for (size_t i = 0; i < output_names.size(); ++i) {
    Value* value = nullptr;
    if (!output_names[i].empty()) {
      value = add_value(output_names[i]);
      value->producer = node.get();
      value->output_index = static_cast<int>(i);
    }
    node->outputs.push_back(value);
  }
  return nodes_.insert(at, std::move(node))->get();
}

void Graph::rename(Value* value, std::string_view wanted) {
  if (value->name == wanted) return;
  const std::string new_name(wanted);  // `wanted` may be the holder's own, which changes below
  Value* holder = find_value(new_name);
  by_name_.erase(value->name);
  if (holder) {
    by_name_.erase(holder->name);
    by_name_[new_name] = value;  // taken before the holder looks for a name of its own
    holder->name = unique_name(new_name);
    by_name_[holder->name] = holder;
  }
  value->name = new_name.empty() ? unique_name(new_name) : new_name;
  by_name_[value->name] = value;
}

Value* Graph::find_value(std::string_view value_name) const {
  const auto it = by_name_.find(std::string(value_name));
  return it == by_name_.end() ? nullptr : it->second;
}

Graph::Users Graph::users() const {
  Users result;
  result.reserve(values_.size());
  for (const auto& node : nodes_) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i]) result[node->inputs[i]].emplace_back(node.get(), static_cast<int>(i));
    }
  }
  return result;
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  for (const auto& node : nodes_) std::replace(node->inputs.begin(), node->inputs.end(), from, to);
  if (!is_output(from)) return;
  const bool has_own_name = is_output(to) || std::find(inputs.begin(), inputs.end(), to) != inputs.end();
  if (has_own_name) {
    const std::string output_name = from->name;
    rename(from, output_name + "_replaced");
    Node* copy = add_node("Identity", {to}, {output_name});
    copy->outputs[0]->type = to->type;
    copy->outputs[0]->contents = to->contents;
    to = copy->outputs[0];
  } else {
    rename(to, from->name);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::erase_nodes(const std::function<bool(const Node&)>& dead) {
  std::unordered_set<const Node*> gone;
  for (const auto& node : nodes_) {
    if (dead(*node)) gone.insert(node.get());
  }
  if (gone.empty()) return;
  const auto is_gone = [&](const Value* v) { return v && v->producer && gone.count(v->producer) > 0; };
  for (const auto& node : nodes_) {
    if (gone.count(node.get())) continue;
    for (const Value* v : node->inputs) {
      NEO_ASSERT(!is_gone(v), node->place(), " still reads \"", v->name, "\" of a node that is erased");
    }
  }
  for (const Value* v : outputs) NEO_ASSERT(!is_gone(v), "the output \"", v->name, "\" is of a node that is erased");
  std::erase_if(values_, [&](const auto& v) {
    if (!is_gone(v.get())) return false;
    by_name_.erase(v->name);
    return true;
  });
  std::erase_if(nodes_, [&](const auto& n) { return gone.count(n.get()) > 0; });
}

void Graph::erase_unused_values() {
  std::unordered_set<const Value*> used(inputs.begin(), inputs.end());
  used.insert(outputs.begin(), outputs.end());
  for (const auto& node : nodes_) {
    used.insert(node->inputs.begin(), node->inputs.end());
    used.insert(node->outputs.begin(), node->outputs.end());
  }
  std::erase_if(values_, [&](const auto& v) {
    if (used.count(v.get())) return false;
    by_name_.erase(v->name);
    return true;
  });
}

void Graph::sort() {
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes_.size(); ++i) index[nodes_[i].get()] = i;
  std::vector<std::vector<size_t>> readers(nodes_.size());
  std::vector<size_t> missing(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const Value* v : nodes_[i]->inputs) {
      if (!v || !v->producer) continue;
      const auto producer = index.find(v->producer);
      NEO_ASSERT(producer != index.end(), nodes_[i]->place(), " reads \"", v->name, "\" of another graph");
      readers[producer->second].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() != nodes_.size()) {
    std::unordered_set<const Node*> waiting;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (missing[i] > 0) waiting.insert(nodes_[i].get());
    }
    fail(ErrorKind::Model, "graph", str("nodes must not form a cycle. Got one - at ", find_on_cycle(waiting)->place()));
  }
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes_.size());
  for (size_t i : order) sorted.push_back(std::move(nodes_[i]));
  nodes_ = std::move(sorted);
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>(symbols_);
  copy->name = name;
  std::unordered_map<const Value*, Value*> twin{{nullptr, nullptr}};
  for (const auto& value : values_) {
    copy->values_.push_back(std::make_unique<Value>(*value));
    Value* v = copy->values_.back().get();
    v->producer = nullptr;
    copy->by_name_[v->name] = v;
    twin[value.get()] = v;
  }
  const auto twins = [&](const std::vector<Value*>& values) {
    std::vector<Value*> result;
    result.reserve(values.size());
    for (const Value* v : values) result.push_back(twin.at(v));
    return result;
  };
  copy->inputs = twins(inputs);
  copy->outputs = twins(outputs);
  for (const auto& node : nodes_) {
    auto n = std::make_unique<Node>();
    n->op = node->op;
    n->name = node->name;
    n->inputs = twins(node->inputs);
    n->outputs = twins(node->outputs);
    n->attrs = node->attrs;
    n->guards = node->guards;
    n->symbols = node->symbols;
    for (const auto& [key, body] : node->bodies) n->bodies.emplace_back(key, body->clone());
    for (Value* v : n->outputs) {
      if (v) v->producer = n.get();
    }
    copy->nodes_.push_back(std::move(n));
  }
  return copy;
}

}  // namespace neo
