#include <algorithm>
#include <set>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

// Symbols that a call's inputs define. Others are born by nodes, which must then stay.
void collect_input_symbols(const Graph& graph, std::map<std::string, Symbol>& symbols) {
  for (const Value* v : graph.inputs) {
    if (!v->type.is_tensor() || !v->shape().has_rank()) continue;
    for (const Dim& d : v->shape().dims()) {
      if (const auto s = d.as_symbol()) symbols.emplace(s->name, *s);
    }
  }
}

// Formulas of known symbols are known, and noted as such.
bool is_known(const Dim& d, std::map<std::string, Symbol>& known) {
  std::map<std::string, Symbol> used;
  d.collect_symbols(used);
  return std::all_of(used.begin(), used.end(), [&](const auto& s) {
    if (known.count(s.first) > 0) return true;
    if (!s.second.formula || !is_known(*s.second.formula, known)) return false;
    known.insert(s);
    return true;
  });
}

bool fold_shapes_in_body(Graph& graph, const std::map<std::string, Symbol>& outer, const PassContext& context) {
  std::map<std::string, Symbol> known = outer;
  collect_input_symbols(graph, known);
  bool changed = false;
  std::vector<Node*> nodes;
  for (const auto& n : graph.nodes()) nodes.push_back(n.get());
  for (Node* node : nodes) {
    for (auto& [name, body] : node->bodies) changed = fold_shapes_in_body(*body, known, context) || changed;
    if (node->op == "neo.Dims" || !node->bodies.empty()) continue;
    for (Value* v : node->outputs) {
      if (!v || !v->contents || !v->type.is_tensor() || !v->shape().is_static() || !is_integer(v->dtype())) continue;
      const std::vector<Dim>& elements = *v->contents;
      if (!std::all_of(elements.begin(), elements.end(), [&](const Dim& d) { return is_known(d, known); })) continue;
      const std::string value_name = v->name;
      Value* folded = nullptr;
      if (std::all_of(elements.begin(), elements.end(), [](const Dim& d) { return d.is_constant(); })) {
        Tensor tensor(v->dtype(), v->shape().to_dims());
        auto* p = static_cast<std::byte*>(tensor.data());
        for (size_t i = 0; i < elements.size(); ++i)
          store_int64(v->dtype(), p + static_cast<int64_t>(i) * item_bytes(v->dtype()), elements[i].value());
        folded = graph.add_constant(value_name, tensor);
      } else if (v->shape().rank() > 1) {
        continue;
      } else {
        Attrs attrs;
        attrs["dims"] = elements;
        attrs["scalar"] = int64_t{v->shape().rank() == 0};
        attrs["dtype"] = std::string(name(v->dtype()));
        Node* dims = graph.insert_before(node, "neo.Dims", {}, {value_name}, std::move(attrs), node->name);
        folded = dims->outputs.front();
        folded->type = v->type;
        folded->contents = elements;
      }
      graph.replace_uses(v, folded);
      graph.rename(folded, value_name);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

// Integer tensors whose elements are known expressions of the inputs' sizes become constants or neo.Dims, which the
// plan fills in from the binding; the nodes that computed them die.
bool fold_shapes(Graph& graph, const PassContext& context) {
  const bool changed = fold_shapes_in_body(graph, {}, context);
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
