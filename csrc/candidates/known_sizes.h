#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/graph.h"

namespace neo {

// The symbols whose values are known at one place of a graph: sizes of arguments and of results that exist by then,
// and formulas of these.
class KnownSizes {
 public:
  KnownSizes() = default;
  explicit KnownSizes(std::set<std::string> names) : names_(std::move(names)) {}

  bool contains(const std::string& name) const { return names_.count(name) > 0; }
  void insert(const std::string& name) { names_.insert(name); }
  // Every axis of a tensor that is one bare symbol tells its value.
  void learn(const Type& type);
  // Null where the expression can be computed. Formulas that can be are known from then on, and told to `defined`.
  std::optional<Symbol> find_unknown(const Dim& dim, const std::function<void(const Symbol&)>& defined = {});
  std::optional<Symbol> find_unknown(const Type& type);  // of a ranked tensor
  const std::set<std::string>& names() const { return names_; }

 private:
  std::set<std::string> names_;
};

// Nodes that only a host step can run, because memory for their operands cannot be laid out before: by node, why.
using OpenNodes = std::map<const Node*, std::string>;
OpenNodes find_open_nodes(const Graph& graph);

}  // namespace neo
