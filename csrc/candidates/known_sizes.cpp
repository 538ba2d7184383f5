#include "candidates/known_sizes.h"

#include <algorithm>

#include "base/check.h"

namespace neo {

void KnownSizes::learn(const Type& type) {
  if (!type.is_tensor() || !type.shape.has_rank()) return;
  for (const Dim& d : type.shape.dims()) {
    if (const auto symbol = d.as_symbol()) names_.insert(symbol->name);
  }
}

std::optional<Symbol> KnownSizes::find_unknown(const Dim& dim, const std::function<void(const Symbol&)>& defined) {
  if (dim.is_constant()) return std::nullopt;
  std::map<std::string, Symbol> used;
  dim.collect_symbols(used);
  for (const auto& [name, symbol] : used) {
    if (names_.count(name) > 0) continue;
    if (!symbol.formula) return symbol;
    if (const auto unknown = find_unknown(*symbol.formula, defined)) return unknown;
    if (defined) defined(symbol);
    names_.insert(name);
  }
  return std::nullopt;
}

std::optional<Symbol> KnownSizes::find_unknown(const Type& type) {
  for (const Dim& d : type.shape.dims()) {
    if (const auto unknown = find_unknown(d)) return unknown;
  }
  return std::nullopt;
}

namespace {

bool is_ranked(const Value* v) {
  return v->type.is_tensor() && v->shape().has_rank();
}

// The size that is known only after the node ran: one that it finds out itself, or one that no value tells by now.
std::optional<Symbol> size_after(const Node& node, KnownSizes& known) {
  std::map<std::string, Symbol> used;
  for (const Value* v : node.outputs) {
    if (!v) continue;
    for (const Dim& d : v->shape().dims()) d.collect_symbols(used);
  }
  for (const Symbol& symbol : node.symbols) {
    if (used.count(symbol.name) > 0) return symbol;
  }
  for (const auto* values : {&node.outputs, &node.inputs}) {
    for (const Value* v : *values) {
      if (!v || v->constant) continue;
      if (const auto unknown = known.find_unknown(v->type)) return unknown;
    }
  }
  return std::nullopt;
}

void find_open(const Graph& graph, KnownSizes known, OpenNodes& open) {
  for (const Value* v : graph.inputs) known.learn(v->type);
  for (const auto& node : graph.nodes()) {
    const auto unranked = [](const Value* v) { return v && !is_ranked(v); };
    for (const auto& [name, body] : node->bodies) find_open(*body, known, open);
    if (node->bodies.empty()) {
      if (std::any_of(node->inputs.begin(), node->inputs.end(), unranked)) {
        open[node.get()] = "the rank of an input is not known";
      } else if (std::any_of(node->outputs.begin(), node->outputs.end(), unranked)) {
        open[node.get()] = "the rank of the result is not known";
      } else if (const auto symbol = size_after(*node, known)) {
        open[node.get()] = str("the size ", symbol->name, " is known only after it ran");
      } else {
        continue;
      }
    }
    for (const Value* v : node->outputs) {
      if (v) known.learn(v->type);
    }
  }
}

}  // namespace

OpenNodes find_open_nodes(const Graph& graph) {
  OpenNodes open;
  find_open(graph, {}, open);
  return open;
}

}  // namespace neo
