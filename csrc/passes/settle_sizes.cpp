#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

using Numbers = std::map<std::string, int64_t>;

void add_symbols(const Shape& shape, std::set<std::string>& names) {
  if (!shape.has_rank()) return;
  for (const Dim& dim : shape.dims()) {
    const auto symbol = dim.as_symbol();
    if (symbol && !symbol->formula) names.insert(symbol->name);
  }
}

// The sizes that begin in this graph, of which its nodes, which all run when it does, say that they are a number. The
// needs of a body say nothing of the graph around it, which may never run it.
Numbers find_numbers(const Graph& graph, bool is_outermost) {
  std::set<std::string> own;
  for (const auto& node : graph.nodes()) {
    if (!node->bodies.empty()) continue;  // a loop's are those of all iterations
    for (const Symbol& symbol : node->symbols) own.insert(symbol.name);
  }
  if (is_outermost) {
    for (const Value* input : graph.inputs) {
      if (input->type.is_tensor()) add_symbols(input->shape(), own);
    }
  }
  Numbers numbers;
  const auto note = [&](const Dim& open, const Dim& number) {
    const auto symbol = open.as_symbol();
    if (!symbol || symbol->formula || !number.is_constant() || own.count(symbol->name) == 0) return;
    numbers.emplace(symbol->name, number.value());
  };
  for (const auto& node : graph.nodes()) {
    for (const Guard& guard : node->guards) {
      if (guard.relation != Guard::Relation::Equal) continue;
      note(guard.left, guard.right);
      note(guard.right, guard.left);
    }
  }
  return numbers;
}

// Sizes that were numbers all along are written nowhere any more; inferring again finds them where they begin.
class Settler {
 public:
  explicit Settler(const Numbers& numbers)
      : number_of_([&numbers](const Symbol& symbol) -> std::optional<Dim> {
          const auto it = numbers.find(symbol.name);
          return it == numbers.end() ? std::nullopt : std::optional<Dim>(it->second);
        }) {}

  void settle(Graph& graph) const {
    for (Value* input : graph.inputs) settle(input->type);
    for (const auto& node : graph.nodes()) {
      for (Symbol& symbol : node->symbols) {
        if (const auto number = number_of_(symbol)) symbol.range = {number->value(), number->value()};
      }
      for (auto& [key, attr] : node->attrs) {
        if (auto* dims = std::get_if<std::vector<Dim>>(&attr)) settle(*dims);
      }
      for (Value* output : node->outputs) {
        if (output) settle(output->type);
      }
      for (auto& [name, body] : node->bodies) settle(*body);
    }
  }

 private:
  void settle(Type& type) const {
    if (!type.is_tensor() || !type.shape.has_rank()) return;
    std::vector<Dim> dims = type.shape.dims();
    settle(dims);
    type.shape = Shape(std::move(dims));
  }

  void settle(std::vector<Dim>& dims) const {
    for (Dim& dim : dims) dim = dim.substitute(number_of_);
  }

  std::function<std::optional<Dim>(const Symbol&)> number_of_;
};

// Whether a node names sizes, as those that fold_shapes makes do.
bool has_formulas(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    const auto is_formula = [](const auto& attr) { return std::holds_alternative<std::vector<Dim>>(attr.second); };
    return std::any_of(node->attrs.begin(), node->attrs.end(), is_formula) ||
           std::any_of(node->bodies.begin(), node->bodies.end(),
                       [](const auto& body) { return has_formulas(*body.second); });
  });
}

// Inferring a loop again may give its sizes other names, by which formulas in its body would no longer find them.
bool has_named_loop_sizes(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return std::any_of(node->bodies.begin(), node->bodies.end(), [&](const auto& body) {
      return node->op == "If" ? has_named_loop_sizes(*body.second) : has_formulas(*body.second);
    });
  });
}

bool settle_all(Graph& graph, bool is_outermost) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    for (auto& [name, body] : node->bodies) changed = settle_all(*body, false) || changed;
  }
  const Numbers numbers = find_numbers(graph, is_outermost);
  if (!numbers.empty()) Settler(numbers).settle(graph);
  return changed || !numbers.empty();
}

}  // namespace

// A size that only a call tells, and that a node of the same graph needs to be a number (the channels of a
// convolution's input, the length of a product's sums), is that number: with another one the call would fail at that
// node. Where the size begins, at an input or at a step that finds it out, the call still checks it.
bool settle_sizes(Graph& graph, const PassContext& context) {
  bool changed = false;
  if (has_named_loop_sizes(graph)) return false;
  while (settle_all(graph, true)) {
    infer_graph(graph, context.ops);
    changed = true;
  }
  return changed;
}

}  // namespace neo
