#include <cmath>

#include "passes/linear.h"
#include "passes/pattern.h"

namespace neo {
namespace {

bool moves_elements(const Node& node) {
  return node.op == "Transpose" || node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze";
}

// The values from an operand of a product back to a node with constant weights, through nodes that only move elements;
// empty where the way does not end at one, or where somebody else reads on the way.
std::vector<Value*> way_to_weights(const Rewriter& rewriter, Value* operand) {
  std::vector<Value*> way;
  for (Value* v = operand; rewriter.uses(v) == 1 && v->producer; v = v->producer->inputs.front()) {
    way.push_back(v);
    if (as_linear(*v->producer)) return way;
    if (!moves_elements(*v->producer)) break;
  }
  return {};
}

bool lift(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Mul" && node->op != "Div") continue;
    for (size_t side = 0; side < (node->op == "Div" ? 1 : 2); ++side) {
      Value* scores = node->inputs[side];
      Value* number = node->inputs[1 - side];
      const Node* product = made_by(scores, "MatMul");
      if (!product || product->inputs.size() != 2 || !product->attrs.empty()) continue;
      const auto scale = uniform(number);
      if (!scale || !std::isfinite(*scale) || *scale == 0 || !number->shape().element_count().is(1)) continue;
      if (rewriter.only_reader(scores) != node || !(node->outputs.front()->shape() == scores->shape())) continue;
      std::vector<Value*> way = way_to_weights(rewriter, product->inputs[0]);
      if (way.empty()) way = way_to_weights(rewriter, product->inputs[1]);
      if (way.empty()) continue;
      // Values on the way are no longer those that the model calls by these names.
      Node* reader = rewriter.only_reader(way.back());
      const size_t index = reader == product && product->inputs[0] != way.back() ? 1 : 0;
      const std::string name = way.back()->name;
      Value* factor = rewriter.add_scalar(number->name, number->dtype(), *scale);
      Value* scaled = rewriter.insert(reader, node->op, {way.back(), factor}, {}, name + ".scaled");
      rewriter.set_input(reader, index, scaled);
      way.pop_back();
      for (Value* v : way) graph.rename(v, v->name + ".scaled");
      rewriter.fold_into(node->outputs.front(), scores);
      break;
    }
  }
  return rewriter.finish();
}

}  // namespace

// A number that the scores of an attention are multiplied by goes to the weights that its queries or keys come from,
// where fold_biases takes it up.
bool fold_scales(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return lift(g, context); });
}

}  // namespace neo
