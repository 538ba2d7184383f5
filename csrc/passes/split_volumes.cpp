#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// Frames gathered for a batch of one are no larger.
constexpr int64_t kMaxGatheredBytes = int64_t{128} << 20;

// A convolution over three axes, of which the first is one of frames; all sizes but the batch are known.
struct Volume {
  Window window;
  int64_t channels, filters, groups;
  int64_t kernel[3], input[3], output[3], pad_begin[3], pad_end[3];

  bool is_depthwise() const { return channels > 1 && groups == channels; }

  // Whether each pixel is convolved by itself.
  bool is_along_frames() const {
    for (size_t axis : {1, 2}) {
      if (kernel[axis] != 1 || window.strides[axis] != 1 || output[axis] != input[axis]) return false;
    }
    return true;
  }

  // The size of all frames that a kernel reads, for each frame of the output.
  int64_t gathered_bytes() const { return 4 * channels * kernel[0] * output[0] * input[1] * input[2]; }
};

std::optional<Volume> as_volume(const Node& node) {
  const Value* weight = node.inputs[1];
  const Shape& x = node.inputs[0]->shape();
  const Shape& y = node.outputs[0]->shape();
  if (node.op != "Conv" || node.inputs.size() > 3 || !weight->constant || weight->dtype() != DType::Float32) {
    return std::nullopt;
  }
  for (const Shape* shape : {&x, &y}) {
    if (!shape->has_rank() || shape->rank() != 5) return std::nullopt;
    for (int axis = 1; axis < 5; ++axis) {
      if (!(*shape)[axis].is_constant() || (*shape)[axis].is(0)) return std::nullopt;
    }
  }
  Volume v{read_window(node, 3), x[1].value(), y[1].value(), node.int_attr("group", 1), {}, {}, {}, {}, {}};
  for (int axis = 0; axis < 3; ++axis) {
    v.kernel[axis] = weight->shape()[axis + 2].value();
    v.input[axis] = x[axis + 2].value();
    v.output[axis] = y[axis + 2].value();
    v.pad_begin[axis] = window_pad_begin(v.window, axis, v.kernel[axis], v.input[axis]);
    v.pad_end[axis] = window_pad_total(v.window, axis, v.kernel[axis], v.input[axis]) - v.pad_begin[axis];
  }
  // The routines that multiply codes take volumes, of one group, as they are.
  const Node* before = node.inputs[0]->producer;
  if (v.groups == 1 && before && before->op == "DequantizeLinear") return std::nullopt;
  if (v.is_along_frames()) return v;
  if (!v.is_depthwise()) {
    return v.gathered_bytes() <= kMaxGatheredBytes ? std::optional(std::move(v)) : std::nullopt;
  }
  for (const char* bound : {"clamp_min", "clamp_max"}) {
    if (node.has_attr(bound)) return std::nullopt;
  }
  return v;
}

class VolumeSplit {
 public:
  VolumeSplit(Rewriter& rewriter, const Node& node, const Volume& volume)
      : rewriter_(rewriter), node_(node), v_(volume) {}

  Value* run() {
    if (v_.is_along_frames()) return along_frames();
    Value* frames = insert("Transpose", {node_.inputs[0]}, {{"perm", kFramesFirst}});
    if (v_.pad_begin[0] + v_.pad_end[0] > 0) {
      frames = insert("Pad", {frames, ints("pads", {0, v_.pad_begin[0], 0, 0, 0, 0, v_.pad_end[0], 0, 0, 0})});
    }
    Value* images = v_.is_depthwise() ? summed(frames) : gathered(frames);
    Value* y = reshape(images, {-1, v_.output[0], v_.filters, v_.output[1], v_.output[2]});
    return insert("Transpose", {y}, {{"perm", kFramesFirst}});
  }

 private:
  // The frames are the rows of one image, their pixels its columns.
  Value* along_frames() {
    const int64_t pixels = v_.input[1] * v_.input[2];
    Value* y = convolution(reshape(node_.inputs[0], {-1, v_.channels, v_.input[0], pixels}),
                           reshape(node_.inputs[1], {v_.filters, v_.channels / v_.groups, v_.kernel[0], 1}), true,
                           attrs_of({0, 1}));
    return reshape(y, {-1, v_.filters, v_.output[0], v_.output[1], v_.output[2]});
  }

