#include "routines/patterns/attention_problem.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "routines/patterns/float_tensor.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

constexpr int kMaxAttentionRank = 8;

bool multiplies_matrices(const Node& node) {
  if (node.op != "MatMul" && node.op != "com.microsoft.FusedMatMul") return false;
  for (const std::string_view other : {"clamp_min", "clamp_max", "activation"}) {
    if (node.has_attr(other)) return false;
  }
  return node.int_attr("transBatchA", 0) == 0 && node.int_attr("transBatchB", 0) == 0;
}

// The only element of a constant of float32.
std::optional<float> number_of(const Value* v) {
  if (!v || !v->constant || v->dtype() != DType::Float32 || v->constant->size() != 1) return std::nullopt;
  return *v->constant->as<float>();
}

struct Factor {
  const Value* value;
  float number;
};

// The factor of a Mul or a Div by one number.
std::optional<Factor> factor_of(const Node& node) {
  if (node.op != "Mul" && node.op != "Div") return std::nullopt;
  for (size_t i = 0; i < (node.op == "Mul" ? 2 : 1); ++i) {
    const std::optional<float> number = number_of(node.inputs[1 - i]);
    const Value* value = node.inputs[i];
    if (!number || !is_float_tensor(value) || !(value->shape() == node.outputs.front()->shape())) continue;
    return Factor{value, node.op == "Mul" ? *number : 1 / *number};
  }
  return std::nullopt;
}

// The repetition that Reshape(Expand(Unsqueeze(x))) is: each position of an axis of x as many times in a row.
struct Repetition {
  const Value* value;
  int axis;
  int64_t times;
};

// None where the three nodes, one after the other, do something else.
std::optional<Repetition> repetition_of(const Node& reshape, const Node& expand, const Node& unsqueeze) {
  const Value* x = unsqueeze.inputs[0];
  if (!is_float_tensor(x)) return std::nullopt;
  const Shape &from = x->shape(), &one = unsqueeze.outputs[0]->shape(), &many = expand.outputs[0]->shape();
  const Shape& to = reshape.outputs[0]->shape();
  const int rank = from.rank();
  if (one.rank() != rank + 1 || many.rank() != rank + 1 || to.rank() != rank) return std::nullopt;
  int axis = 0;
  while (axis < rank && to[axis] == from[axis] && many[axis] == from[axis]) ++axis;
  if (axis + 2 >= rank + 1 || !one[axis + 1].is(1) || !many[axis + 1].is_constant()) return std::nullopt;
  if (!(many[axis] == from[axis]) || !(to[axis] == many[axis] * many[axis + 1])) return std::nullopt;
  for (int i = 0; i < rank; ++i) {
    if (!(one[i <= axis ? i : i + 1] == from[i])) return std::nullopt;
    if (i > axis && (!(many[i + 1] == from[i]) || !(to[i] == from[i]))) return std::nullopt;
  }
  return Repetition{x, axis, many[axis + 1].value()};
}

// Reads a group from its end. `producer` gives the node that makes a value where the group may have it, or null: where
// nodes of the group read the value, so many times.
class AttentionReader {
 public:
  using Producer = std::function<const Node*(const Value*, size_t reads)>;

  explicit AttentionReader(Producer producer) : made_by_(std::move(producer)) {}

  std::optional<AttentionProblem> read(const Node& root) {
    const Node* last = &root;
    if (root.op == "Transpose") {
      last = producer(root.inputs.front());
      if (!last || !multiplies_matrices(*last)) return std::nullopt;
    } else if (!multiplies_matrices(root)) {
      return std::nullopt;
    }
    if (last->input(2) || last->int_attr("transA", 0) != 0 || last->float_attr("alpha", 1.0) != 1.0)
      return std::nullopt;
    if (!is_matrix(last->outputs.front())) return std::nullopt;
    const Node* softmax = read_softmax(last->inputs[0]);
    if (!softmax) return std::nullopt;
    const int scores_rank = softmax->inputs[0]->shape().rank();
    const int64_t axis = softmax->int_attr("axis", -1);
    if (axis != -1 && axis != scores_rank - 1) return std::nullopt;
    if (!read_result(root, *last)) return std::nullopt;
    const Node* scores = read_scores(softmax->inputs[0]);
    if (!scores) return std::nullopt;
    p_.scale *= static_cast<float>(scores->float_attr("alpha", 1.0));
    add_nodes({softmax});
    p_.q = read_operand(scores->inputs[0], scores->int_attr("transA", 0) != 0, true);
    p_.k = read_operand(scores->inputs[1], scores->int_attr("transB", 0) != 0, true);
    p_.v = read_operand(last->inputs[1], last->int_attr("transB", 0) != 0, false);
    add_nodes({scores});
    if (last != &root) add_nodes({last});
    add_nodes({&root});
    return check(softmax->inputs[0]->shape()) ? std::optional(p_) : std::nullopt;
  }

