#include <cmath>

#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

// Inference-time batch norm as y = x * scale + shift per channel.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

std::optional<Affine> as_affine(const Node& node) {
  if (node.op != "BatchNormalization" || node.int_attr("training_mode", 0) != 0) return std::nullopt;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) return std::nullopt;
  }
  std::vector<std::vector<double>> p;
  for (size_t i = 1; i < 5; ++i) {
    if (!node.input(i) || !node.input(i)->constant) return std::nullopt;
    p.push_back(load_doubles(*node.input(i)->constant));
    if (p.back().size() != p.front().size()) return std::nullopt;
  }
  const double epsilon = node.float_attr("epsilon", 1e-5F);
  Affine affine;
  for (size_t c = 0; c < p[0].size(); ++c) {
    const double scale = p[0][c] / std::sqrt(p[3][c] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(p[1][c] - p[2][c] * scale);
  }
  return affine;
}

bool fold_batch_norms_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    const auto affine = as_affine(*node);
    if (!affine) continue;
    Value* input = node->inputs.front();
    Value* output = node->outputs.front();
    Node* producer = input->producer;
    std::optional<LinearNode> linear;
    if (producer && rewriter.only_reader(input) == node) linear = as_linear(*producer);
    if (linear && linear->channel_axis == 1 && linear->channels == static_cast<int64_t>(affine->scale.size())) {
      std::vector<double> bias = bias_of(*linear);
      for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine->scale[c] + affine->shift[c];
      set_weights(rewriter, *linear, affine->scale);
      set_bias(rewriter, *linear, bias);
      rewriter.fold_into(output, input);
    } else if (input->shape().has_rank() && input->shape().rank() >= 2 &&
               (input->dtype() == DType::Float32 || input->dtype() == DType::Float64)) {
      // On its own it is a multiplication and an addition, which elementwise programs take.
      Dims dims(static_cast<size_t>(input->shape().rank()), 1);
      dims[1] = static_cast<int64_t>(affine->scale.size());
      Tensor scale(input->dtype(), dims);
      Tensor shift(input->dtype(), dims);
      store_doubles(scale, affine->scale);
      store_doubles(shift, affine->shift);
      Value* scaled = rewriter.insert(node, "Mul", {input, rewriter.add_constant(output->name + ".scale", scale)});
      rewriter.replace(output,
                       rewriter.insert(node, "Add", {scaled, rewriter.add_constant(output->name + ".shift", shift)}));
    }
  }
  return rewriter.finish();
}

}  // namespace

// Inference-time BatchNormalization goes into the weights of the node before it, or becomes a multiplication and an
// addition.
bool fold_batch_norms(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return fold_batch_norms_in_body(g, context); });
}

}  // namespace neo
