#include <algorithm>
#include <limits>

#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// A Conv in groups whose kernel has one tap, without padding.
std::optional<Window> find_single_tap(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  const Shape& weight = node.inputs[1]->shape();
  const Node* before = node.inputs[0]->producer;
  if (node.inputs.size() > 3 || !x.has_rank() || !weight.has_rank() || weight.rank() != x.rank() ||
      !weight[0].is_constant() || node.int_attr("group", 1) == 1 || (before && before->op == "DequantizeLinear")) {
    return std::nullopt;
  }
  Window window = read_window(node, x.rank() - 2);
  for (int axis = 0; axis < window.rank(); ++axis) {
    if (!weight[axis + 2].is(1)) return std::nullopt;
  }
  const bool is_padded = window.auto_pad != AutoPad::NotSet ||
                         std::any_of(window.pads.begin(), window.pads.end(), [](int64_t pad) { return pad != 0; });
  return is_padded ? std::nullopt : std::optional(std::move(window));
}

// The pixels that windows of one pixel read.
Value* take_pixels(Rewriter& rewriter, const Node& node, const Window& window) {
  std::vector<int64_t> starts, ends, axes, steps;
  for (int axis = 0; axis < window.rank(); ++axis) {
    if (window.strides[static_cast<size_t>(axis)] == 1) continue;
    starts.push_back(0);
    ends.push_back(std::numeric_limits<int64_t>::max());
    axes.push_back(axis + 2);
    steps.push_back(window.strides[static_cast<size_t>(axis)]);
  }
  if (axes.empty()) return node.inputs[0];
  const auto ints = [&](const char* name, const std::vector<int64_t>& numbers) {
    return rewriter.add_ints(name, numbers);
  };
  return rewriter.insert(
      &node, "Slice",
      {node.inputs[0], ints("starts", starts), ints("ends", ends), ints("axes", axes), ints("steps", steps)});
}

bool thin_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv" || rewriter.is_retired(node)) continue;
    const auto window = find_single_tap(*node);
    if (!window) continue;
    const bool is_by_channel = node->inputs[1]->shape()[0].is(node->int_attr("group", 1)) &&
                               node->inputs[1]->shape()[1].is(1) && !node->has_attr("clamp_min") &&
                               !node->has_attr("clamp_max");
    Value* pixels = take_pixels(rewriter, *node, *window);
    if (is_by_channel) {
      // A number for each channel, along the axis before the pixels.
      std::vector<int64_t> dims(static_cast<size_t>(window->rank()) + 1, 1);
      dims[0] = -1;
      const auto along_channels = [&](Value* value) {
        return rewriter.insert(node, "Reshape", {value, rewriter.add_ints("dims", dims)});
      };
      Value* y = rewriter.insert(node, "Mul", {pixels, along_channels(node->inputs[1])});
      if (Value* bias = node->input(2)) y = rewriter.insert(node, "Add", {y, along_channels(bias)});
      rewriter.replace(node->outputs[0], y);
    } else if (pixels != node->inputs[0]) {
      Attrs attrs = node->attrs;
      attrs["strides"] = std::vector<int64_t>(static_cast<size_t>(window->rank()), 1);
      std::vector<Value*> operands = node->inputs;
      operands[0] = pixels;
      rewriter.replace(node->outputs[0], rewriter.insert(node, "Conv", std::move(operands), std::move(attrs)));
    }
  }
  return rewriter.finish();
}

}  // namespace

// A convolution in groups whose kernel has one tap reads the pixels of its stride alone; a depthwise one is a product
// with a number for each channel.
bool thin_single_taps(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return thin_in_body(body, context); });
}

}  // namespace neo
