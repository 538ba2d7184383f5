#include <algorithm>

#include "passes/pattern.h"

namespace neo {
namespace {

std::vector<int64_t> spatial_axes(int rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// A pool whose one window is the whole plane.
bool covers_plane(const Node& node) {
  const Shape& shape = node.inputs.front()->shape();
  const std::vector<int64_t> kernel = node.ints_attr("kernel_shape");
  const std::vector<int64_t> pads = node.ints_attr("pads");
  const std::string auto_pad = node.string_attr("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") return false;
  if (!shape.has_rank() || static_cast<int>(kernel.size()) + 2 != shape.rank() || node.output(1)) return false;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!shape[static_cast<int>(i) + 2].is(kernel[i]) || !node.outputs.front()->shape()[static_cast<int>(i) + 2].is(1))
      return false;
  }
  const auto is_one = [](int64_t d) { return d == 1; };
  const std::vector<int64_t> dilations = node.ints_attr("dilations");
  return std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; }) &&
         std::all_of(dilations.begin(), dilations.end(), is_one);
}

bool recognize_pools_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const bool is_mean = node->op == "ReduceMean" || node->op == "AveragePool";
    if (!is_mean && node->op != "ReduceMax" && node->op != "MaxPool") continue;
    Value* x = node->inputs.front();
    Value* y = node->outputs.front();
    if (!is_float(x->dtype()) || !x->shape().has_rank() || x->shape().rank() < 3) continue;
    const std::string_view op = is_mean ? "GlobalAveragePool" : "GlobalMaxPool";
    if (node->op == "AveragePool" || node->op == "MaxPool") {
      if (covers_plane(*node)) rewriter.replace(y, rewriter.insert(node, op, {x}));
      continue;
    }
    const int rank = x->shape().rank();
    const bool keepdims = node->int_attr("keepdims", 1) != 0;
    const auto axes = reduced_axes(*node, keepdims);
    // With three axes the last may be a row, whose normalization reads the mean.
    if (rank < 4 || !axes || *axes != spatial_axes(rank)) continue;
    Value* pooled = rewriter.insert(node, op, {x});
    if (!keepdims) {
      Value* squeezed =
          rewriter.add_constant(y->name + ".axes", Tensor::from<int64_t>(DType::Int64, {rank - 2}, *axes));
      pooled = rewriter.insert(node, "Squeeze", {pooled, squeezed});
    }
    rewriter.replace(y, pooled);
  }
  return rewriter.finish();
}

}  // namespace

// Means and maxima over all spatial axes become GlobalAveragePool and GlobalMaxPool, which work in blocked layouts.
bool recognize_pools(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return recognize_pools_in_body(g, context); });
}

}  // namespace neo
