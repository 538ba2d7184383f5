#include <algorithm>

#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// Taps that become nodes, and bytes of what an image's taps read.
constexpr int64_t kMaxTaps = 64, kMaxTapBytes = int64_t{128} << 20;

// A Conv of float64 in one group, or with one filter for each channel, over sizes that are known but for the batch.
struct DoubleConv {
  Window window;
  int64_t channels = 0, filters = 0;
  bool is_depthwise = false;
  std::vector<int64_t> kernel, output, pads;  // pads of all axes

  int64_t taps() const { return product_of(kernel); }
  int64_t places() const { return product_of(output); }

 private:
  static int64_t product_of(const std::vector<int64_t>& sizes) {
    int64_t all = 1;
    for (const int64_t size : sizes) all *= size;
    return all;
  }
};

std::optional<DoubleConv> find_double_conv(const Node& node) {
  const Value *x = node.inputs[0], *weight = node.inputs[1];
  const Shape &in = x->shape(), &out = node.outputs[0]->shape(), &taken = weight->shape();
  if (x->dtype() != DType::Float64 || node.inputs.size() > 3 || node.has_attr("clamp_min") ||
      node.has_attr("clamp_max") || !in.has_rank() || !out.has_rank() || !taken.has_rank()) {
    return std::nullopt;
  }
  DoubleConv conv{read_window(node, in.rank() - 2), 0, 0, false, {}, {}, {0, 0}};
  for (int axis = 1; axis < in.rank(); ++axis) {
    if (!in[axis].is_constant() || !out[axis].is_constant()) return std::nullopt;
  }
  for (const Dim& size : taken.dims()) {
    if (!size.is_constant()) return std::nullopt;
  }
  std::vector<int64_t> ends = {0, 0};
  for (int axis = 0; axis < conv.window.rank(); ++axis) {
    const int64_t kernel = taken[axis + 2].value(), size = in[axis + 2].value();
    conv.kernel.push_back(kernel);
    conv.output.push_back(out[axis + 2].value());
    conv.pads.push_back(window_pad_begin(conv.window, axis, kernel, size));
    ends.push_back(window_pad_total(conv.window, axis, kernel, size) - conv.pads.back());
  }
  conv.pads.insert(conv.pads.end(), ends.begin(), ends.end());
  conv.channels = in[1].value();
  conv.filters = taken[0].value();
  const int64_t groups = node.int_attr("group", 1);
  conv.is_depthwise = groups > 1;
  if (conv.is_depthwise && (groups != conv.channels || groups != conv.filters)) return std::nullopt;
  const int64_t taps = conv.taps(), places = conv.places();
  const bool has_work = taps > 0 && taps <= kMaxTaps && places > 0 && conv.channels > 0 && conv.filters > 0;
  return has_work && 8 * conv.channels * taps <= kMaxTapBytes / places ? std::optional(std::move(conv)) : std::nullopt;
}

class DoubleConvParts {
 public:
  DoubleConvParts(Rewriter& rewriter, const Node& node, const DoubleConv& conv)
      : rewriter_(rewriter), node_(node), conv_(conv) {}

  Value* run() {
    image_ = node_.inputs[0];
    if (std::ranges::any_of(conv_.pads, [](int64_t pad) { return pad != 0; }))
      image_ = insert("Pad", {image_, ints("pads", conv_.pads)});
    Value* y = conv_.is_depthwise ? sum_of_taps() : product_of_taps();
    std::vector<int64_t> dims = {0, conv_.filters};
    dims.insert(dims.end(), conv_.output.begin(), conv_.output.end());
    return reshape(y, dims);
  }

 private:
  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }
  Value* ints(std::string_view name, const std::vector<int64_t>& numbers) { return rewriter_.add_ints(name, numbers); }
  Value* reshape(Value* value, const std::vector<int64_t>& dims) {
    return insert("Reshape", {value, ints("dims", dims)});
  }

  // The pixels that a tap, counted in order, reads; `place` becomes its position along each axis.
  Value* read_by(int64_t tap, std::vector<int64_t>& place) {
    std::vector<int64_t> starts, ends, axes;
    place.resize(conv_.kernel.size());
    for (size_t i = conv_.kernel.size(); i-- > 0; tap /= conv_.kernel[i]) place[i] = tap % conv_.kernel[i];
    for (size_t i = 0; i < place.size(); ++i) {
      starts.push_back(place[i] * conv_.window.dilations[i]);
      ends.push_back(starts.back() + (conv_.output[i] - 1) * conv_.window.strides[i] + 1);
      axes.push_back(static_cast<int64_t>(i) + 2);
    }
    return insert("Slice", {image_, ints("starts", starts), ints("ends", ends), ints("axes", axes),
                            ints("steps", conv_.window.strides)});
  }

  Value* product_of_taps() {
    std::vector<Value*> parts;
    std::vector<int64_t> place, order = {0};
    for (int64_t tap = 0; tap < conv_.taps(); ++tap) parts.push_back(read_by(tap, place));
    Value* joined = parts.size() == 1 ? parts[0] : insert("Concat", std::move(parts), {{"axis", int64_t{1}}});
    const int64_t depth = conv_.channels * conv_.taps();
    for (size_t i = 0; i < conv_.kernel.size(); ++i) order.push_back(static_cast<int64_t>(i) + 2);
    order.push_back(1);
    Value* filters = reshape(insert("Transpose", {node_.inputs[1]}, {{"perm", order}}), {conv_.filters, depth});
    Value* y = insert("MatMul", {filters, reshape(joined, {0, depth, conv_.places()})});
    Value* bias = node_.input(2);
    return bias ? insert("Add", {y, reshape(bias, {-1, 1})}) : y;
  }

  Value* sum_of_taps() {
    std::vector<int64_t> dims(conv_.kernel.size() + 1, 1), axes, place;
    dims[0] = -1;
    for (size_t i = 0; i < conv_.kernel.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 2);
    Value* sum = node_.input(2) ? reshape(node_.input(2), dims) : nullptr;
    for (int64_t tap = 0; tap < conv_.taps(); ++tap) {
      Value* read = read_by(tap, place);
      std::vector<int64_t> behind;
      for (const int64_t at : place) behind.push_back(at + 1);
      Value* factor =
          insert("Slice", {node_.inputs[1], ints("starts", place), ints("ends", behind), ints("axes", axes)});
      Value* part = insert("Mul", {read, reshape(factor, dims)});
      sum = sum ? insert("Add", {sum, part}) : part;
    }
    return sum;
  }

  Rewriter& rewriter_;
  const Node& node_;
  const DoubleConv& conv_;
  Value* image_ = nullptr;
};

bool expand_double_convs_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv" || rewriter.is_retired(node)) continue;
    if (const auto conv = find_double_conv(*node))
      rewriter.replace(node->outputs[0], DoubleConvParts(rewriter, *node, *conv).run());
  }
  return rewriter.finish();
}

}  // namespace

// A convolution of float64, which has no routine, is a product with what its taps read; a depthwise one is a sum over
// taps.
bool expand_double_convs(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return expand_double_convs_in_body(body, context); });
}

}  // namespace neo
