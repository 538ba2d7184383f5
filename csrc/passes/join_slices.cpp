#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "passes/slices.h"

namespace neo {
namespace {

// A node of one slice, as a node of the whole would be.
struct SliceNode {
  Node* node = nullptr;
  int axis = 0;
  int64_t index = 0;
  bool keeps_axis = false;       // the slice has the axis, with one element
  std::vector<Value*> operands;  // wholes and constants
  const Value* whole = nullptr;  // the first of the wholes

  auto key() const { return std::tuple(node->op, operands, axis, keeps_axis); }
};

class SliceJoiner {
 public:
  SliceJoiner(Graph& graph, const PassContext& context) : rewriter_(graph, context) {}

  bool run() {
    std::map<decltype(SliceNode().key()), size_t> places;
    std::vector<std::vector<SliceNode>> groups;
    for (Node* node : rewriter_.nodes()) {
      auto slice = read(*node);
      if (!slice) continue;
      const auto [it, is_new] = places.emplace(slice->key(), groups.size());
      if (is_new) groups.emplace_back();
      auto& group = groups[it->second];
      if (group.empty() || have_same_attrs(*group.front().node, *node)) group.push_back(*std::move(slice));
    }
    for (const auto& group : groups) {
      if (has_most(group)) join(group);
    }
    return rewriter_.finish();
  }

 private:
  static bool have_same_attrs(const Node& a, const Node& b) {
    return std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first && identical(x.second, y.second); });
  }

  static bool is_row(const Value* v) { return v->constant && (v->constant->rank() <= 1 || v->constant->size() == 1); }

  // A product by a constant matrix, or an elementwise node of slices and of rows of constants.
  static std::optional<SliceNode> read(Node& node) {
    const bool is_gemm = node.op == "Gemm", is_product = is_gemm || node.op == "MatMul";
    if ((!is_product && !is_elementwise(node.op)) || node.outputs.size() != 1 || !node.outputs[0]) return std::nullopt;
    if (is_gemm && (node.int_attr("transA", 0) != 0 || node.float_attr("alpha", 1) != 1 ||
                    (node.input(2) && node.float_attr("beta", 1) != 1)))
      return std::nullopt;
    const Value* out = node.outputs[0];
    if (!out->type.is_tensor() || !is_float(out->dtype()) || !out->shape().has_rank()) return std::nullopt;
    SliceNode slice{&node};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* v = node.inputs[i];
      const bool is_weight = is_product && i == 1;
      if (!v || (v->constant && (is_weight ? v->constant->rank() == 2 : is_row(v)))) {
        slice.operands.push_back(v);
        continue;
      }
      if (is_product && i > 0) return std::nullopt;
      const auto at = as_position(v);
      if (!at || !add_slice(slice, *v, *at, is_product)) return std::nullopt;
      slice.operands.push_back(at->whole);
    }
    const bool fits = slice.whole && (is_product || out->shape() == shape_of_slice(slice));
    return fits ? std::optional(std::move(slice)) : std::nullopt;
  }

  static Shape shape_of_slice(const SliceNode& slice) {
    std::vector<Dim> dims = slice.whole->shape().dims();
    dims.erase(dims.begin() + slice.axis);
    if (slice.keeps_axis) dims.insert(dims.begin() + slice.axis, Dim(1));
    return Shape(dims);
  }

  // Whether a value is the slice of a whole that has the dims of the others, along an axis that is not the last one.
  static bool add_slice(SliceNode& slice, const Value& v, const Position& at, bool is_product) {
    const Shape& whole = at.whole->shape();
    if (at.axis >= whole.rank() - 1 || !v.shape().has_rank() || at.whole->dtype() != slice.node->outputs[0]->dtype())
      return false;
    SliceNode own{slice.node, at.axis, at.index, v.shape().rank() == whole.rank(), {}, at.whole};
    if (shape_of_slice(own) != v.shape() || (is_product && v.shape().rank() < 2)) return false;
    // Slices of results that are no part of their memory take as long as what elementwise nodes save.
    for (int i = 0; i < at.axis && !is_product; ++i) {
      if (!whole[i].is(1)) return false;
    }
    if (slice.whole)
      return own.axis == slice.axis && own.index == slice.index && own.keeps_axis == slice.keeps_axis &&
             whole == slice.whole->shape();
    own.operands = std::move(slice.operands);
    slice = std::move(own);
    return true;
  }

  // Most positions of the axis, and more than one.
  static bool has_most(const std::vector<SliceNode>& group) {
    std::set<int64_t> seen;
    for (const SliceNode& slice : group) seen.insert(slice.index);
    const auto count = static_cast<int64_t>(seen.size());
    return count > 1 && 2 * count >= group.front().whole->shape()[group.front().axis].value();
  }

  void join(const std::vector<SliceNode>& group) {
    const SliceNode& first = group.front();
    const Node* position = first.node;
    const std::string& name = position->outputs[0]->name;
    Value* all = nullptr;
    if (position->op == "Gemm") {
      Value* weights = first.operands[1];
      if (position->int_attr("transB", 0) != 0)
        weights =
            rewriter_.insert(position, "Transpose", {weights}, {{"perm", std::vector<int64_t>{1, 0}}}, weights->name);
      all = rewriter_.insert(position, "MatMul", {first.operands[0], weights}, {}, name);
      if (position->input(2)) all = rewriter_.insert(position, "Add", {all, first.operands[2]}, {}, name);
    } else {
      all = rewriter_.insert(position, position->op, first.operands, position->attrs, name);
    }
    for (const SliceNode& slice : group) {
      Tensor index(DType::Int64, slice.keeps_axis ? Dims{1} : Dims{});
      store_ints(index, std::vector<int64_t>{slice.index});
      Value* out = slice.node->outputs[0];
      rewriter_.replace(out, rewriter_.insert(slice.node, "Gather", {all, rewriter_.add_constant("step", index)},
                                              {{"axis", int64_t{slice.axis}}}, out->name));
    }
  }

  Rewriter rewriter_;
};

}  // namespace

// Nodes that do the same to each slice of a value, as the steps of an unrolled layer do to their inputs, do it to the
// value: products by one matrix, and elementwise nodes.
bool join_slices(Graph& graph, const PassContext& context) {
  constexpr int kMaxDepth = 16;
  return for_each_body(graph, [&](Graph& g) {
    bool changed = false;
    for (int i = 0; i < kMaxDepth && SliceJoiner(g, context).run(); ++i) changed = true;
    return changed;
  });
}

}  // namespace neo
