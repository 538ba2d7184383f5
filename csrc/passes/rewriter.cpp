#include "passes/rewriter.h"

#include <algorithm>

#include "ops/infer.h"

namespace neo {

Rewriter::Rewriter(Graph& graph, const PassContext& context) : graph_(graph), context_(context), users_(graph.users()) {
  nodes_.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) nodes_.push_back(node.get());
}

size_t Rewriter::uses(const Value* value) const {
  const auto it = users_.find(value);
  const size_t reads = it == users_.end() ? 0 : it->second.size();
  return reads + static_cast<size_t>(std::count(graph_.outputs.begin(), graph_.outputs.end(), value));
}

Node* Rewriter::only_reader(const Value* value) const {
  const auto it = users_.find(value);
  return it == users_.end() || uses(value) != 1 ? nullptr : it->second.front().first;
}

std::vector<Node*> Rewriter::readers(const Value* value) const {
  std::vector<Node*> nodes;
  if (const auto it = users_.find(value); it != users_.end()) {
    for (const auto& [node, index] : it->second) nodes.push_back(node);
  }
  return nodes;
}

Value* Rewriter::add_constant(std::string_view name, Tensor tensor) {
  Value* value = graph_.add_constant(name, std::move(tensor));
  if (value->name != name) wanted_.emplace(value, name);
  return value;
}

Value* Rewriter::add_scalar(std::string_view name, DType dtype, double number) {
  Tensor tensor(dtype, {});
  store_doubles(tensor, std::vector<double>{number});
  return add_constant(name, std::move(tensor));
}

Value* Rewriter::add_ints(std::string_view name, const std::vector<int64_t>& numbers, DType dtype) {
  Tensor tensor(dtype, {static_cast<int64_t>(numbers.size())});
  store_ints(tensor, numbers);
  return add_constant(name, std::move(tensor));
}

Value* Rewriter::insert(const Node* position, std::string_view op, std::vector<Value*> inputs, Attrs attrs,
                        std::string_view like) {
  std::string name(like);
  if (name.empty()) name = position->outputs.front() ? position->outputs.front()->name : std::string(op);
  return insert_all(position, op, std::move(inputs), {name}, std::move(attrs)).front();
}

std::vector<Value*> Rewriter::insert_like(const Node& node, std::vector<Value*> inputs, Attrs attrs) {
  std::vector<std::string> names;
  for (const Value* v : node.outputs) names.push_back(v ? v->name : "");
  return insert_all(&node, node.op, std::move(inputs), names, std::move(attrs));
}

std::vector<Value*> Rewriter::insert_all(const Node* position, std::string_view op, std::vector<Value*> inputs,
                                         const std::vector<std::string>& names, Attrs attrs) {
  Node* node = graph_.insert_before(position, op, std::move(inputs), names, std::move(attrs), position->name);
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (node->inputs[i]) users_[node->inputs[i]].emplace_back(node, static_cast<int>(i));
  }
  infer_node(*node, context_.ops, *graph_.symbols());
  made_.insert(node->outputs.begin(), node->outputs.end());
  for (size_t i = 0; i < names.size(); ++i) {
    if (node->outputs[i] && node->outputs[i]->name != names[i]) wanted_.emplace(node->outputs[i], names[i]);
  }
  changed_ = true;
  return node->outputs;
}

void Rewriter::set_input(Node* node, size_t index, Value* value) {
  if (node->inputs.size() <= index) node->inputs.resize(index + 1, nullptr);
  Value* old = node->inputs[index];
  if (old == value) return;
  node->inputs[index] = value;
  if (value) users_[value].emplace_back(node, static_cast<int>(index));
  changed_ = true;
  if (!old) return;
  drop_read(old, node, static_cast<int>(index));
  retire_if_unread(old->producer);
}

void Rewriter::replace(Value* from, Value* to) {
  if (from == to) return;
  changed_ = true;
  // The readers before it have used the type.
  if (made_.count(to) > 0 && to->dtype() == from->dtype() && from->shape().has_rank()) to->type.shape = from->shape();
  const std::string name = from->name;
  auto& reads = users_[to];
  if (const auto it = users_.find(from); it != users_.end()) {
    for (const auto& [node, index] : it->second) {
      node->inputs[static_cast<size_t>(index)] = to;
      reads.emplace_back(node, index);
    }
    users_.erase(it);
  }
  if (graph_.is_output(from)) {
    const size_t nodes = graph_.nodes().size();
    graph_.replace_uses(from, to);
    // An output that `to` cannot be named after is a copy of it.
    if (graph_.nodes().size() > nodes) reads.emplace_back(graph_.nodes().back().get(), 0);
  } else if (made_.count(to) > 0) {
    graph_.rename(to, name);
  }
  made_.erase(to);
  if (to->name == name) wanted_.erase(to);
  retire_if_unread(from->producer);
}

void Rewriter::fold_into(Value* from, Value* to) {
  made_.insert(to);
  replace(from, to);
}

bool Rewriter::finish() {
  if (!retired_.empty()) graph_.erase_nodes([&](const Node& node) { return is_retired(&node); });
  if (!changed_) return false;
  graph_.erase_unused_values();
  for (const auto& value : graph_.values()) {
    const auto it = wanted_.find(value.get());
    if (it != wanted_.end() && !graph_.find_value(it->second)) graph_.rename(value.get(), it->second);
  }
  wanted_.clear();
  return true;
}

void Rewriter::drop_read(Value* value, const Node* node, int index) {
  const auto it = users_.find(value);
  if (it == users_.end()) return;
  std::erase_if(it->second, [&](const auto& read) { return read.first == node && read.second == index; });
}

void Rewriter::retire_if_unread(Node* node) {
  if (!node || is_retired(node)) return;
  for (const Value* v : node->outputs) {
    if (v && uses(v) > 0) return;
  }
  retired_.insert(node);
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    Value* v = node->inputs[i];
    if (!v) continue;
    drop_read(v, node, static_cast<int>(i));
    retire_if_unread(v->producer);
  }
}

}  // namespace neo
