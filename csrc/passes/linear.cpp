#include "passes/linear.h"

#include <algorithm>

#include "ops/op.h"
#include "passes/pattern.h"
#include "passes/quantization.h"

namespace neo {
namespace {

bool is_float_constant(const Value* v) {
  return v && v->constant && is_float(v->dtype());
}

bool is_convolution(const Node& node) {
  return node.op == "Conv" || node.op == "ConvTranspose";
}

// A convolution's bias is a vector of its channels, another's broadcasts to the output.
std::optional<std::vector<double>> numbers_of_bias(const LinearNode& linear, const Value& bias) {
  if (is_convolution(*linear.node)) return per_channel(bias, 1, 0, linear.channels);
  return per_channel(bias, linear.node->outputs.front()->shape().rank(), linear.channel_axis, linear.channels);
}

// Axis of the weights that runs over output channels, and how many channels one step of it stands for.
int weight_axis(const Node& node) {
  if (node.op == "Conv") return 0;
  if (node.op == "ConvTranspose") return 1;
  if (node.op == "Gemm") return node.int_attr("transB", 0) ? 0 : 1;
  return node.inputs[1]->shape().rank() - 1;
}

// Elements [begin, end) in memory's order.
Tensor elements_of(const Tensor& tensor, int64_t begin, int64_t end) {
  auto* data = static_cast<std::byte*>(tensor.data()) + begin * item_bytes(tensor.dtype());
  return {tensor.dtype(), {end - begin}, data, tensor.owner()};
}

Tensor scaled_weights(const LinearNode& linear, const std::vector<double>& scale) {
  constexpr int64_t kSlice = 8192;  // in the first-level cache with its double precision copy, or nearly so
  const Node& node = *linear.node;
  const Tensor& weights = *node.inputs[1]->constant;
  const int axis = weight_axis(node);
  const Dims& dims = weights.dims();
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  const int64_t along = dims[static_cast<size_t>(axis)];
  Tensor out(weights.dtype(), dims);
  // ConvTranspose holds its groups along axis 0: channel = group * along + index.
  const int64_t per_group =
      node.op == "ConvTranspose" ? weights.size() / std::max<int64_t>(1, node.int_attr("group", 1)) : weights.size();
  for (int64_t begin = 0; begin < weights.size(); begin += kSlice) {
    const int64_t end = std::min(begin + kSlice, weights.size());
    std::vector<double> numbers = load_doubles(elements_of(weights, begin, end));
    // Runs of elements of one channel.
    for (int64_t i = begin; i < end;) {
      const int64_t run = i / inner, stop = std::min((run + 1) * inner, end);
      int64_t channel = run % along;
      if (node.op == "ConvTranspose") channel += run * inner / per_group * along;
      for (; i < stop; ++i) numbers[static_cast<size_t>(i - begin)] *= scale[static_cast<size_t>(channel)];
    }
    store_doubles(elements_of(out, begin, end), numbers);
  }
  return out;
}

// One number for all becomes one for each channel.
Value* spread(Rewriter& rewriter, Value* value, int64_t channels) {
  const Tensor& tensor = *value->constant;
  if (tensor.rank() == 1 && tensor.size() == channels) return value;
  Tensor many(tensor.dtype(), {channels});
  store_doubles(many, std::vector<double>(static_cast<size_t>(channels), load_doubles(tensor).front()));
  return rewriter.add_constant(value->name, std::move(many));
}

// The scales of a node's blocks, times a number for each channel along `axis`.
Tensor scaled_blocks(const Tensor& scales, int axis, const std::vector<double>& scale) {
  std::vector<double> numbers = load_doubles(scales);
  const auto last = static_cast<size_t>(scales.dims().back());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] *= scale[axis == 0 ? i / last : i % last];
  Tensor tensor(scales.dtype(), scales.dims());
  store_doubles(tensor, numbers);
  return tensor;
}

// The same weights with other scales, where they are codes of one scale, or of one for each channel or each block of
// one; else null.
Value* scaled_codes(Rewriter& rewriter, const LinearNode& linear, const std::vector<double>& scale) {
  const Node* source = made_by(linear.node->inputs[1], "DequantizeLinear");
  if (!source || !source->inputs[0]->constant || !source->inputs[1]->constant || linear.node->op == "ConvTranspose")
    return nullptr;
  const int axis = weight_axis(*linear.node), rank = source->inputs[0]->constant->rank();
  Value* zero = source->input(2);
  if (source->int_attr("block_size", 0) != 0) {
    if (rank != 2 || source->int_attr("axis", 1) != 1 - axis) return nullptr;
    Tensor scales = scaled_blocks(*source->inputs[1]->constant, axis, scale);
    std::vector<Value*> inputs{source->inputs[0], rewriter.add_constant(source->inputs[1]->name, std::move(scales))};
    if (zero) inputs.push_back(zero);
    return rewriter.insert(linear.node, "DequantizeLinear", std::move(inputs), source->attrs,
                           linear.node->inputs[1]->name);
  }
  if (!is_byte(source->inputs[0]->dtype())) return nullptr;
  for (const Value* v : {source->inputs[1], zero}) {
    if (!v) continue;
    const int64_t given = source->int_attr("axis", 1);
    const bool by_channel = v->constant && v->constant->rank() == 1 && v->constant->size() == linear.channels &&
                            (given < 0 ? given + rank : given) == axis;
    if (!by_channel && !(v->constant && v->constant->size() == 1)) return nullptr;
  }
  std::vector<double> scales = load_doubles(*spread(rewriter, source->inputs[1], linear.channels)->constant);
  for (size_t c = 0; c < scales.size(); ++c) scales[c] *= scale[c];
  Tensor tensor(source->inputs[1]->dtype(), {linear.channels});
  store_doubles(tensor, scales);
  std::vector<Value*> inputs{source->inputs[0], rewriter.add_constant(source->inputs[1]->name, std::move(tensor))};
  if (zero) inputs.push_back(spread(rewriter, zero, linear.channels));
  return rewriter.insert(linear.node, "DequantizeLinear", std::move(inputs), {{"axis", static_cast<int64_t>(axis)}},
                         linear.node->inputs[1]->name);
}

}  // namespace

