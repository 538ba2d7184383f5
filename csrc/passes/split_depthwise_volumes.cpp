#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// A depthwise convolution over three axes, of which the first is one of frames; all sizes but the batch are known.
struct DepthwiseVolume {
  Window window;
  int64_t channels, filters;
  int64_t kernel[3], input[3], output[3], pad_begin[3], pad_end[3];
};

std::optional<DepthwiseVolume> as_depthwise_volume(const Node& node) {
  const Value* weight = node.inputs[1];
  const Shape& x = node.inputs[0]->shape();
  const Shape& y = node.outputs[0]->shape();
  if (node.op != "Conv" || node.inputs.size() > 3 || !weight->constant || weight->dtype() != DType::Float32) {
    return std::nullopt;
  }
  for (const char* bound : {"clamp_min", "clamp_max"}) {
    if (node.has_attr(bound)) return std::nullopt;
  }
  for (const Shape* shape : {&x, &y}) {
    if (!shape->has_rank() || shape->rank() != 5) return std::nullopt;
    for (int axis = 1; axis < 5; ++axis) {
      if (!(*shape)[axis].is_constant() || (*shape)[axis].is(0)) return std::nullopt;
    }
  }
  DepthwiseVolume v{read_window(node, 3), x[1].value(), y[1].value(), {}, {}, {}, {}, {}};
  if (v.channels == 1 || node.int_attr("group", 1) != v.channels) return std::nullopt;
  for (int axis = 0; axis < 3; ++axis) {
    v.kernel[axis] = weight->shape()[axis + 2].value();
    v.input[axis] = x[axis + 2].value();
    v.output[axis] = y[axis + 2].value();
    v.pad_begin[axis] = window_pad_begin(v.window, axis, v.kernel[axis], v.input[axis]);
    v.pad_end[axis] = window_pad_total(v.window, axis, v.kernel[axis], v.input[axis]) - v.pad_begin[axis];
  }
  return v;
}

class VolumeSplit {
 public:
  VolumeSplit(Rewriter& rewriter, const Node& node, const DepthwiseVolume& volume)
      : rewriter_(rewriter), node_(node), v_(volume) {}

  Value* run() {
    if (is_along_frames()) return along_frames();
    Value* frames = insert("Transpose", {node_.inputs[0]}, {{"perm", kFramesFirst}});
    if (v_.pad_begin[0] + v_.pad_end[0] > 0) {
      frames = insert("Pad", {frames, ints("pads", {0, v_.pad_begin[0], 0, 0, 0, 0, v_.pad_end[0], 0, 0, 0})});
    }
    Value* sum = nullptr;
    for (int64_t tap = 0; tap < v_.kernel[0]; ++tap) {
      Value* images = convolved(frames, tap);
      sum = sum ? insert("Add", {sum, images}) : images;
    }
    Value* y = reshape(sum, {-1, v_.output[0], v_.filters, v_.output[1], v_.output[2]});
    return insert("Transpose", {y}, {{"perm", kFramesFirst}});
  }

 private:
  // Whether each pixel is convolved by itself.
  bool is_along_frames() const {
    for (size_t axis : {1, 2}) {
      if (v_.kernel[axis] != 1 || v_.window.strides[axis] != 1 || v_.output[axis] != v_.input[axis]) return false;
    }
    return true;
  }

  // The frames are the rows of one image, their pixels its columns.
  Value* along_frames() {
    const int64_t pixels = v_.input[1] * v_.input[2];
    std::vector<Value*> operands = {reshape(node_.inputs[0], {-1, v_.channels, v_.input[0], pixels}),
                                    reshape(node_.inputs[1], {v_.filters, 1, v_.kernel[0], 1})};
    if (Value* bias = node_.input(2)) operands.push_back(bias);
    Value* y = insert("Conv", std::move(operands),
                      {{"group", v_.channels},
                       {"strides", std::vector<int64_t>{v_.window.strides[0], 1}},
                       {"dilations", std::vector<int64_t>{v_.window.dilations[0], 1}},
                       {"pads", std::vector<int64_t>{v_.pad_begin[0], 0, v_.pad_end[0], 0}}});
    return reshape(y, {-1, v_.filters, v_.output[0], v_.output[1], v_.output[2]});
  }

  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }
  Value* ints(std::string_view name, const std::vector<int64_t>& numbers) { return rewriter_.add_ints(name, numbers); }
  Value* reshape(Value* value, const std::vector<int64_t>& dims) {
    return insert("Reshape", {value, ints("dims", dims)});
  }

  // The images of the frames that one tap of the first axis reads, by its kernel.
  Value* convolved(Value* frames, int64_t tap) {
    const int64_t stride = v_.window.strides[0], first = tap * v_.window.dilations[0];
    Value* read =
        insert("Slice", {frames, ints("starts", {first}), ints("ends", {first + (v_.output[0] - 1) * stride + 1}),
                         ints("axes", {1}), ints("steps", {stride})});
    Value* kernel =
        insert("Slice", {node_.inputs[1], ints("starts", {tap}), ints("ends", {tap + 1}), ints("axes", {2})});
    std::vector<Value*> operands = {reshape(read, {-1, v_.channels, v_.input[1], v_.input[2]}),
                                    insert("Squeeze", {kernel, ints("axes", {2})})};
    if (tap == 0 && node_.input(2)) operands.push_back(node_.input(2));
    const auto of_images = [](const std::vector<int64_t>& all) { return std::vector<int64_t>{all[1], all[2]}; };
    return insert("Conv", std::move(operands),
                  {{"group", v_.channels},
                   {"strides", of_images(v_.window.strides)},
                   {"dilations", of_images(v_.window.dilations)},
                   {"pads", std::vector<int64_t>{v_.pad_begin[1], v_.pad_begin[2], v_.pad_end[1], v_.pad_end[2]}}});
  }

  inline static const std::vector<int64_t> kFramesFirst = {0, 2, 1, 3, 4};  // and back

  Rewriter& rewriter_;
  const Node& node_;
  const DepthwiseVolume& v_;
};

bool split_volumes(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv") continue;
    const auto volume = as_depthwise_volume(*node);
    if (volume) rewriter.replace(node->outputs[0], VolumeSplit(rewriter, *node, *volume).run());
  }
  return rewriter.finish();
}

}  // namespace

// A depthwise convolution of volumes is a sum of depthwise convolutions of images, one for each tap of the first axis;
// one of columns through the frames is a single one.
bool split_depthwise_volumes(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return split_volumes(body, context); });
}

}  // namespace neo
