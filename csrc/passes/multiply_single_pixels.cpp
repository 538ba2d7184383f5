#include <algorithm>
#include <cstring>

#include "ops/window.h"
#include "passes/pattern.h"

namespace neo {
namespace {

// A ConvTranspose of one group whose input has one pixel and each of whose outputs is a tap of it.
struct SinglePixel {
  Dims weight;
  Dims output;                 // spatial
  std::vector<int64_t> first;  // tap of the first output of each axis

  int64_t pixels() const {
    int64_t count = 1;
    for (int64_t d : output) count *= d;
    return count;
  }
};

std::optional<SinglePixel> as_single_pixel(const Node& node) {
  const Value* weight = node.inputs[1];
  const Value* bias = node.input(2);
  const Shape& x = node.inputs[0]->shape();
  const Shape& y = node.outputs[0]->shape();
  if (!weight->constant || (bias && !bias->constant) || !x.has_rank() || x.rank() < 3) return std::nullopt;
  if (node.int_attr("group", 1) != 1 || !node.ints_attr("output_shape").empty()) return std::nullopt;
  SinglePixel pixel{weight->constant->dims(), {}, {}};
  const int axes = x.rank() - 2;
  const Window window = read_window(node, axes);
  if (window.auto_pad == AutoPad::SameUpper || window.auto_pad == AutoPad::SameLower) return std::nullopt;
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<size_t>(axis);
    const Dim& size = y[axis + 2];
    if (!x[axis + 2].is(1) || !size.is_constant() || window.dilations[i] != 1) return std::nullopt;
    const int64_t first = window.pads[i];
    if (size.value() < 1 || first + size.value() > pixel.weight[i + 2]) return std::nullopt;
    pixel.first.push_back(first);
    pixel.output.push_back(size.value());
  }
  return pixel;
}

// I O K... to I (O K...) of the taps that are outputs.
Tensor cut_weights(const SinglePixel& pixel, const Tensor& weight) {
  const int64_t filters = pixel.weight[0] * pixel.weight[1], taps = filters == 0 ? 0 : weight.size() / filters;
  Tensor out(weight.dtype(), {pixel.weight[0], pixel.weight[1] * pixel.pixels()});
  const auto item = static_cast<size_t>(item_bytes(weight.dtype()));
  const auto* from = static_cast<const std::byte*>(weight.data());
  auto* to = static_cast<std::byte*>(out.data());
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t p = 0; p < pixel.pixels(); ++p, to += item) {
      int64_t tap = 0, inner = 1, rest = p;
      for (size_t i = pixel.output.size(); i-- > 0;) {
        tap += (pixel.first[i] + rest % pixel.output[i]) * inner;
        rest /= pixel.output[i];
        inner *= pixel.weight[i + 2];
      }
      std::memcpy(to, from + static_cast<size_t>(f * taps + tap) * item, item);
    }
  }
  return out;
}

bool multiply_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "ConvTranspose") continue;
    const auto pixel = as_single_pixel(*node);
    if (!pixel) continue;
    const Value* weight = node->inputs[1];
    const std::string& name = node->outputs.front()->name;
    std::vector<Value*> operands = {rewriter.insert(node, "Flatten", {node->inputs[0]}, {{"axis", int64_t{1}}}),
                                    rewriter.add_constant(weight->name, cut_weights(*pixel, *weight->constant))};
    if (const Value* bias = node->input(2)) {
      std::vector<double> repeated;
      for (double b : load_doubles(*bias->constant))
        repeated.insert(repeated.end(), static_cast<size_t>(pixel->pixels()), b);
      Tensor tensor(bias->dtype(), {static_cast<int64_t>(repeated.size())});
      store_doubles(tensor, repeated);
      operands.push_back(rewriter.add_constant(bias->name, std::move(tensor)));
    }
    Attrs attrs;
    for (const char* bound : {"clamp_min", "clamp_max"}) {
      if (const auto it = node->attrs.find(bound); it != node->attrs.end()) attrs.insert(*it);
    }
    Value* product = rewriter.insert(node, "Gemm", operands, std::move(attrs), name + ".product");
    product->producer->name = node->name;
    std::vector<int64_t> shape = {0, pixel->weight[1]};
    shape.insert(shape.end(), pixel->output.begin(), pixel->output.end());
    rewriter.replace(node->outputs.front(),
                     rewriter.insert(node, "Reshape", {product, rewriter.add_ints(name + ".shape", shape)}));
  }
  return rewriter.finish();
}

}  // namespace

// A transposed convolution of one pixel, with which generators begin, is a product: each of its outputs has one tap.
bool multiply_single_pixels(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return multiply_in_body(g, context); });
}

}  // namespace neo
