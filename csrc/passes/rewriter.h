#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/pass.h"

namespace neo {

// A graph while a pass rewrites it. Who reads what is right after every change; a node that nobody reads any more is
// retired at once, so that it counts as no reader, and removed by finish().
class Rewriter {
 public:
  Rewriter(Graph& graph, const PassContext& context);
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  Graph& graph() const { return graph_; }
  const PassContext& context() const { return context_; }
  // In order, as they were in the beginning; some may have been retired since.
  const std::vector<Node*>& nodes() const { return nodes_; }
  bool is_retired(const Node* node) const { return retired_.count(node) > 0; }

  // How often a value is read; a graph output counts as a reader.
  size_t uses(const Value* value) const;
  // The only reader of a value that no graph output is; null where there are several or none.
  Node* only_reader(const Value* value) const;
  // The nodes that read a value, one for each read.
  std::vector<Node*> readers(const Value* value) const;

  Value* add_constant(std::string_view name, Tensor tensor);
  Value* add_scalar(std::string_view name, DType dtype, double number);
  Value* add_ints(std::string_view name, const std::vector<int64_t>& numbers, DType dtype = DType::Int64);
  // A node before `position`, named after it, of one output, which is named after that of `position` unless `like` says
  // otherwise; types are inferred.
  Value* insert(const Node* position, std::string_view op, std::vector<Value*> inputs, Attrs attrs = {},
                std::string_view like = {});
  // The same with several outputs, of these names.
  std::vector<Value*> insert_all(const Node* position, std::string_view op, std::vector<Value*> inputs,
                                 const std::vector<std::string>& names, Attrs attrs = {});
  // A node before `node` with its operator, name and number of outputs.
  std::vector<Value*> insert_like(const Node& node, std::vector<Value*> inputs, Attrs attrs);
  // Inputs beyond the last become null.
  void set_input(Node* node, size_t index, Value* value);
  // Readers of `from`, graph outputs included, read `to`, which takes over the name where this rewriter made it.
  void replace(Value* from, Value* to);
  // The same where the node of `to` was changed to compute `from`: the name goes with what is computed.
  void fold_into(Value* from, Value* to);

  // Removes what was retired, and gives values that were made the names that this leaves free; whether anything was
  // changed.
  bool finish();

 private:
  void drop_read(Value* value, const Node* node, int index);
  void retire_if_unread(Node* node);

  Graph& graph_;
  const PassContext& context_;
  std::vector<Node*> nodes_;
  Graph::Users users_;
  std::unordered_set<const Node*> retired_;
  std::unordered_set<const Value*> made_;
  std::unordered_map<const Value*, std::string> wanted_;  // names that were taken when a value was made
  bool changed_ = false;
};

}  // namespace neo
