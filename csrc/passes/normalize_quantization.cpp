#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "passes/pattern.h"
#include "passes/quantization.h"

namespace neo {
namespace {

// Sums of whole numbers up to here are exact in float32.
constexpr double kExactSum = 16777216;
// Sums up to here do not leave int32.
constexpr double kMaxCount = 2147483648;

// Rewrites one node; false where it has to stay as it is.
using Rewrite = bool (*)(Rewriter&, Node&);

Attrs without(Attrs attrs, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto it = attrs.find(key); it != attrs.end()) attrs.erase(it);
  }
  return attrs;
}

Value* dequantize(Rewriter& rewriter, const Node& position, Value* codes, Value* scale, Value* zero) {
  std::vector<Value*> inputs{codes, scale};
  if (zero) inputs.push_back(zero);
  return rewriter.insert(&position, "DequantizeLinear", std::move(inputs));
}

// The node's result becomes the codes of a float value. A zero point left out is an 8-bit 0.
void quantize(Rewriter& rewriter, Node& node, Value* real, Value* scale, Value* zero) {
  Value* out = node.outputs.front();
  if (!zero) zero = rewriter.add_scalar(out->name + ".zero", out->dtype(), 0);
  rewriter.replace(out, rewriter.insert(&node, "QuantizeLinear", {real, scale, zero}));
}

// An activation's codes with one constant scale at inputs i, i + 1, i + 2.
bool is_activation(const Node& node, size_t i) {
  const Value* codes = node.input(i);
  return codes && is_byte(codes->dtype()) && codes->shape().has_rank() &&
         read_grid(codes->dtype(), node.input(i + 1), node.input(i + 2));
}

// A scale and zero point of the result, whose codes are bytes.
bool is_result(const Node& node, size_t scale) {
  const Value* out = node.outputs.front();
  return is_byte(out->dtype()) && out->shape().has_rank() &&
         read_grid(out->dtype(), node.input(scale), node.input(scale + 1));
}

Value* activation(Rewriter& rewriter, const Node& node, size_t i) {
  return dequantize(rewriter, node, node.inputs[i], node.inputs[i + 1], node.input(i + 2));
}

// Constant weights as float32, with one scale or one for each position of `axis`; null where they are none.
Value* real_weights(Rewriter& rewriter, const Node& node, Value* codes, Value* scale, Value* zero, int axis) {
  if (!codes->constant || !scale->constant || (zero && !zero->constant)) return nullptr;
  // One for all beside one for each channel becomes one for each, too.
  const auto spread = [&](Value*& one, const Value* many) {
    if (one->constant->size() != 1 || many->constant->size() == 1) return;
    const std::vector<double> numbers(static_cast<size_t>(many->constant->size()),
                                      load_doubles(*one->constant).front());
    Tensor tensor(one->dtype(), many->constant->dims());
    store_doubles(tensor, numbers);
    one = rewriter.add_constant(one->name + ".spread", std::move(tensor));
  };
  if (zero) {
    spread(scale, zero);
    spread(zero, scale);
  }
  auto real = dequantized(*codes->constant, *scale->constant, zero ? &*zero->constant : nullptr, axis);
  if (!real) return nullptr;
  if (axis < 0) axis += codes->constant->rank();
  const bool is_plain = !zero || (zero->dtype() == codes->dtype() &&
                                  zero->constant->size() == scale->constant->size() && zero->constant->rank() <= 1);
  if (!is_plain || scale->constant->rank() > 1 || axis < 0)
    return rewriter.add_constant(codes->name + ".real", std::move(*real));
  // Routines that multiply integers read the codes.
  std::vector<Value*> inputs{codes, scale};
  if (zero) inputs.push_back(zero);
  return rewriter.insert(&node, "DequantizeLinear", std::move(inputs), {{"axis", static_cast<int64_t>(axis)}},
                         codes->name + ".real");
}

Value* weights(Rewriter& rewriter, const Node& node, size_t i, int axis) {
  return real_weights(rewriter, node, node.inputs[i], node.inputs[i + 1], node.input(i + 2), axis);
}

// A bias of whole numbers counts products of the scales of activations and weights.
Value* real_bias(Rewriter& rewriter, const Node& node, size_t bias, size_t x_scale, size_t w_scale, double factor) {
  const Value* codes = node.inputs[bias];
  const std::vector<double> scales = load_doubles(*node.inputs[w_scale]->constant);
  const double x = load_doubles(*node.inputs[x_scale]->constant).front();
  std::vector<double> numbers = load_doubles(*codes->constant);
  for (size_t c = 0; c < numbers.size(); ++c) numbers[c] *= factor * static_cast<float>(x * scales[c % scales.size()]);
  Tensor tensor(DType::Float32, codes->constant->dims());
  store_doubles(tensor, numbers);
  return rewriter.add_constant(codes->name + ".real", std::move(tensor));
}

