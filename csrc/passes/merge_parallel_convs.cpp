#include <algorithm>

#include "ops/window.h"
#include "passes/linear.h"
#include "passes/pattern.h"

namespace neo {
namespace {

// A convolution with constant weights and explicit padding.
struct Branch {
  LinearNode linear;
  Window window;
  Dims weight;

  size_t axes() const { return weight.size() - 2; }
  int64_t groups() const { return linear.node->int_attr("group", 1); }
};

std::optional<Branch> as_branch(Node* node) {
  if (!node || node->op != "Conv") return std::nullopt;
  const auto linear = as_linear(*node);
  if (!linear || !node->inputs[1]->constant) return std::nullopt;
  Branch branch{*linear, {}, node->inputs[1]->constant->dims()};
  if (branch.weight.size() < 3) return std::nullopt;
  branch.window = read_window(*node, static_cast<int>(branch.axes()));
  return branch.window.auto_pad == AutoPad::NotSet ? std::optional(branch) : std::nullopt;
}

// The place of the taps of a filter with these sizes and pads among those of the branch; none where it has none.
std::optional<Dims> place_of(const Branch& branch, const Dims& kernel, const std::vector<int64_t>& pads) {
  Dims place;
  for (size_t i = 0; i < branch.axes(); ++i) {
    const int64_t off = branch.window.pads[i] - pads[i], dilation = branch.window.dilations[i];
    if (off < 0 || off % dilation != 0 || off / dilation + kernel[i] > branch.weight[i + 2]) return std::nullopt;
    place.push_back(off / dilation);
  }
  return place;
}

// Adds a filter O I/g K... to another of as many channels, at a place of its taps.
void add_taps(std::vector<double>& to, const Dims& dims, const std::vector<double>& taps, const Dims& kernel,
              const Dims& place) {
  const size_t axes = place.size();
  int64_t count = 1, size = 1;
  for (size_t i = 0; i < axes; ++i) {
    count *= kernel[i];
    size *= dims[i + 2];
  }
  for (size_t at = 0; at < taps.size(); ++at) {
    int64_t tap = static_cast<int64_t>(at) % count, offset = 0, stride = 1;
    for (size_t i = axes; i-- > 0;) {
      offset += (tap % kernel[i] + place[i]) * stride;
      tap /= kernel[i];
      stride *= dims[i + 2];
    }
    to[static_cast<size_t>(static_cast<int64_t>(at) / count * size + offset)] += taps[at];
  }
}

void set_taps(Rewriter& rewriter, const Branch& branch, const std::vector<double>& taps) {
  Node& node = *branch.linear.node;
  Tensor weight(node.inputs[1]->dtype(), branch.weight);
  store_doubles(weight, taps);
  rewriter.set_input(&node, 1, rewriter.add_constant(node.inputs[1]->name, std::move(weight)));
}

void add_bias(Rewriter& rewriter, const Branch& branch, const std::vector<double>& added) {
  std::vector<double> bias = bias_of(branch.linear);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] += added[c];
  set_bias(rewriter, branch.linear, bias);
}

// Takes the second convolution of the same input into the first.
bool merge_conv(Rewriter& rewriter, const Branch& into, const Branch& other) {
  const Node& other_node = *other.linear.node;
  if (into.linear.node->inputs[0] != other_node.inputs[0] || into.axes() != other.axes()) return false;
  if (into.groups() != other.groups() || into.window.strides != other.window.strides) return false;
  if (!std::equal(into.weight.begin(), into.weight.begin() + 2, other.weight.begin())) return false;
  const Dims kernel(other.weight.begin() + 2, other.weight.end());
  for (size_t i = 0; i < into.axes(); ++i) {
    if (kernel[i] > 1 && into.window.dilations[i] != other.window.dilations[i]) return false;
  }
  const auto place = place_of(into, kernel, other.window.pads);
  if (!place) return false;
  std::vector<double> taps = load_doubles(*into.linear.node->inputs[1]->constant);
  add_taps(taps, into.weight, load_doubles(*other_node.inputs[1]->constant), kernel, *place);
  set_taps(rewriter, into, taps);
  if (other_node.input(LinearNode::kBias)) add_bias(rewriter, into, bias_of(other.linear));
  return true;
}

// x * scale + shift with a number for each channel.
struct ScaledInput {
  const Value* x = nullptr;
  std::vector<double> scale, shift;
};

std::optional<ScaledInput> as_scaled(const Rewriter& rewriter, const Value* value, int64_t channels) {
  const int rank = value->shape().rank();
  ScaledInput scaled;
  if (const Node* add = made_by(value, "Add")) {
    for (size_t i = 0; i < 2 && scaled.shift.empty(); ++i) {
      const Value* product = add->inputs[i];
      const auto shift = per_channel(*add->inputs[1 - i], rank, 1, channels);
      if (!shift || !made_by(product, "Mul") || rewriter.uses(product) != 1) continue;
      scaled.shift = *shift;
      value = product;
    }
  }
  const Node* product = made_by(value, "Mul");
  if (!product) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto scale = per_channel(*product->inputs[1 - i], rank, 1, channels);
    if (!scale || !(product->inputs[i]->shape() == value->shape())) continue;
    scaled.x = product->inputs[i];
    scaled.scale = *scale;
    return scaled;
  }
  return std::nullopt;
}

// Takes x times a number for each channel into a convolution of x.
bool merge_scaled(Rewriter& rewriter, const Branch& into, const Value* value) {
  const int64_t channels = into.linear.channels, per_group = into.weight[1];
  if (per_group * into.groups() != channels) return false;
  const auto scaled = as_scaled(rewriter, value, channels);
  if (!scaled || scaled->x != into.linear.node->inputs[0]) return false;
  const auto& strides = into.window.strides;
  if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; })) return false;
  const Dims kernel(into.axes(), 1);
  const auto place = place_of(into, kernel, std::vector<int64_t>(into.axes(), 0));
  if (!place) return false;
  std::vector<double> one(static_cast<size_t>(channels * per_group), 0.0);
  for (int64_t c = 0; c < channels; ++c) {
    one[static_cast<size_t>(c * per_group + c % per_group)] = scaled->scale[static_cast<size_t>(c)];
  }
  std::vector<double> taps = load_doubles(*into.linear.node->inputs[1]->constant);
  add_taps(taps, into.weight, one, kernel, *place);
  set_taps(rewriter, into, taps);
  if (!scaled->shift.empty()) add_bias(rewriter, into, scaled->shift);
  return true;
}

bool merge_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Add" || rewriter.is_retired(node)) continue;
    Value* sum = node->outputs.front();
    for (size_t i = 0; i < 2; ++i) {
      Value* value = node->inputs[i];
      Value* other = node->inputs[1 - i];
      if (!value->shape().has_rank() || !(value->shape() == other->shape()) || value == other) continue;
      if (rewriter.only_reader(value) != node || rewriter.only_reader(other) != node) continue;
      const auto into = as_branch(value->producer);
      if (!into) continue;
      const auto branch = as_branch(other->producer);
      if (branch ? !merge_conv(rewriter, *into, *branch) : !merge_scaled(rewriter, *into, other)) continue;
      rewriter.fold_into(sum, value);
      break;
    }
  }
  return rewriter.finish();
}

}  // namespace

// A sum of convolutions of one input, as networks have while they are trained and as some are shipped, is one
// convolution: a smaller filter lies among the taps of the larger one, and x times a number for each channel is a
// filter of one tap (Ding et al., "RepVGG: Making VGG-style ConvNets Great Again", 2021).
bool merge_parallel_convs(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return merge_in_body(g, context); });
}

}  // namespace neo
