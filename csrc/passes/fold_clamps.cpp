#include <limits>

#include "passes/pattern.h"

namespace neo {
namespace {

bool takes_clamp(const Node& node) {
  return (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "Gemm" || node.op == "MatMul") &&
         is_float(node.outputs.front()->dtype());
}

bool fold_clamps_in_body(Graph& graph, const PassContext& context) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const auto outer = bounds_of(*node);
    if (!outer) continue;
    Value* input = node->inputs.front();
    Node* producer = input->producer;
    if (!producer || !takes_clamp(*producer) || rewriter.only_reader(input) != node) continue;
    const Bounds both =
        within({producer->float_attr("clamp_min", -kInfinity), producer->float_attr("clamp_max", kInfinity)}, *outer);
    if (both.lo > -kInfinity) producer->attrs.insert_or_assign("clamp_min", both.lo);
    if (both.hi < kInfinity) producer->attrs.insert_or_assign("clamp_max", both.hi);
    rewriter.fold_into(node->outputs.front(), input);
  }
  return rewriter.finish();
}

}  // namespace

// Relu and Clip by constants become the clamp of the Conv, Gemm or MatMul before them.
bool fold_clamps(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold_clamps_in_body(g, context); });
}

}  // namespace neo
