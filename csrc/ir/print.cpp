#include <algorithm>
#include <map>
#include <set>

#include "ir/graph.h"
#include "ir/literal.h"
#include "ir/text.h"

namespace neo {
namespace {

std::string value_name(const Value* v) {
  if (!v) return "-";
  return is_keyword(v->name) ? quote(v->name) : print_name(v->name);
}

template <class T, class F>
std::string joined(const std::vector<T>& items, const F& print_item) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + print_item(items[i]);
  return text;
}

using SymbolMap = std::map<std::string, Symbol>;

// The symbols of an expression and, before a symbol that stands for a formula, those of the formula.
void collect(const Dim& dim, std::vector<Symbol>& symbols, std::set<std::string>& seen) {
  SymbolMap used;
  dim.collect_symbols(used);
  for (const auto& [name, symbol] : used) {
    if (!seen.insert(name).second) continue;
    if (symbol.formula) collect(*symbol.formula, symbols, seen);
    symbols.push_back(symbol);
  }
}

void collect(const Type& type, SymbolMap& symbols) {
  const Type* t = &type;
  while (t->element) t = t->element.get();
  if (!t->shape.has_rank()) return;
  for (const Dim& d : t->shape.dims()) d.collect_symbols(symbols);
}

void collect(const Graph& graph, SymbolMap& symbols) {
  for (const auto& v : graph.values()) collect(v->type, symbols);
  for (const auto& node : graph.nodes()) {
    for (const Symbol& s : node->symbols) symbols.emplace(s.name, s);
    for (const auto& [key, attr] : node->attrs) {
      if (const auto* dims = std::get_if<std::vector<Dim>>(&attr)) {
        for (const Dim& d : *dims) d.collect_symbols(symbols);
      }
    }
    for (const auto& [name, body] : node->bodies) collect(*body, symbols);
  }
}

std::string print_symbols(const Graph& graph) {
  SymbolMap symbols;
  collect(graph, symbols);
  if (symbols.empty()) return "";
  std::vector<Symbol> ordered;
  std::set<std::string> seen;
  for (const auto& [name, s] : symbols) collect(Dim::symbol(s), ordered, seen);
  std::string text;
  for (const Symbol& s : ordered) {
    const std::string& name = s.name;
    text += (text.empty() ? "symbols " : ", ") + print_name(name);
    if (s.range.lo != Symbol().range.lo || s.range.hi != Symbol().range.hi) {
      text += " in [" + std::to_string(s.range.lo) + "," + std::to_string(s.range.hi) + "]";
    }
    if (s.hint != 0) text += " hint " + std::to_string(s.hint);
    if (s.formula) text += " = [" + s.formula->to_string() + "]";
  }
  return text + "\n";
}

class Printer {
 public:
  explicit Printer(int64_t inline_elements) : inline_elements_(inline_elements) {}

  void print(const Graph& graph, const std::string& indent) {
    text += "graph " + quote(graph.name) + " (" +
            joined(graph.inputs, [](const Value* v) { return value_name(v) + ": " + v->type.to_string(); }) + ") -> (" +
            joined(graph.outputs, value_name) + ") {\n";
    for (const auto& v : graph.values()) {
      if (!v->constant || v->producer) continue;
      text +=
          indent + "  constant " + value_name(v.get()) + " = " + print_tensor(*v->constant, inline_elements_) + "\n";
    }
    for (const auto& node : graph.nodes()) print(*node, indent + "  ");
    text += indent + "}\n";
  }

  std::string text;

 private:
  void print(const Node& node, const std::string& indent) {
    text += indent;
    if (!node.name.empty()) text += quote(node.name) + ": ";
    text += joined(node.outputs, value_name) + (node.outputs.empty() ? "" : " ") + "= " + print_name(node.op) + "(" +
            joined(node.inputs, value_name) + ")";
    if (!node.attrs.empty()) {
      std::string attrs;
      for (const auto& [key, attr] : node.attrs) {
        attrs += (attrs.empty() ? "" : ", ") + print_name(key) + "=" + print_attr(attr, inline_elements_);
      }
      text += " {" + attrs + "}";
    }
    if (!node.outputs.empty()) {
      text += " : " + joined(node.outputs, [](const Value* v) { return v ? v->type.to_string() : "-"; });
    }
    if (!node.symbols.empty()) {
      text += " new " + joined(node.symbols, [](const Symbol& s) { return print_name(s.name); });
    }
    if (!node.bodies.empty()) {
      text += " with {\n";
      for (const auto& [name, body] : node.bodies) {
        text += indent + "  " + print_name(name) + " = ";
        print(*body, indent + "  ");
      }
      text += indent + "}";
    }
    text += "\n";
  }

  int64_t inline_elements_;
};

}  // namespace

std::string print(const Graph& graph, int64_t inline_elements) {
  Printer printer(inline_elements);
  printer.text = print_symbols(graph);
  printer.print(graph, "");
  return std::move(printer.text);
}

}  // namespace neo
