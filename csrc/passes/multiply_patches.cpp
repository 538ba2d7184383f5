#include <algorithm>

#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// A Conv of one group whose windows lie edge to edge and cover its image.
struct Patches {
  std::vector<int64_t> kernel, output;  // spatial
  int64_t channels = 0, filters = 0;

  int64_t taps() const { return product(kernel); }
  int64_t elements() const { return channels * taps(); }
  int64_t places() const { return product(output); }

 private:
  static int64_t product(const std::vector<int64_t>& sizes) {
    int64_t all = 1;
    for (const int64_t size : sizes) all *= size;
    return all;
  }
};

std::optional<Patches> find_patches(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  const Shape& y = node.outputs[0]->shape();
  const std::optional<Tensor>& weight = node.inputs[1]->constant;
  if (node.inputs.size() > 3 || !weight || !x.has_rank() || !y.has_rank() || !x[1].is_constant() ||
      node.int_attr("group", 1) != 1) {
    return std::nullopt;
  }
  Patches patches;
  patches.filters = weight->dims()[0];
  patches.channels = weight->dims()[1];
  const Window window = read_window(node, x.rank() - 2);
  for (int axis = 0; axis < window.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t kernel = weight->dims()[i + 2];
    const Dim &input = x[axis + 2], &output = y[axis + 2];
    if (window.strides[i] != kernel || window.dilations[i] != 1 || !output.is_constant() ||
        !input.is(output.value() * kernel) || window_pad_total(window, axis, kernel, input.value()) != 0) {
      return std::nullopt;
    }
    patches.kernel.push_back(kernel);
    patches.output.push_back(output.value());
  }
  const bool has_work = patches.elements() > 0 && patches.filters > 0 && patches.places() > 0;
  return has_work ? std::optional(std::move(patches)) : std::nullopt;
}

Value* multiply_places(Rewriter& rewriter, const Node& node, const Patches& patches) {
  const auto reshape = [&](Value* value, const std::vector<int64_t>& dims) {
    return rewriter.insert(&node, "Reshape", {value, rewriter.add_ints("dims", dims)});
  };
  // Channels, and each axis as places and elements of a patch; then places before elements.
  const auto axes = static_cast<int64_t>(patches.kernel.size());
  std::vector<int64_t> cut = {0, patches.channels}, order = {0};
  for (size_t i = 0; i < patches.kernel.size(); ++i) cut.insert(cut.end(), {patches.output[i], patches.kernel[i]});
  for (int64_t axis = 0; axis < axes; ++axis) order.push_back(2 + 2 * axis);
  for (int64_t axis = 0; axis <= axes; ++axis) order.push_back(1 + 2 * axis);
  Value* turned = rewriter.insert(&node, "Transpose", {reshape(node.inputs[0], cut)}, {{"perm", order}});
  std::vector<Value*> operands = {reshape(turned, {-1, patches.elements()}),
                                  reshape(node.inputs[1], {patches.filters, patches.elements()})};
  if (Value* bias = node.input(2)) operands.push_back(bias);
  Attrs attrs{{"transB", int64_t{1}}};
  for (const char* kept : {"clamp_min", "clamp_max", "exact"}) {
    if (const auto it = node.attrs.find(kept); it != node.attrs.end()) attrs.insert(*it);
  }
  Value* rows = reshape(rewriter.insert(&node, "Gemm", std::move(operands), std::move(attrs)),
                        {-1, patches.places(), patches.filters});
  Value* filters = rewriter.insert(&node, "Transpose", {rows}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  std::vector<int64_t> dims = {-1, patches.filters};
  dims.insert(dims.end(), patches.output.begin(), patches.output.end());
  return reshape(filters, dims);
}

bool multiply_patches_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv" || rewriter.is_retired(node)) continue;
    const auto patches = find_patches(*node);
    if (patches && (patches->taps() > 1 || patches->places() == 1 || rewriter.nodes().size() > 1)) {
      rewriter.replace(node->outputs[0], multiply_places(rewriter, *node, *patches));
    }
  }
  return rewriter.finish();
}

}  // namespace

// A convolution of patches that lie edge to edge, with which vision transformers begin, is a product of a row for each
// patch; what reads its result as rows then moves nothing. Pixels of several places are rows only beside nodes that
// move them as well: alone they would be moved twice for the same product.
bool multiply_patches(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return multiply_patches_in_body(body, context); });
}

}  // namespace neo
