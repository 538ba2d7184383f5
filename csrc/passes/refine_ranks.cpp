#include <map>
#include <string>

#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

// The rank that a node's input must have for the node's result to have the rank it has; -1 where any may do.
int rank_before(const Node& node, const OpRegistry& ops) {
  if (node.outputs.size() != 1 || !node.outputs[0] || !node.outputs[0]->shape().has_rank()) return -1;
  const int rank = node.outputs[0]->shape().rank();
  if (node.op == "Unsqueeze" || node.op == "Squeeze") {
    const Value* axes = node.input(1);
    if (!axes || !axes->constant) return -1;
    const int count = static_cast<int>(axes->constant->size());
    if (count == 0 && node.op == "Squeeze") return -1;  // every axis of size 1 goes
    return node.op == "Unsqueeze" ? rank - count : rank + count;
  }
  const Op* op = ops.find(node.op);
  return op && op->layout == LayoutClass::Oblivious && node.inputs.size() == 1 ? rank : -1;
}

class Refiner {
 public:
  explicit Refiner(const PassContext& context) : context_(context) {}

  bool changed() const { return changed_; }

  // From the last node to the first, so that a rank travels up a chain. `inputs_too`: the graph's inputs are those of a
  // branch, whose types inference keeps.
  void refine(Graph& graph, bool inputs_too) {
    for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
      Node& node = **it;
      for (auto& [name, body] : node.bodies) refine(*body, node.op == "If");
      const std::vector<int> ranks = required_ranks(node, context_.ops, *graph.symbols());
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        Value* v = node.inputs[i];
        if (!v || !v->type.is_tensor() || v->shape().has_rank() || v->constant) continue;
        if (!v->producer && !inputs_too) continue;
        const int rank = ranks[i] >= 0 ? ranks[i] : i == 0 ? rank_before(node, context_.ops) : -1;
        if (rank < 0) continue;
        std::vector<Dim> dims;
        for (int axis = 0; axis < rank; ++axis) {
          dims.push_back(graph.symbols()->fresh("size"));
          open_sizes_[dims.back().as_symbol()->name] = {&graph, v, axis};
        }
        v->type.shape = Shape(std::move(dims));
        changed_ = true;
      }
    }
  }

  // Sizes of the refined values that a node of their graph needs to be a number become that number; whether there were
  // any. The needs of a body say nothing of the graph around it, which may never run it.
  bool settle_sizes(const Graph& graph) {
    bool settled = false;
    for (const auto& node : graph.nodes()) {
      for (const auto& [name, body] : node->bodies) settled = settle_sizes(*body) || settled;
      for (const Guard& guard : node->guards) {
        if (guard.relation != Guard::Relation::Equal) continue;
        settled = settle(graph, guard.left, guard.right) || settle(graph, guard.right, guard.left) || settled;
      }
    }
    return settled;
  }

 private:
  struct OpenSize {
    const Graph* graph;
    Value* value;
    int axis;
  };

  bool settle(const Graph& graph, const Dim& open, const Dim& number) {
    const auto symbol = open.as_symbol();
    if (!symbol || !number.is_constant()) return false;
    const auto it = open_sizes_.find(symbol->name);
    if (it == open_sizes_.end() || it->second.graph != &graph) return false;
    Value* value = it->second.value;
    const int axis = it->second.axis;
    std::vector<Dim> dims = value->shape().dims();
    if (dims[static_cast<size_t>(axis)] != open) return false;
    dims[static_cast<size_t>(axis)] = number;
    value->type.shape = Shape(std::move(dims));
    return true;
  }

  const PassContext& context_;
  std::map<std::string, OpenSize> open_sizes_;
  bool changed_ = false;
};

}  // namespace

// A value whose rank is open (a branch took one or the other) and that a node takes in one rank only gets that rank:
// with another one the call would fail at that node anyway. The same for its sizes that a node needs to be a number.
bool refine_ranks(Graph& graph, const PassContext& context) {
  Refiner refiner(context);
  refiner.refine(graph, true);
  if (!refiner.changed()) return false;
  do infer_graph(graph, context.ops);
  while (refiner.settle_sizes(graph));
  return true;
}

}  // namespace neo
