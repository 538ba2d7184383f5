#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "passes/rewriter.h"

namespace neo {
namespace {

// Whether an Attention has a form in parts: no cache, no lengths, no windows, one output, as many heads of keys as of
// queries.
bool has_parts(const Node& node) {
  if (node.op != "Attention" || node.outputs.empty() || !node.outputs.front()) return false;
  for (const size_t i : {4, 5, 6}) {
    if (node.input(i)) return false;
  }
  for (const size_t i : {1, 2, 3}) {
    if (node.output(i)) return false;
  }
  for (const size_t i : {0, 1, 2}) {
    const Value* v = node.inputs[i];
    if (v->dtype() != DType::Float32 || !v->shape().has_rank()) return false;
    if (v->shape().rank() != node.inputs[0]->shape().rank()) return false;
    if (!v->shape().dims().back().is_constant()) return false;
  }
  const Shape& q = node.inputs[0]->shape();
  const Shape& k = node.inputs[1]->shape();
  if (q[0] != k[0] || q[0] != node.inputs[2]->shape()[0]) return false;
  if (q.rank() == 3) {
    const int64_t heads = node.int_attr("q_num_heads", 0);
    if (heads < 1 || node.int_attr("kv_num_heads", 0) != heads) return false;
  } else if (q.rank() != 4 || q[1] != k[1]) {
    return false;
  }
  return node.float_attr("softcap", 0) == 0 && node.int_attr("left_window_size", -1) == -1 &&
         node.int_attr("right_window_size", -1) == -1 && !node.has_attr("softmax_precision");
}

// One Attention in parts.
class Expansion {
 public:
  Expansion(Rewriter& rewriter, Node& node)
      : rewriter_(rewriter),
        node_(node),
        is_packed_(node.inputs[0]->shape().rank() == 3),
        heads_(node.int_attr("q_num_heads", 1)),
        queries_(length(0)),
        keys_(length(1)) {}

  // False, and nothing changed, where its mask has no form in parts.
  bool run() {
    const Value* mask = node_.input(3);
    const bool is_causal = node_.int_attr("is_causal", 0) != 0;
    if (is_causal && !(queries_.is_constant() && keys_.is_constant() && is_small(queries_.value() * keys_.value())))
      return false;
    if (mask && !is_mask(*mask)) return false;
    const int64_t size = node_.inputs[0]->shape().dims().back().value() / (is_packed_ ? heads_ : 1);
    const double scale = node_.float_attr("scale", 1 / std::sqrt(static_cast<double>(size)));
    Value* q = node_.inputs[0];
    q = insert("Mul", {q, rewriter_.add_scalar(q->name, DType::Float32, scale)}, {}, q->name + ".scaled");
    Value* scores = insert("MatMul", {split(q, {0, 2, 1, 3}), split(node_.inputs[1], {0, 2, 3, 1})}, {}, "scores");
    Value* added = mask ? numbers_of(node_.inputs[3]) : nullptr;
    if (is_causal) {
      Value* causal = add_causal();
      added = added ? insert("Add", {added, causal}, {}, causal->name) : causal;
    }
    if (added) scores = insert("Add", {scores, added}, {}, "scores");
    Value* chosen = insert("Softmax", {scores}, {{"axis", int64_t{-1}}}, "probabilities");
    Value* y = insert("MatMul", {chosen, split(node_.inputs[2], {0, 2, 1, 3})});
    if (mask) y = zero_where_nothing_is_seen(y, added);
    rewriter_.replace(node_.outputs.front(), joined(y));
    return true;
  }

 private:
  static bool is_small(int64_t elements) {
    constexpr int64_t kMaxElements = int64_t{1} << 22;
    return elements <= kMaxElements;
  }

  const Dim& length(size_t input) const { return node_.inputs[input]->shape()[is_packed_ ? 1 : 2]; }

  // A shorter mask hides the keys behind its end, which adding does not.
  bool is_mask(const Value& mask) const {
    if (mask.dtype() != DType::Bool && mask.dtype() != DType::Float32) return false;
    if (!mask.shape().has_rank() || mask.shape().rank() < 1 || mask.shape().rank() > 4) return false;
    if (mask.shape().dims().back() != keys_) return false;
    const Shape& q = node_.inputs[0]->shape();
    const Dim scores[] = {q[0], is_packed_ ? Dim(heads_) : q[1], queries_, keys_};
    const auto& dims = mask.shape().dims();
    return std::equal(dims.rbegin(), dims.rend(), std::rbegin(scores),
                      [](const Dim& d, const Dim& score) { return d.is(1) || d == score; });
  }

  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}, std::string_view like = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs), like);
  }

  // [batch, length, heads * size], or [batch, heads, length, size], with the axes batch, length, heads, size in order.
  Value* split(Value* value, const std::vector<int64_t>& order) {
    if (is_packed_) {
      const int64_t size = value->shape()[2].value() / heads_;
      Value* parts =
          insert("Reshape", {value, rewriter_.add_ints(value->name + ".heads", {0, 0, heads_, size})}, {}, value->name);
      return insert("Transpose", {parts}, {{"perm", order}}, value->name);
    }
    if (order == std::vector<int64_t>{0, 2, 1, 3}) return value;
    return insert("Transpose", {value}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}, value->name);
  }

  Value* joined(Value* y) {
    if (!is_packed_) return y;
    Value* turned = insert("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    return insert("Reshape",
                  {turned, rewriter_.add_ints(y->name + ".packed", {0, 0, node_.inputs[2]->shape()[2].value()})});
  }

  Value* hidden() { return rewriter_.add_scalar("hidden", DType::Float32, -std::numeric_limits<double>::infinity()); }

  // The numbers that a mask adds to the scores.
  Value* numbers_of(Value* mask) {
    if (mask->dtype() != DType::Bool) return mask;
    return insert("Where", {mask, rewriter_.add_scalar("seen", DType::Float32, 0), hidden()}, {}, mask->name);
  }

  Value* add_causal() {
    const int64_t rows = queries_.value();
    const int64_t columns = keys_.value();
    Tensor tensor(DType::Float32, {rows, columns});
    std::vector<double> numbers(static_cast<size_t>(rows * columns), 0);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = i + 1; j < columns; ++j)
        numbers[static_cast<size_t>(i * columns + j)] = -std::numeric_limits<double>::infinity();
    }
    store_doubles(tensor, numbers);
    return rewriter_.add_constant("causal", std::move(tensor));
  }

  // A query all of whose keys are hidden gives zeros.
  Value* zero_where_nothing_is_seen(Value* y, Value* added) {
    Value* most = insert("ReduceMax", {added, rewriter_.add_ints("last", {-1})}, {{"keepdims", int64_t{1}}}, "most");
    Value* seen = insert("Greater", {most, hidden()}, {}, "seen");
    return insert("Where", {seen, y, rewriter_.add_scalar("nothing", DType::Float32, 0)});
  }

  Rewriter& rewriter_;
  Node& node_;
  bool is_packed_;
  int64_t heads_;
  Dim queries_;
  Dim keys_;
};

bool expand(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (has_parts(*node)) Expansion(rewriter, *node).run();
  }
  return rewriter.finish();
}

}  // namespace

// Attention becomes the products, the mask and the softmax that exporters write out: one form for both, of which every
// part has fast routines.
bool expand_attention(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return expand(g, context); });
}

}  // namespace neo