bool fits_channels(const Node& node, size_t bias, size_t scale) {
  const Value* given = node.input(bias);
  if (!given) return true;
  const int64_t scales = node.inputs[scale]->constant->size();
  return given->constant && (scales == 1 || (given->constant->rank() >= 1 && given->constant->dims().back() == scales));
}

bool rewrite_conv(Rewriter& rewriter, Node& node) {
  if (!is_activation(node, 0) || !is_result(node, 6)) return false;
  Value* w = weights(rewriter, node, 3, 0);
  if (!w || !fits_channels(node, 8, 4)) return false;
  std::vector<Value*> inputs{activation(rewriter, node, 0), w};
  if (node.input(8)) inputs.push_back(real_bias(rewriter, node, 8, 1, 4, 1));
  quantize(rewriter, node, rewriter.insert(&node, "Conv", std::move(inputs), node.attrs), node.inputs[6],
           node.input(7));
  return true;
}

bool rewrite_matmul(Rewriter& rewriter, Node& node) {
  if (!is_activation(node, 0) || !is_result(node, 6)) return false;
  Value* b = weights(rewriter, node, 3, -1);
  if (!b && is_activation(node, 3)) b = activation(rewriter, node, 3);
  if (!b) return false;
  quantize(rewriter, node, rewriter.insert(&node, "MatMul", {activation(rewriter, node, 0), b}), node.inputs[6],
           node.input(7));
  return true;
}

bool rewrite_gemm(Rewriter& rewriter, Node& node) {
  const bool quantized = node.input(7) != nullptr;
  if (!is_activation(node, 0) || (quantized && !is_result(node, 7))) return false;
  if (!quantized && node.outputs.front()->dtype() != DType::Float32) return false;
  Value* b = weights(rewriter, node, 3, node.int_attr("transB", 0) != 0 ? 0 : 1);
  if (!b || !fits_channels(node, 6, 4)) return false;
  std::vector<Value*> inputs{activation(rewriter, node, 0), b};
  if (node.input(6)) inputs.push_back(real_bias(rewriter, node, 6, 1, 4, node.float_attr("alpha", 1)));
  Value* real = rewriter.insert(&node, "Gemm", std::move(inputs), node.attrs);
  if (quantized) {
    quantize(rewriter, node, real, node.inputs[7], node.input(8));
  } else {
    rewriter.replace(node.outputs.front(), real);
  }
  return true;
}

bool rewrite_binary(Rewriter& rewriter, Node& node) {
  // Constants are dequantized too: fold_constants computes that.
  if (!is_activation(node, 0) || !is_activation(node, 3) || !is_result(node, 6)) return false;
  const std::string_view op = node.op == "com.microsoft.QLinearAdd" ? "Add" : "Mul";
  quantize(rewriter, node, rewriter.insert(&node, op, {activation(rewriter, node, 0), activation(rewriter, node, 3)}),
           node.inputs[6], node.input(7));
  return true;
}

bool rewrite_unary(Rewriter& rewriter, Node& node, std::string_view op, Attrs attrs) {
  if (!is_activation(node, 0) || !is_result(node, 3)) return false;
  quantize(rewriter, node, rewriter.insert(&node, op, {activation(rewriter, node, 0)}, std::move(attrs)),
           node.inputs[3], node.input(4));
  return true;
}

bool rewrite_sigmoid(Rewriter& rewriter, Node& node) {
  return rewrite_unary(rewriter, node, "Sigmoid", {});
}

bool rewrite_leaky_relu(Rewriter& rewriter, Node& node) {
  return rewrite_unary(rewriter, node, "LeakyRelu", {{"alpha", node.float_attr("alpha", 0.01)}});
}

bool rewrite_softmax(Rewriter& rewriter, Node& node) {
  const int64_t axis = node.int_attr("axis", -1);
  if (!is_activation(node, 0)) return false;
  // Before opset 13 all axes from this one on were one.
  const bool is_last = axis == -1 || axis == node.inputs.front()->shape().rank() - 1;
  if (node.int_attr("opset", 13) < 13 && !is_last) return false;
  return rewrite_unary(rewriter, node, "Softmax", {{"axis", axis}});
}

