#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// The sizes of a DeformConv over images, all known but for the batch.
struct DeformedConv {
  Window window;
  int64_t channels, filters, groups, offset_groups;
  int64_t kernel[2], input[2], output[2];

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t points() const { return output[0] * output[1]; }
};

std::optional<DeformedConv> as_deformed_conv(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  const Shape& weight = node.inputs[1]->shape();
  const Shape& y = node.outputs[0]->shape();
  if (node.inputs[0]->dtype() != DType::Float32) return std::nullopt;
  for (const Shape* shape : {&x, &weight, &y}) {
    if (!shape->has_rank() || shape->rank() != 4) return std::nullopt;
    for (int axis = 1; axis < 4; ++axis) {
      const Dim& size = (*shape)[axis];
      if (!size.is_constant() || size.value() == 0) return std::nullopt;
    }
  }
  if (!weight[0].is_constant() || weight[0].is(0)) return std::nullopt;
  DeformedConv conv{read_window(node, 2),
                    x[1].value(),
                    weight[0].value(),
                    node.int_attr("group", 1),
                    node.int_attr("offset_group", 1),
                    {},
                    {},
                    {}};
  // Others are an error of the operator's.
  for (const Value* v : {node.inputs[2], node.input(4)}) {
    if (v && (!v->shape().has_rank() || v->shape()[2] != y[2] || v->shape()[3] != y[3])) return std::nullopt;
  }
  for (int axis = 0; axis < 2; ++axis) {
    conv.kernel[axis] = weight[axis + 2].value();
    conv.input[axis] = x[axis + 2].value();
    conv.output[axis] = y[axis + 2].value();
  }
  return conv;
}

class DeformConvExpansion {
 public:
  DeformConvExpansion(Rewriter& rewriter, const Node& node, const DeformedConv& conv)
      : rewriter_(rewriter), node_(node), conv_(conv), lead_(conv.offset_groups == 1 ? 0 : -1) {}

  Value* run() {
    const int64_t channels = conv_.channels / conv_.offset_groups;
    Value* planes = reshape(node_.inputs[0], {lead_, channels, conv_.input[0], conv_.input[1]});
    Value* samples = insert("GridSample", {planes, grid()}, {{"mode", std::string("linear")}});
    if (Value* mask = node_.input(4)) {
      samples = insert("Mul", {samples, reshape(mask, {lead_, 1, conv_.taps(), conv_.points()})});
    }
    Value* y = reshape(product(samples), {-1, conv_.filters, conv_.output[0], conv_.output[1]});
    if (Value* bias = node_.input(3)) y = insert("Add", {y, reshape(bias, {conv_.filters, 1, 1})});
    return y;
  }

 private:
  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }

  Value* reshape(Value* value, const std::vector<int64_t>& dims) {
    return insert("Reshape", {value, rewriter_.add_ints("dims", dims)});
  }

  // Where GridSample reads, of each image and offset group: [taps, points, 2], columns before rows.
  Value* grid() {
    Value* offsets = reshape(node_.inputs[2], {lead_, conv_.taps(), 2, conv_.points()});
    offsets = insert("Slice", {offsets, rewriter_.add_ints("starts", {1}), rewriter_.add_ints("ends", {-3}),
                               rewriter_.add_ints("axes", {2}), rewriter_.add_ints("steps", {-1})});
    offsets = insert("Transpose", {offsets}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    std::vector<double> scale, start;
    for (int axis : {1, 0}) scale.push_back(2.0 / static_cast<double>(conv_.input[axis]));
    for (int64_t tap = 0; tap < conv_.taps(); ++tap) {
      for (int64_t point = 0; point < conv_.points(); ++point) {
        for (int axis : {1, 0}) start.push_back(place(axis, tap, point));
      }
    }
    offsets = insert("Mul", {offsets, add_floats("scale", {2}, scale)});
    return insert("Add", {offsets, add_floats("places", {conv_.taps(), conv_.points(), 2}, start)});
  }

  // A tap's place without its offset, of an axis that reaches from -1 to 1.
  double place(int axis, int64_t tap, int64_t point) const {
    const auto i = static_cast<size_t>(axis);
    const int64_t t = axis == 0 ? tap / conv_.kernel[1] : tap % conv_.kernel[1];
    const int64_t o = axis == 0 ? point / conv_.output[1] : point % conv_.output[1];
    const int64_t pad = window_pad_begin(conv_.window, axis, conv_.kernel[axis], conv_.input[axis]);
    const int64_t pixel = o * conv_.window.strides[i] + t * conv_.window.dilations[i] - pad;
    return static_cast<double>(2 * pixel + 1) / static_cast<double>(conv_.input[axis]) - 1;
  }

  Value* add_floats(std::string_view name, const Dims& dims, const std::vector<double>& numbers) {
    Tensor tensor(DType::Float32, dims);
    store_doubles(tensor, numbers);
    return rewriter_.add_constant(name, std::move(tensor));
  }

  // The weights times the samples of each position.
  Value* product(Value* samples) {
    const int64_t groups = conv_.groups, summed = conv_.channels / groups * conv_.taps();
    if (groups == 1) {
      Value* weight = reshape(node_.inputs[1], {conv_.filters, summed});
      return insert("MatMul", {weight, reshape(samples, {-1, summed, conv_.points()})});
    }
    Value* weight = reshape(node_.inputs[1], {groups, conv_.filters / groups, summed});
    return insert("MatMul", {weight, reshape(samples, {-1, groups, summed, conv_.points()})});
  }

  Rewriter& rewriter_;
  const Node& node_;
  const DeformedConv& conv_;
  int64_t lead_;  // the first size that a Reshape is asked for: that of its input, or what remains
};

bool expand_deformed_convs(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "DeformConv") continue;
    const auto conv = as_deformed_conv(*node);
    if (conv) rewriter.replace(node->outputs[0], DeformConvExpansion(rewriter, *node, *conv).run());
  }
  return rewriter.finish();
}

}  // namespace

// The taps of all positions are samples of the image at moved places, which the weights multiply: im2col of Dai et al.,
// Deformable Convolutional Networks, section 2.1.
bool expand_deform_conv(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return expand_deformed_convs(body, context); });
}

}  // namespace neo
