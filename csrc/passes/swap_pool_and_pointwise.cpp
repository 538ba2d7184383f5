#include <algorithm>

#include "ops/window.h"
#include "passes/pattern.h"

namespace neo {
namespace {

bool all_are(const std::vector<int64_t>& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
}

// Every result of a convolution is a weighted sum of what the input has in the same pixel.
bool is_pointwise(const Node& conv) {
  const Shape& weight = conv.inputs[1]->shape();
  if (!weight.has_rank() || conv.has_attr("clamp_min") || conv.has_attr("clamp_max")) return false;
  for (int axis = 2; axis < weight.rank(); ++axis) {
    if (!weight[axis].is(1)) return false;
  }
  const Window window = read_window(conv, weight.rank() - 2);
  return all_are(window.strides, 1) && all_are(window.pads, 0);
}

// Whether there are fewer windows than pixels and, where the results have a bias, the mean of a constant is that
// constant in every window.
bool commutes(const Node& pool, bool has_bias) {
  if (pool.op == "GlobalAveragePool") return true;
  const Window window = read_window(pool, pool.inputs.front()->shape().rank() - 2);
  if (all_are(window.strides, 1)) return false;
  if (!has_bias || pool.int_attr("count_include_pad", 0) == 0) return true;
  const bool may_pad = window.auto_pad == AutoPad::SameUpper || window.auto_pad == AutoPad::SameLower;
  return !may_pad && all_are(window.pads, 0) && !window.ceil_mode;
}

bool swap(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* pool : rewriter.nodes()) {
    if (pool->op != "AveragePool" && pool->op != "GlobalAveragePool") continue;
    Value* results = pool->inputs.front();
    Node* conv = made_by(results, "Conv");
    if (!conv || rewriter.only_reader(results) != pool || !is_float(results->dtype())) continue;
    if (!results->shape().has_rank() || !is_pointwise(*conv)) continue;
    if (!commutes(*pool, conv->input(2) != nullptr)) continue;
    Value* pooled = rewriter.insert(conv, pool->op, {conv->inputs[0]}, pool->attrs, results->name + ".pooled");
    std::vector<Value*> operands = conv->inputs;
    operands.front() = pooled;
    Value* y = rewriter.insert(pool, "Conv", operands, conv->attrs);
    pooled->producer->name = pool->name;
    y->producer->name = conv->name;
    rewriter.replace(pool->outputs.front(), y);
  }
  return rewriter.finish();
}

}  // namespace

// The mean of the results of a convolution of single pixels is the convolution of the mean of its input, in a part of
// the products: the transitions of DenseNets, and classifiers that end in a convolution.
bool swap_pool_and_pointwise(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return swap(g, context); });
}

}  // namespace neo