  // One convolution of images whose channels are those of all frames that a kernel reads.
  Value* gathered(Value* frames) {
    const int64_t inputs = v_.channels / v_.groups;
    if (v_.groups > 1) {
      frames = reshape(
          frames, {-1, v_.input[0] + v_.pad_begin[0] + v_.pad_end[0], v_.groups, inputs, v_.input[1], v_.input[2]});
    }
    std::vector<Value*> taps;
    for (int64_t tap = 0; tap < v_.kernel[0]; ++tap) taps.push_back(frames_of(frames, tap));
    Value* images =
        taps.size() == 1 ? taps[0] : insert("Concat", std::move(taps), {{"axis", int64_t{v_.groups > 1 ? 3 : 2}}});
    Value* kernel = insert("Transpose", {node_.inputs[1]}, {{"perm", kFramesFirst}});
    return convolution(reshape(images, {-1, v_.channels * v_.kernel[0], v_.input[1], v_.input[2]}),
                       reshape(kernel, {v_.filters, inputs * v_.kernel[0], v_.kernel[1], v_.kernel[2]}), true,
                       attrs_of({1, 2}));
  }

  // A sum of convolutions, one for each tap of the first axis.
  Value* summed(Value* frames) {
    Value* sum = nullptr;
    for (int64_t tap = 0; tap < v_.kernel[0]; ++tap) {
      Value* kernel =
          insert("Slice", {node_.inputs[1], ints("starts", {tap}), ints("ends", {tap + 1}), ints("axes", {2})});
      Value* images = convolution(reshape(frames_of(frames, tap), {-1, v_.channels, v_.input[1], v_.input[2]}),
                                  insert("Squeeze", {kernel, ints("axes", {2})}), tap == 0, attrs_of({1, 2}));
      sum = sum ? insert("Add", {sum, images}) : images;
    }
    return sum;
  }

  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }
  Value* ints(std::string_view name, const std::vector<int64_t>& numbers) { return rewriter_.add_ints(name, numbers); }
  Value* reshape(Value* value, const std::vector<int64_t>& dims) {
    return insert("Reshape", {value, ints("dims", dims)});
  }

  // The frames that one tap of the first axis reads.
  Value* frames_of(Value* frames, int64_t tap) {
    const int64_t stride = v_.window.strides[0], first = tap * v_.window.dilations[0];
    return insert("Slice", {frames, ints("starts", {first}), ints("ends", {first + (v_.output[0] - 1) * stride + 1}),
                            ints("axes", {1}), ints("steps", {stride})});
  }

  Value* convolution(Value* images, Value* kernel, bool has_bias, Attrs attrs) {
    std::vector<Value*> operands = {images, kernel};
    if (has_bias && node_.input(2)) operands.push_back(node_.input(2));
    return insert("Conv", std::move(operands), std::move(attrs));
  }

  // The attributes of a convolution over some of the axes.
  Attrs attrs_of(std::initializer_list<size_t> axes) const {
    std::vector<int64_t> strides, dilations, pads;
    for (const size_t axis : axes) {
      strides.push_back(v_.window.strides[axis]);
      dilations.push_back(v_.window.dilations[axis]);
      pads.push_back(v_.pad_begin[axis]);
    }
    for (const size_t axis : axes) pads.push_back(v_.pad_end[axis]);
    Attrs attrs{{"group", v_.groups}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    for (const char* kept : {"clamp_min", "clamp_max", "exact"}) {
      if (const auto it = node_.attrs.find(kept); it != node_.attrs.end()) attrs.insert(*it);
    }
    return attrs;
  }

  inline static const std::vector<int64_t> kFramesFirst = {0, 2, 1, 3, 4};  // and back

  Rewriter& rewriter_;
  const Node& node_;
  const Volume& v_;
};

// Whether another form may be as fast: the volume itself, where the kernel reads some frames and skips others, or a
// convolution for each of a few groups.
bool has_rivals(const Volume& volume) {
  if (volume.is_depthwise() || volume.is_along_frames()) return false;
  const bool skips_frames = volume.window.strides[0] != 1 && volume.kernel[0] != 1;
  return skips_frames || (volume.groups > 1 && volume.groups <= kMaxSplitGroups);
}

bool split_in_body(Graph& graph, const PassContext& context, bool rivals) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv") continue;
    const auto volume = as_volume(*node);
    if (volume && has_rivals(*volume) == rivals)
      rewriter.replace(node->outputs[0], VolumeSplit(rewriter, *node, *volume).run());
  }
  return rewriter.finish();
}

}  // namespace

// A convolution of volumes is one of images, whose channels are those of all frames that the kernel reads; a depthwise
// one is a sum of one for each of these frames. Columns through the frames are convolved as the columns of an image.
bool split_volumes(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return split_in_body(body, context, false); });
}

// The same where that is a matter of cost.
bool gather_frames(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return split_in_body(body, context, true); });
}

}  // namespace neo
