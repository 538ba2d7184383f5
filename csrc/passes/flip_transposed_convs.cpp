#include <algorithm>
#include <cstring>

#include "ops/window.h"
#include "passes/pattern.h"

namespace neo {
namespace {

bool is_same(const Window& window) {
  return window.auto_pad == AutoPad::SameUpper || window.auto_pad == AutoPad::SameLower;
}

// The padding that the ConvTranspose takes off at both ends of an axis; none where it depends on a size that is not a
// constant.
struct Trimmed {
  int64_t begin, end;
};
std::optional<Trimmed> trimmed(const Node& node, const Window& window, int axis, int64_t extra, int64_t reach) {
  const auto i = static_cast<size_t>(axis);
  const bool has_shape = !node.ints_attr("output_shape").empty();
  if (!has_shape && !is_same(window)) return Trimmed{window.pads[i], window.pads[i + window.strides.size()]};
  const Dim total = node.inputs[0]->shape()[axis + 2] + Dim(extra + reach) - node.outputs[0]->shape()[axis + 2];
  if (!total.is_constant()) return std::nullopt;
  const int64_t all = total.value(), half = all >= 0 ? all / 2 : -((1 - all) / 2);
  const int64_t begin = window.auto_pad == AutoPad::SameUpper ? half : all - half;
  return Trimmed{begin, all - begin};
}

// The pads of the convolution that computes the same; none where there is none.
std::optional<std::vector<int64_t>> flipped_pads(const Node& node, const Window& window, const Dims& weight) {
  const size_t axes = window.strides.size();
  const std::vector<int64_t> extra = node.ints_attr("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> pads(2 * axes);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (weight[i + 2] - 1) * window.dilations[i];
    const auto off = trimmed(node, window, static_cast<int>(i), extra[i], reach);
    if (!off) return std::nullopt;
    pads[i] = reach - off->begin;
    // The rest that a given shape leaves includes the padding of the output.
    pads[i + axes] = reach + extra[i] - off->end;
    if (pads[i] < 0 || pads[i + axes] < 0) return std::nullopt;
  }
  return pads;
}

// I O/g K... to O I/g K... with the taps of every filter in the opposite order.
Tensor flipped_weights(const Tensor& weight, int64_t groups) {
  const Dims& dims = weight.dims();
  const int64_t ic = dims[0] / groups, oc = dims[1], taps = ic * oc == 0 ? 0 : weight.size() / (dims[0] * oc);
  Dims turned = dims;
  turned[0] = oc * groups;
  turned[1] = ic;
  Tensor out(weight.dtype(), turned);
  const auto item = static_cast<size_t>(item_bytes(weight.dtype()));
  const auto* from = static_cast<const std::byte*>(weight.data());
  auto* to = static_cast<std::byte*>(out.data());
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < oc; ++o) {
      for (int64_t i = 0; i < ic; ++i) {
        const std::byte* filter = from + static_cast<size_t>(((g * ic + i) * oc + o) * taps) * item;
        for (int64_t t = taps; t-- > 0; to += item) std::memcpy(to, filter + static_cast<size_t>(t) * item, item);
      }
    }
  }
  return out;
}

// Whether each result is a product of one pixel, which multiply_single_pixels() makes of it.
bool is_of_one_pixel(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  for (int axis = 2; axis < x.rank(); ++axis) {
    if (!x[axis].is(1)) return false;
  }
  return true;
}

bool flip_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "ConvTranspose") continue;
    const Value* weight = node->inputs[1];
    if (!weight->constant || !node->inputs[0]->shape().has_rank() || is_of_one_pixel(*node)) continue;
    const Dims& dims = weight->constant->dims();
    const Window window = read_window(*node, static_cast<int>(dims.size()) - 2);
    if (std::any_of(window.strides.begin(), window.strides.end(), [](int64_t s) { return s != 1; })) continue;
    const int64_t groups = node->int_attr("group", 1);
    const auto pads = flipped_pads(*node, window, dims);
    if (!pads || dims[0] % groups != 0) continue;
    Attrs attrs = {{"group", groups}, {"dilations", window.dilations}, {"pads", *pads}};
    for (const char* bound : {"clamp_min", "clamp_max"}) {
      if (const auto it = node->attrs.find(bound); it != node->attrs.end()) attrs.insert(*it);
    }
    std::vector<Value*> operands = node->inputs;
    operands[1] = rewriter.add_constant(weight->name, flipped_weights(*weight->constant, groups));
    Value* y = rewriter.insert(node, "Conv", operands, std::move(attrs));
    y->producer->name = node->name;
    rewriter.replace(node->outputs.front(), y);
  }
  return rewriter.finish();
}

}  // namespace

// A transposed convolution of stride one is a convolution with its weights turned round.
bool flip_transposed_convs(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return flip_in_body(g, context); });
}

}  // namespace neo