bool rewrite_average_pool(Rewriter& rewriter, Node& node) {
  if (node.int_attr("channels_last", 0) != 0) return false;
  return rewrite_unary(rewriter, node, "AveragePool", without(node.attrs, {"channels_last"}));
}

bool rewrite_global_average_pool(Rewriter& rewriter, Node& node) {
  if (node.int_attr("channels_last", 0) != 0) return false;
  return rewrite_unary(rewriter, node, "GlobalAveragePool", {});
}

bool rewrite_concat(Rewriter& rewriter, Node& node) {
  if (!is_result(node, 0)) return false;
  const auto grid = read_grid(node.outputs.front()->dtype(), node.inputs[0], node.inputs[1]);
  bool same = true;
  for (size_t i = 2; i + 2 < node.inputs.size(); i += 3) {
    if (!is_activation(node, i)) return false;
    same = same && read_grid(node.inputs[i]->dtype(), node.inputs[i + 1], node.input(i + 2)) == grid;
  }
  std::vector<Value*> parts;
  for (size_t i = 2; i < node.inputs.size(); i += 3)
    parts.push_back(same ? node.inputs[i] : activation(rewriter, node, i));
  Value* joined = rewriter.insert(&node, "Concat", std::move(parts), {{"axis", node.int_attr("axis", 0)}});
  if (same) {
    rewriter.replace(node.outputs.front(), joined);
  } else {
    quantize(rewriter, node, joined, node.inputs[0], node.inputs[1]);
  }
  return true;
}