std::optional<LinearNode> as_linear(Node& node, bool may_clamp) {
  LinearNode linear{&node};
  const bool is_conv = is_convolution(node);
  if (!is_conv && node.op != "Gemm" && node.op != "MatMul") return std::nullopt;
  if (node.inputs.size() < 2 || !is_float_constant(node.inputs[1]) || !node.inputs[1]->shape().is_static())
    return std::nullopt;
  if (!may_clamp && (node.has_attr("clamp_min") || node.has_attr("clamp_max"))) return std::nullopt;
  const Value* out = node.outputs.front();
  if (!out->shape().has_rank()) return std::nullopt;
  const Dims dims = node.inputs[1]->shape().to_dims();
  if (is_conv) {
    linear.channels = node.op == "Conv" ? dims[0] : dims[1] * node.int_attr("group", 1);
    linear.channel_axis = 1;
  } else {
    if (node.op == "MatMul" && dims.size() != 2) return std::nullopt;
    if (node.op == "Gemm" && node.float_attr("alpha", 1) != 1) return std::nullopt;
    linear.channels = dims[static_cast<size_t>(weight_axis(node))];
    linear.channel_axis = out->shape().rank() - 1;
    if (linear.channel_axis < 0) return std::nullopt;
  }
  if (const Value* bias = node.input(LinearNode::kBias)) {
    if (!is_float_constant(bias) || (node.op == "Gemm" && node.float_attr("beta", 1) != 1)) return std::nullopt;
    if (!numbers_of_bias(linear, *bias)) return std::nullopt;
  }
  return linear;
}

std::vector<double> bias_of(const LinearNode& linear) {
  const Value* bias = linear.node->input(LinearNode::kBias);
  return bias ? *numbers_of_bias(linear, *bias) : std::vector<double>(static_cast<size_t>(linear.channels), 0.0);
}

void set_bias(Rewriter& rewriter, const LinearNode& linear, const std::vector<double>& bias) {
  Node& node = *linear.node;
  Tensor tensor(node.inputs[1]->dtype(), {linear.channels});
  store_doubles(tensor, bias);
  const std::string name = (node.name.empty() ? node.outputs.front()->name : node.name) + ".bias";
  node.attrs.erase("beta");  // of a Gemm: 1 where it has a bias, any number where it has none
  rewriter.set_input(&node, LinearNode::kBias, rewriter.add_constant(name, std::move(tensor)));
}

void set_weights(Rewriter& rewriter, const LinearNode& linear, const std::vector<double>& scale) {
  Value* weights = scaled_codes(rewriter, linear, scale);
  if (weights) {
    weights->constant = scaled_weights(linear, scale);
  } else {
    weights = rewriter.add_constant(linear.node->inputs[1]->name, scaled_weights(linear, scale));
  }
  rewriter.set_input(linear.node, 1, weights);
}

std::optional<std::vector<double>> per_channel(const Value& constant, int rank, int channel_axis, int64_t channels) {
  if (!constant.constant || !is_float(constant.dtype()) || constant.constant->rank() > rank) return std::nullopt;
  const Dims& dims = constant.constant->dims();
  const int missing = rank - static_cast<int>(dims.size());
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const int64_t d = dims[static_cast<size_t>(i)];
    if (d != 1 && !(i + missing == channel_axis && d == channels)) return std::nullopt;
  }
  std::vector<double> numbers = load_doubles(*constant.constant);
  if (numbers.size() == 1) numbers.assign(static_cast<size_t>(channels), numbers.front());
  return numbers.size() == static_cast<size_t>(channels) ? std::optional(std::move(numbers)) : std::nullopt;
}

}  // namespace neo
