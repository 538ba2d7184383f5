#include <algorithm>
#include <array>
#include <unordered_map>

#include "ops/infer.h"
#include "passes/pass.h"
#include "passes/quantization.h"

namespace neo {
namespace {

// ONNX's numbers of element types in attributes.
constexpr int64_t kOnnxFloat = 1, kOnnxFloat16 = 10, kOnnxBFloat16 = 16;
// The attributes that name the element type of a result or of what is computed on the way to it.
constexpr std::string_view kTypeAttrs[] = {"to",        "dtype",      "output_dtype",     "output_datatype",
                                           "precision", "stash_type", "softmax_precision"};
// Operators that only move elements, or look at their bits. A graph that has no others for its halves keeps them as
// they are.
constexpr std::string_view kMovements[] = {"Abs",
                                           "Cast",
                                           "Concat",
                                           "DepthToSpace",
                                           "Expand",
                                           "Flatten",
                                           "Gather",
                                           "GatherElements",
                                           "GatherND",
                                           "Identity",
                                           "IsInf",
                                           "IsNaN",
                                           "Neg",
                                           "Reshape",
                                           "Shape",
                                           "Size",
                                           "Slice",
                                           "SpaceToDepth",
                                           "Split",
                                           "Squeeze",
                                           "Tile",
                                           "Transpose",
                                           "Unsqueeze",
                                           "CenterCropPad",
                                           "Compress",
                                           "ConstantOfShape",
                                           "EyeLike",
                                           "NonZero",
                                           "OneHot",
                                           "Pad",
                                           "ReverseSequence",
                                           "Trilu",
                                           "Where"};
// These, too, where they write updates over what is there, and a Resize by nearest neighbours.
constexpr std::string_view kScatters[] = {"ScatterElements", "ScatterND"};

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool has_half(const Type& type) {
  return type.is_tensor() ? is_half(type.dtype) : type.element && has_half(*type.element);
}

bool has_half(const Value* value) {
  return value && has_half(value->type);
}

bool is_movement(const Node& node) {
  if (std::find(std::begin(kScatters), std::end(kScatters), node.op) != std::end(kScatters)) {
    return node.string_attr("reduction", "none") == "none";
  }
  if (node.op == "Resize") return node.string_attr("mode", "nearest") == "nearest";
  return std::find(std::begin(kMovements), std::end(kMovements), node.op) != std::end(kMovements);
}

// The uses of halves in a graph.
struct HalfUse {
  bool computes = false;  // a node computes with them
  bool is_fixed = false;  // they cannot be replaced: their bits are looked at, or a container with them is an argument
};

void look_at(const Graph& graph, HalfUse& use) {
  for (const auto& node : graph.nodes()) {
    const auto is_used = [](const std::vector<Value*>& values) {
      return std::any_of(values.begin(), values.end(), [](const Value* v) { return has_half(v); });
    };
    const bool used = is_used(node->inputs) || is_used(node->outputs);
    use.computes = use.computes || (used && node->bodies.empty() && !is_movement(*node));
    use.is_fixed = use.is_fixed || (used && node->op == "BitCast");
    for (const auto& [name, body] : node->bodies) look_at(*body, use);
  }
}

Type widened(const Type& type) {
  if (type.is_tensor()) return is_half(type.dtype) ? Type::tensor(DType::Float32, type.shape) : type;
  Type wide = type;
  if (type.element) wide.element = std::make_shared<Type>(widened(*type.element));
  return wide;
}

float widen(DType dtype, uint16_t bits) {
  return dtype == DType::Float16 ? from_float16(bits) : from_bfloat16(bits);
}

void widen_attrs(Node& node) {
  for (auto& [key, attr] : node.attrs) {
    if (auto* tensor = std::get_if<Tensor>(&attr); tensor && is_half(tensor->dtype())) {
      attr = widened(*tensor);
    } else if (std::find(std::begin(kTypeAttrs), std::end(kTypeAttrs), key) != std::end(kTypeAttrs)) {
      if (const auto* number = std::get_if<int64_t>(&attr)) {
        if (*number == kOnnxFloat16 || *number == kOnnxBFloat16) attr = kOnnxFloat;
      } else if (const auto* text = std::get_if<std::string>(&attr)) {
        if (*text == name(DType::Float16) || *text == name(DType::BFloat16)) attr = std::string(name(DType::Float32));
      }
    }
  }
}

void widen_all(Graph& graph, std::unordered_map<const void*, Tensor>& constants) {
  for (const auto& value : graph.values()) {
    if (!has_half(value.get())) continue;
    if (value->constant) {
      // Constants of several bodies may be one tensor.
      Tensor& wide = constants[value->constant->is_absent() ? value.get() : value->constant->identity()];
      if (!wide.defined() || wide.dims() != value->constant->dims()) wide = widened(*value->constant);
      value->constant = wide;
    }
    value->type = widened(value->type);
  }
  for (const auto& node : graph.nodes()) {
    widen_attrs(*node);
    for (auto& [name, body] : node->bodies) widen_all(*body, constants);
  }
}

int64_t onnx_number(DType half) {
  return half == DType::Float16 ? kOnnxFloat16 : kOnnxBFloat16;
}

}  // namespace

Tensor widened(const Tensor& halves) {
  const DType dtype = halves.dtype();
  if (halves.is_absent()) return Tensor::absent(DType::Float32, halves.dims());
  if (halves.is_splat()) {
    const float element = widen(dtype, *static_cast<const uint16_t*>(halves.splat_element()));
    return Tensor::splat(DType::Float32, halves.dims(), &element);
  }
  return Tensor::computed(DType::Float32, halves.dims(), [halves, dtype](int64_t begin, int64_t count, void* to) {
    const auto* from = halves.as<uint16_t>() + begin;
    std::transform(from, from + count, static_cast<float*>(to), [&](uint16_t bits) { return widen(dtype, bits); });
  });
}

// Half precision is how numbers are stored, not how neo computes: a graph that computes with float16 or bfloat16
// becomes one of float32, between casts of its arguments and of its results, so that every pass and routine of float32
// serves it. Sums and what lies between two operators are then rounded less often than the model says.
bool widen_halves(Graph& graph, const PassContext& context) {
  HalfUse use;
  look_at(graph, use);
  const auto is_container = [](const Value* v) { return has_half(v) && !v->type.is_tensor(); };
  use.is_fixed = use.is_fixed || std::any_of(graph.inputs.begin(), graph.inputs.end(), is_container) ||
                 std::any_of(graph.outputs.begin(), graph.outputs.end(), is_container);
  if (!use.computes || use.is_fixed) return false;

  std::vector<std::pair<Value*, DType>> arguments, results;
  for (Value* input : graph.inputs) {
    if (has_half(input)) arguments.emplace_back(input, input->dtype());
  }
  for (Value* output : graph.outputs) {
    const bool seen = std::any_of(results.begin(), results.end(), [&](const auto& r) { return r.first == output; });
    if (has_half(output) && !seen) results.emplace_back(output, output->dtype());
  }
  std::unordered_map<const void*, Tensor> constants;
  widen_all(graph, constants);
  // Results first: one that is an argument, handed on, is cast twice and the same.
  for (const auto& [value, dtype] : results) {
    const std::string name = value->name;
    Node* cast = graph.add_node("Cast", {value}, {name}, {{"to", onnx_number(dtype)}});
    std::replace(graph.outputs.begin(), graph.outputs.end(), value, cast->outputs.front());
    if (std::find(graph.inputs.begin(), graph.inputs.end(), value) != graph.inputs.end()) continue;
    graph.rename(value, name + "_wide");
    graph.rename(cast->outputs.front(), name);
  }
  const Node* first = graph.nodes().front().get();
  for (const auto& [value, dtype] : arguments) {
    Node* cast = graph.insert_before(first, "Cast", {value}, {value->name + "_wide"}, {{"to", kOnnxFloat}});
    Value* wide = cast->outputs.front();
    value->type.dtype = dtype;
    wide->type = widened(value->type);
    for (const auto& node : graph.nodes()) {
      if (node.get() != cast) std::replace(node->inputs.begin(), node->inputs.end(), value, wide);
    }
  }
  graph.erase_unused_values();
  infer_graph(graph, context.ops);
  return true;
}

}  // namespace neo