// The largest sum of the magnitudes of codes less their zero point behind one position of the axis. A zero point has
// one element, or one for each position; null: 0.
double largest_sum(const Tensor& codes, const Tensor* zero, int axis) {
  const Dims& dims = codes.dims();
  const int64_t along = dims[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  const std::vector<double> zeros = zero ? load_doubles(*zero) : std::vector<double>{0};
  std::vector<int64_t> sums(static_cast<size_t>(along), 0);
  const bool has_sign = codes.dtype() == DType::Int8;
  const auto* from = codes.as<uint8_t>();
  int64_t c = 0;
  for (int64_t i = 0; i < codes.size(); i += inner, c = c + 1 == along ? 0 : c + 1) {
    const auto zero_point = static_cast<int>(zeros[static_cast<size_t>(c) % zeros.size()]);
    int64_t sum = 0;
    for (int64_t k = i; k < i + inner; ++k)
      sum += std::abs((has_sign ? static_cast<int8_t>(from[k]) : from[k]) - zero_point);
    sums[static_cast<size_t>(c)] += sum;
  }
  return sums.empty() ? 0 : static_cast<double>(*std::max_element(sums.begin(), sums.end()));
}

bool is_one(const Value* value) {
  return value->shape().has_rank() && value->shape().element_count().is(1);
}

// A constant of one element, or of one for each channel along the axis `behind` the last, as one of rank 0 or 1; null
// where it is neither.
Value* flat_scale(Rewriter& rewriter, Value* scale, int64_t channels, int behind) {
  const Tensor& tensor = *scale->constant;
  if (tensor.size() == 1) return rewriter.add_constant(scale->name, tensor.reshaped({}));
  const int at = tensor.rank() - 1 - behind;
  if (tensor.size() != channels || at < 0 || tensor.dims()[static_cast<size_t>(at)] != channels) return nullptr;
  return rewriter.add_constant(scale->name, tensor.reshaped({channels}));
}

// Counts of ConvInteger or MatMulInteger that nobody reads but a Cast and a Mul by the scale of x and constant ones of
// the weights: the product of the numbers that x and the weights stand for, as tools of dynamic quantization mean it.
bool rewrite_scaled_counts(Rewriter& rewriter, Node& node, int axis) {
  const Node* cast = rewriter.only_reader(node.outputs.front());
  if (!cast || cast->op != "Cast" || cast->outputs.front()->dtype() != DType::Float32) return false;
  const Value* counts = cast->outputs.front();
  const Node* mul = rewriter.only_reader(counts);
  if (!mul || mul->op != "Mul" || !(mul->outputs.front()->shape() == counts->shape())) return false;
  const Node* scales = made_by(mul->inputs[mul->inputs[0] == counts ? 1 : 0], "Mul");
  if (!scales) return false;
  const size_t known = scales->inputs[0]->constant ? 0 : 1;
  Value* x_scale = scales->inputs[1 - known];
  Value* w_scale = scales->inputs[known];
  const Value* zero = node.input(2);
  if (x_scale->constant || !w_scale->constant || x_scale->dtype() != DType::Float32 || !is_one(x_scale)) return false;
  if (zero && zero->shape().rank() != x_scale->shape().rank()) return false;
  Value* codes = node.inputs[1];
  const int behind = node.op == "ConvInteger" ? codes->constant->rank() - 2 : 0;
  w_scale = flat_scale(rewriter, w_scale, codes->constant->dims()[static_cast<size_t>(axis)], behind);
  Value* weights = w_scale ? real_weights(rewriter, node, codes, w_scale, node.input(3), axis) : nullptr;
  if (!weights) return false;
  Value* x = dequantize(rewriter, node, node.inputs[0], x_scale, node.input(2));
  const std::string_view op = node.op == "ConvInteger" ? "Conv" : "MatMul";
  rewriter.replace(mul->outputs.front(), rewriter.insert(&node, op, {x, weights}, node.attrs));
  return true;
}

// ConvInteger and MatMulInteger count in int32; in float32 where no sum can leave the whole numbers that are exact
// there. The attribute keeps the product from routines that transform their operands, which would round.
bool rewrite_integer_product(Rewriter& rewriter, Node& node) {
  const bool is_conv = node.op == "ConvInteger";
  Value* x = node.inputs[0];
  Value* codes = node.inputs[1];
  Value* zero = node.input(2);
  Value* w_zero = node.input(3);
  if (!is_byte(x->dtype()) || !x->shape().has_rank() || !codes->constant || !is_byte(codes->dtype()) ||
      codes->constant->rank() < 2)
    return false;
  if ((w_zero && !w_zero->constant) || (zero && !is_one(zero))) return false;
  const int axis = is_conv ? 0 : codes->constant->rank() - 1;
  if (w_zero && w_zero->constant->rank() > 1) return false;
  const Tensor* zeros = w_zero ? &*w_zero->constant : nullptr;
  if (zeros && zeros->size() != 1 && zeros->size() != codes->constant->dims()[static_cast<size_t>(axis)]) return false;
  // No weight is further than 255 from its zero point: most products need no look at their weights.
  const Dims& dims = codes->constant->dims();
  const auto depth =
      static_cast<double>(codes->constant->size() / std::max<int64_t>(1, dims[static_cast<size_t>(axis)]));
  const auto largest_count = [&] { return 255 * largest_sum(*codes->constant, zeros, axis); };
  const bool may_count = 255.0 * 255 * depth < kMaxCount || largest_count() < kMaxCount;
  if (may_count && rewrite_scaled_counts(rewriter, node, axis)) return true;
  const double largest = largest_count();
  if (largest >= kExactSum) return false;
  Value* scale = rewriter.add_scalar(x->name + ".unit", DType::Float32, 1);
  Value* real = dequantize(rewriter, node, x, scale, zero);
  Attrs attrs = node.attrs;
  attrs["exact"] = int64_t{1};
  Value* product = rewriter.insert(&node, is_conv ? "Conv" : "MatMul",
                                   {real, real_weights(rewriter, node, codes, scale, w_zero, axis)}, std::move(attrs));
  Value* out = node.outputs.front();
  // A reader that turns the counts to float32 at once reads them as they are.
  for (Node* reader : rewriter.readers(out)) {
    if (reader->op == "Cast" && reader->outputs.front()->dtype() == DType::Float32)
      rewriter.replace(reader->outputs.front(), product);
  }
  if (!rewriter.is_retired(&node))
    rewriter.replace(out, rewriter.insert(&node, "Cast", {product}, {{"to", int64_t{6}}}));
  return true;
}

// com.microsoft.MatMulIntegerToFloat(a, b, a scale, b scale, a zero, b zero, bias)
bool rewrite_matmul_to_float(Rewriter& rewriter, Node& node) {
  if (!is_byte(node.inputs[0]->dtype()) || !is_one(node.inputs[2]) || (node.input(4) && !is_one(node.input(4))) ||
      node.outputs.front()->dtype() != DType::Float32)
    return false;
  Value* b = real_weights(rewriter, node, node.inputs[1], node.inputs[3], node.input(5), -1);
  if (!b) return false;
  Value* a = dequantize(rewriter, node, node.inputs[0], node.inputs[2], node.input(4));
  Value* product = rewriter.insert(&node, "MatMul", {a, b});
  if (node.input(6)) product = rewriter.insert(&node, "Add", {product, node.inputs[6]});
  rewriter.replace(node.outputs.front(), product);
  return true;
}

// com.microsoft.DynamicQuantizeMatMul(a, b, b scale, b zero, bias)
bool rewrite_dynamic_matmul(Rewriter& rewriter, Node& node) {
  Value* a = node.inputs[0];
  if (a->dtype() != DType::Float32 || !a->shape().has_rank()) return false;
  Value* b = real_weights(rewriter, node, node.inputs[1], node.inputs[2], node.input(3), -1);
  if (!b) return false;
  const std::vector<Value*> codes = rewriter.insert_all(&node, "DynamicQuantizeLinear", {a},
                                                        {a->name + ".codes", a->name + ".scale", a->name + ".zero"});
  Value* product = rewriter.insert(&node, "MatMul", {dequantize(rewriter, node, codes[0], codes[1], codes[2]), b});
  if (node.input(4)) product = rewriter.insert(&node, "Add", {product, node.inputs[4]});
  rewriter.replace(node.outputs.front(), product);
  return true;
}

// A pool over codes runs on the same codes in float32.
bool rewrite_max_pool(Rewriter& rewriter, Node& node) {
  Value* x = node.inputs.front();
  if (!is_byte(x->dtype()) || !x->shape().has_rank() || node.output(1)) return false;
  const Node* source = made_by(x, "QuantizeLinear");
  const bool known = source && read_grid(x->dtype(), source->input(1), source->input(2));
  Value* scale = known ? source->inputs[1] : rewriter.add_scalar(x->name + ".unit", DType::Float32, 1);
  Value* zero = known ? source->input(2) : nullptr;
  if (!zero) zero = rewriter.add_scalar(x->name + ".zero", x->dtype(), 0);
  Value* pooled = rewriter.insert(&node, "MaxPool", {dequantize(rewriter, node, x, scale, zero)}, node.attrs);
  quantize(rewriter, node, pooled, scale, zero);
  return true;
}

// A zero point left out is written, and Microsoft's names of the two operators become ONNX's.
bool rewrite_linear(Rewriter& rewriter, Node& node) {
  if (node.op == "QuantizeLinear") {
    Value* out = node.outputs.front();
    if (node.input(2) || !is_byte(out->dtype()) || !read_grid(out->dtype(), node.inputs[1], nullptr)) return false;
    rewriter.set_input(&node, 2, rewriter.add_scalar(out->name + ".zero", out->dtype(), 0));
    return true;
  }
  node.op = node.op.substr(std::string_view("com.microsoft.").size());
  return true;
}

Rewrite rewrite_of(std::string_view op) {
  static const std::map<std::string_view, Rewrite> rewrites = {
      {"QLinearConv", rewrite_conv},
      {"QLinearMatMul", rewrite_matmul},
      {"ConvInteger", rewrite_integer_product},
      {"MatMulInteger", rewrite_integer_product},
      {"MaxPool", rewrite_max_pool},
      {"QuantizeLinear", rewrite_linear},
      {"com.microsoft.QuantizeLinear", rewrite_linear},
      {"com.microsoft.DequantizeLinear", rewrite_linear},
      {"com.microsoft.MatMulIntegerToFloat", rewrite_matmul_to_float},
      {"com.microsoft.DynamicQuantizeMatMul", rewrite_dynamic_matmul},
      {"com.microsoft.QGemm", rewrite_gemm},
      {"com.microsoft.QLinearAdd", rewrite_binary},
      {"com.microsoft.QLinearAveragePool", rewrite_average_pool},
      {"com.microsoft.QLinearConcat", rewrite_concat},
      {"com.microsoft.QLinearGlobalAveragePool", rewrite_global_average_pool},
      {"com.microsoft.QLinearLeakyRelu", rewrite_leaky_relu},
      {"com.microsoft.QLinearMul", rewrite_binary},
      {"com.microsoft.QLinearSigmoid", rewrite_sigmoid},
      {"com.microsoft.QLinearSoftmax", rewrite_softmax},
  };
  const auto it = rewrites.find(op);
  return it == rewrites.end() ? nullptr : it->second;
}

bool normalize(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node)) continue;
    if (const Rewrite rewrite = rewrite_of(node->op)) changed = rewrite(rewriter, *node) || changed;
  }
  changed = drop_requantization(rewriter) || changed;
  changed = round_before_concat(rewriter) || changed;
  changed = sink_dequantization(rewriter) || changed;
  rewriter.finish();
  return changed;
}

}  // namespace

// Operators on quantized codes become DequantizeLinear, the float operator and QuantizeLinear, within one step of the
// result; a QuantizeLinear with its DequantizeLinear goes where its input lies on its grid already; and what only moves
// numbers moves their codes.
bool normalize_quantization(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return normalize(g, context); });
}

}  // namespace neo
