#include "routines/patterns/code_function.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/check.h"
#include "ops/infer.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/compile_program.h"

namespace neo {
namespace {

constexpr size_t kMaxFunctionNodes = 32;

const Node* number_source(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  return node && node->op == "DequantizeLinear" && !value->constant ? node : nullptr;
}

bool is_number(const Value* value) {
  return value && value->constant && value->constant->size() == 1;
}

// The nodes that make a QuantizeLinear's codes of other codes, elementwise; codes on the way are rounded and numbers
// again. From the nearest codes on, `open` goes further back.
class FunctionSearch {
 public:
  // The function behind a QuantizeLinear; false where there is none.
  bool start(const Node& root) { return add(root, nodes_, leaves_); }

  // Goes back from codes that depend on others, as long as some do; whether one value of codes is left.
  bool open_dependent() {
    while (leaves_.size() > 1) {
      const auto it = std::find_if(leaves_.begin(), leaves_.end(), [&](const Value* leaf) {
        return std::any_of(leaves_.begin(), leaves_.end(),
                           [&](const Value* other) { return other != leaf && reaches(leaf, other, kMaxWay); });
      });
      if (it == leaves_.end() || !open(*it)) return false;
    }
    return leaves_.size() == 1;
  }
  bool open_last() { return open(leaves_.front()) && open_dependent(); }

  // Nothing where others read what the nodes make on the way.
  std::optional<CodeFunction> function(const Graph::Users& users, const Graph& graph) const {
    for (const Node* node : nodes_) {
      if (node == nodes_.back() || node->op == "DequantizeLinear") continue;
      const auto readers = users.find(node->outputs.front());
      if (readers == users.end() || graph.is_output(node->outputs.front())) return std::nullopt;
      for (const auto& [reader, index] : readers->second) {
        if (std::find(nodes_.begin(), nodes_.end(), reader) == nodes_.end()) return std::nullopt;
      }
    }
    return CodeFunction{nodes_, leaves_.front()};
  }

 private:
  static constexpr int kMaxWay = 4;
  static constexpr size_t kMaxLeaves = 3;
  using Nodes = std::vector<const Node*>;
  using Leaves = std::vector<const Value*>;

  template <class T>
  static void add_once(std::vector<T>& all, T item) {
    if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
  }

  // A node behind what it reads, in order; the codes that this ends at.
  bool add(const Node& node, Nodes& nodes, Leaves& leaves) const {
    if (std::find(nodes.begin(), nodes.end(), &node) != nodes.end()) return true;
    if (nodes.size() >= kMaxFunctionNodes || leaves.size() > kMaxLeaves) return false;
    const bool rounds = node.op == "QuantizeLinear";
    if (rounds ? !read_code_grid(node) : !is_eltwise(node)) return false;
    for (size_t i = 0; i < (rounds ? 1 : node.inputs.size()); ++i) {
      const Value* v = node.inputs[i];
      if (!v || is_number(v)) continue;
      if (const Node* source = number_source(v)) {
        if (!read_code_grid(*source)) return false;
        const Value* codes = source->inputs[0];
        const bool is_opened = std::find(opened_.begin(), opened_.end(), codes) != opened_.end();
        if (is_opened && !add(*codes->producer, nodes, leaves)) return false;
        if (!is_opened) add_once(leaves, codes);
        add_once(nodes, source);
      } else if (!v->producer || !add(*v->producer, nodes, leaves)) {
        return false;
      }
    }
    add_once(nodes, &node);
    return true;
  }

  bool open(const Value* codes) {
    if (!codes->producer || codes->producer->op != "QuantizeLinear") return false;
    opened_.push_back(codes);
    const Node* root = nodes_.back();
    nodes_.clear();
    leaves_.clear();
    return add(*root, nodes_, leaves_);
  }

  bool reaches(const Value* codes, const Value* other, int steps) const {
    if (codes == other) return true;
    if (steps == 0 || !codes->producer || codes->producer->op != "QuantizeLinear") return false;
    Nodes nodes;
    Leaves leaves;
    return add(*codes->producer, nodes, leaves) &&
           std::any_of(leaves.begin(), leaves.end(), [&](const Value* v) { return reaches(v, other, steps - 1); });
  }

  Nodes nodes_;
  Leaves leaves_, opened_;
};

}  // namespace

std::vector<CodeFunction> match_code_functions(const Node& root, const Graph::Users& users, const Graph& graph) {
  std::vector<CodeFunction> found;
  FunctionSearch search;
  if (!search.start(root) || !search.open_dependent()) return found;
  do {
    auto function = search.function(users, graph);
    if (function) found.push_back(std::move(*function));
  } while (search.open_last());
  return found;
}

bool is_code_function(std::span<const Node* const> nodes, const Value* x) {
  if (nodes.empty() || nodes.back()->op != "QuantizeLinear") return false;
  std::vector<const Value*> known{x};
  for (const Node* node : nodes) {
    const bool is_linear = node->op == "QuantizeLinear" || node->op == "DequantizeLinear";
    if (is_linear ? !read_code_grid(*node) : !is_eltwise(*node)) return false;
    if (!node->outputs.front()->shape().has_rank() || !(node->outputs.front()->shape() == x->shape())) return false;
    for (size_t i = 0; i < (is_linear ? 1 : node->inputs.size()); ++i) {
      const Value* v = node->inputs[i];
      if (v && !is_number(v) && std::find(known.begin(), known.end(), v) == known.end()) return false;
    }
    known.push_back(node->outputs.front());
  }
  return true;
}

void fill_code_table(const CodeFunction& function, const OpRegistry& ops, uint8_t* table) {
  const Value* x = function.x;
  std::map<const Value*, HostValue> values;
  Tensor codes(x->dtype(), {kCodeTable});
  for (int64_t i = 0; i < kCodeTable; ++i) codes.as<uint8_t>()[i] = static_cast<uint8_t>(i);
  values[x] = HostValue(codes);
  for (const Node* node : function.nodes) {
    std::vector<HostValue> inputs;
    for (const Value* v : node->inputs) {
      const auto it = values.find(v);
      if (!v) {
        inputs.emplace_back();
      } else if (it != values.end()) {
        inputs.push_back(it->second);
      } else {
        inputs.emplace_back(v->constant->reshaped({}));
      }
    }
    values[node->outputs.front()] = evaluate_node(*node, ops, inputs).front();
  }
  const Tensor& result = values[function.nodes.back()->outputs.front()].tensor;
  NEO_ASSERT(result.size() == kCodeTable, "a function of one code has another number of results");
  std::memcpy(table, result.data(), kCodeTable);
}

}  // namespace neo