  // In topological order.
  std::vector<const Node*> nodes() const {
    std::vector<const Node*> sorted;
    for (const Node* node : nodes_) place(node, sorted);
    return sorted;
  }

 private:
  static bool is_matrix(const Value* v) {
    return is_float_tensor(v) && v->shape().rank() >= 2 && v->shape().rank() <= kMaxAttentionRank;
  }

  void add_nodes(std::initializer_list<const Node*> nodes) { nodes_.insert(nodes_.end(), nodes); }

  void place(const Node* node, std::vector<const Node*>& sorted) const {
    if (std::find(sorted.begin(), sorted.end(), node) != sorted.end()) return;
    for (const Value* v : node->inputs) {
      if (v && std::find(nodes_.begin(), nodes_.end(), v->producer) != nodes_.end()) place(v->producer, sorted);
    }
    sorted.push_back(node);
  }

  const Node* producer(const Value* value) const { return made_by_(value, 1); }

  // The softmax that makes a value, or behind it Where(IsNaN(p), 0, p).
  const Node* read_softmax(const Value* value) {
    const Node* node = producer(value);
    if (node && node->op == "Where") {
      const Value* p = node->inputs[2];
      const Node* is_nan = producer(node->inputs[0]);
      if (!is_nan || is_nan->op != "IsNaN" || is_nan->inputs[0] != p || number_of(node->inputs[1]) != 0.0f)
        return nullptr;
      add_nodes({is_nan, node});
      p_.nan_is_zero = true;
      node = made_by_(p, 2);
    }
    return node && node->op == "Softmax" && is_matrix(node->inputs[0]) ? node : nullptr;
  }

  bool read_result(const Node& root, const Node& last) {
    const int rank = last.outputs.front()->shape().rank();
    p_.y.value = root.outputs.front();
    p_.y.order.resize(static_cast<size_t>(rank));
    std::iota(p_.y.order.begin(), p_.y.order.end(), 0);
    if (&root == &last) return true;
    const std::vector<int64_t> axes = transpose_axes(root);
    if (axes.back() != rank - 1) return false;
    for (int i = 0; i < rank; ++i) p_.y.order[static_cast<size_t>(axes[static_cast<size_t>(i)])] = i;
    return true;
  }

  // From the softmax to the product, which is returned; null where the group has another form.
  const Node* read_scores(const Value* value) {
    while (true) {
      const Node* node = producer(value);
      if (!node) return nullptr;
      if (multiplies_matrices(*node)) {
        if (node->input(2)) p_.terms.insert(p_.terms.begin(), ScoreTerm{node->input(2), false, true, p_.scale});
        return p_.terms.size() <= kMaxScoreTerms ? node : nullptr;
      }
      add_nodes({node});
      const std::optional<Factor> factor = factor_of(*node);
      const Value* next = factor ? factor->value : read_term(*node);
      if (!next) return nullptr;
      if (factor) p_.scale *= factor->number;
      value = next;
    }
  }

  // Takes an Add or a Where as a term; the scores behind it, or null.
  const Value* read_term(const Node& node) {
    if (p_.terms.size() == kMaxScoreTerms) return nullptr;
    if (node.op == "Add") {
      for (size_t i = 0; i < 2; ++i) {
        const Value* scores = node.inputs[i];
        if (!is_float_tensor(node.inputs[1 - i]) || !leads_to_product(scores)) continue;
        p_.terms.insert(p_.terms.begin(), ScoreTerm{node.inputs[1 - i], false, true, p_.scale});
        return scores;
      }
    }
    if (node.op == "Where") {
      for (const size_t i : {1, 2}) {
        const std::optional<float> number = number_of(node.inputs[3 - i]);
        if (!number || !leads_to_product(node.inputs[i])) continue;
        p_.terms.insert(p_.terms.begin(), ScoreTerm{node.inputs[0], true, i == 2, p_.scale * *number});
        return node.inputs[i];
      }
    }
    return nullptr;
  }

  bool leads_to_product(const Value* value) const {
    const Node* node = is_float_tensor(value) ? producer(value) : nullptr;
    if (!node) return false;
    if (multiplies_matrices(*node)) return true;
    if (const std::optional<Factor> factor = factor_of(*node)) return leads_to_product(factor->value);
    return (node->op == "Add" && (leads_to_product(node->inputs[0]) || leads_to_product(node->inputs[1]))) ||
           (node->op == "Where" && (leads_to_product(node->inputs[1]) || leads_to_product(node->inputs[2])));
  }

