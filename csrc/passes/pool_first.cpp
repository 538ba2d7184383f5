#include <algorithm>

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
  return all_are(conv.ints_attr("strides"), 1) && all_are(conv.ints_attr("pads"), 0);
}

// Whether the mean of a constant is that constant, in every window.
bool keeps_constants(const Node& pool) {
  if (pool.op == "GlobalAveragePool" || pool.int_attr("count_include_pad", 0) == 0) return true;
  const std::string auto_pad = pool.string_attr("auto_pad", "NOTSET");
  const bool pads =
      auto_pad == "NOTSET" || auto_pad.empty() ? !all_are(pool.ints_attr("pads"), 0) : auto_pad != "VALID";
  return !pads && pool.int_attr("ceil_mode", 0) == 0;
}

// Whether there are fewer windows than pixels.
bool shrinks(const Node& pool) {
  if (pool.op == "GlobalAveragePool") return true;
  const std::vector<int64_t> strides = pool.ints_attr("strides");
  return std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
}

bool swap(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* pool : rewriter.nodes()) {
    if (pool->op != "AveragePool" && pool->op != "GlobalAveragePool") continue;
    Value* results = pool->inputs.front();
    Node* conv = made_by(results, "Conv");
    if (!conv || rewriter.only_reader(results) != pool || !is_float(results->dtype()) || !is_pointwise(*conv)) continue;
    if (!shrinks(*pool) || (conv->input(2) && !keeps_constants(*pool))) continue;
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
bool pool_first(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return swap(g, context); });
}

}  // namespace neo