  // An operand with the transposes before it and, where it may be scaled, the factors. Its elements are neighbours
  // along one of the matrices' axes.
  AttentionOperand read_operand(const Value* value, bool transposed, bool is_scaled) {
    AttentionOperand operand;
    if (!is_matrix(value)) return operand;
    const auto rank = static_cast<size_t>(value->shape().rank());
    operand.order.resize(rank);
    std::iota(operand.order.begin(), operand.order.end(), 0);
    if (transposed) std::swap(operand.order[rank - 1], operand.order[rank - 2]);
    while (const Node* node = producer(value)) {
      if (node->op == "Transpose" && is_matrix(node->inputs[0])) {
        const std::vector<int64_t> axes = transpose_axes(*node);
        std::vector<int> order = operand.order;
        for (int& axis : order) axis = static_cast<int>(axes[static_cast<size_t>(axis)]);
        const int last = static_cast<int>(rank) - 1;
        if (order[rank - 1] != last && order[rank - 2] != last) break;
        operand.order = std::move(order);
        value = node->inputs[0];
      } else if (const auto repetition = read_repetition(*node)) {
        const auto at = std::find(operand.order.begin(), operand.order.end(), repetition->axis);
        const int axis = static_cast<int>(at - operand.order.begin());
        if (operand.repeated_axis >= 0 || axis + 2 >= static_cast<int>(rank)) break;
        operand.repeated_axis = axis;
        operand.repeats = repetition->times;
        value = repetition->value;
        add_nodes({producer(node->inputs[0]), producer(producer(node->inputs[0])->inputs[0])});
      } else if (const auto factor = is_scaled ? factor_of(*node) : std::nullopt) {
        p_.scale *= factor->number;
        value = factor->value;
      } else {
        break;
      }
      add_nodes({node});
    }
    operand.value = value;
    return operand;
  }

  std::optional<Repetition> read_repetition(const Node& node) const {
    const Node* expand = node.op == "Reshape" ? producer(node.inputs[0]) : nullptr;
    const Node* unsqueeze = expand && expand->op == "Expand" ? producer(expand->inputs[0]) : nullptr;
    if (!unsqueeze || (unsqueeze->op != "Unsqueeze" && unsqueeze->op != "Reshape")) return std::nullopt;
    for (const Node* n : {&node, expand, unsqueeze}) {
      if (!n->outputs[0]->shape().has_rank() || !n->symbols.empty()) return std::nullopt;
    }
    return repetition_of(node, *expand, *unsqueeze);
  }

  static bool broadcasts(const Shape& shape, const Shape& scores) {
    const int rank = shape.rank(), away = scores.rank() - rank;
    if (rank < 1 || away < 0 || !(shape[rank - 1] == scores[scores.rank() - 1])) return false;
    for (int i = 0; i + 1 < rank; ++i) {
      if (!shape[i].is(1) && !(shape[i] == scores[i + away])) return false;
    }
    return true;
  }

  bool check(const Shape& scores) const {
    if (!p_.q.value || !p_.k.value || !p_.v.value) return false;
    const int rank = scores.rank();
    if (!(p_.q.dim(p_.q.rank() - 2) == scores[rank - 2]) || !(p_.k.dim(p_.k.rank() - 1) == scores[rank - 1]))
      return false;
    return std::all_of(p_.terms.begin(), p_.terms.end(), [&](const ScoreTerm& term) {
      const Type& type = term.value->type;
      return type.is_tensor() && type.dtype == (term.is_condition ? DType::Bool : DType::Float32) &&
             type.shape.has_rank() && broadcasts(type.shape, scores);
    });
  }

  Producer made_by_;
  AttentionProblem p_;
  std::vector<const Node*> nodes_;
};

}  // namespace

std::vector<std::string_view> attention_roots() {
  return {"MatMul", "com.microsoft.FusedMatMul", "Transpose"};
}

std::vector<Workload> match_attention(const Node& root, const Graph::Users& users, const Graph& graph) {
  AttentionReader reader([&](const Value* v, size_t reads) -> const Node* {
    if (!v || !v->producer || v->constant || graph.is_output(v)) return nullptr;
    const auto it = users.find(v);
    return it != users.end() && it->second.size() == reads ? v->producer : nullptr;
  });
  if (!reader.read(root)) return {};
  return {Workload::of(reader.nodes())};
}

std::optional<AttentionProblem> read_attention(const Workload& workload, std::string* why) {
  AttentionReader reader([&](const Value* v, size_t) -> const Node* {
    if (!v || !v->producer) return nullptr;
    const auto& nodes = workload.nodes;
    return std::find(nodes.begin(), nodes.end(), v->producer) != nodes.end() ? v->producer : nullptr;
  });
  std::optional<AttentionProblem> problem = reader.read(workload.root());
  if (!problem && why) *why = "it is no softmax of a product times a matrix";
  return problem;
}

}  // namespace neo
