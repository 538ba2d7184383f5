#include <algorithm>

#include "base/budget.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "passes/quantization.h"

namespace neo {
namespace {

// Results larger than this are left to run time unless an input is as large: a ConstantOfShape must not blow up the
// plan.
constexpr int64_t kMaxGrowthBytes = int64_t{1} << 24;
// References are plain loops: what takes them longer is left to routines, at run time.
constexpr int64_t kMaxFlops = int64_t{1} << 30;

// Whether a node has been found to make constants, and stays.
bool is_known(const Node& node) {
  return !node.outputs.empty() &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [](const Value* v) { return v && v->constant; });
}

// By ONNX's name or by Microsoft's, which normalize_quantization() takes for it.
bool is_dequantization(const Node& node) {
  return node.op == "DequantizeLinear" || node.op == "com.microsoft.DequantizeLinear";
}

// Weights of a product that are codes: routines that multiply integers read these, so that the node stays, and its
// result is a constant for the others.
bool is_of_codes(const Node& node, const Graph::Users& users) {
  if (!is_dequantization(node)) return false;
  const DType dtype = node.inputs.front()->dtype();
  if (!is_byte(dtype) && dtype != DType::Int4 && dtype != DType::UInt4) return false;
  const auto readers = users.find(node.outputs.front());
  if (readers == users.end()) return false;
  return std::any_of(readers->second.begin(), readers->second.end(), [](const auto& read) {
    const std::string& op = read.first->op;
    return read.second == 1 && (op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm");
  });
}

// The numbers of such codes, which are computed where somebody reads them.
std::optional<Tensor> numbers_of(const Node& node) {
  const Value* zero = node.input(2);
  if (node.outputs.front()->dtype() != DType::Float32) return std::nullopt;
  const int64_t block = node.int_attr("block_size", 0);
  if (block != 0)
    return dequantized_blocks(*node.inputs[0]->constant, *node.inputs[1]->constant, zero ? &*zero->constant : nullptr,
                              static_cast<int>(node.int_attr("axis", 1)), block);
  return dequantized(*node.inputs[0]->constant, *node.inputs[1]->constant, zero ? &*zero->constant : nullptr,
                     static_cast<int>(node.int_attr("axis", 1)));
}

// A Cast of halves to float32: its result is computed where somebody reads it.
bool is_widening(const Node& node) {
  if (node.op != "Cast" || node.outputs.front()->dtype() != DType::Float32) return false;
  const DType dtype = node.inputs.front()->dtype();
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool is_foldable(const Node& node, const PassContext& context, int64_t left_bytes = kMaxFoldedBytes) {
  const Op* op = context.ops.find(node.op);
  if (!op || !op->reference || op->random || !node.bodies.empty() || node.op == "neo.Dims") return false;
  if (context.keep_codes && is_dequantization(node)) return false;
  if (is_known(node)) return false;
  int64_t input_bytes = 0;
  for (const Value* v : node.inputs) {
    if (v && !v->constant) return false;
    if (v) input_bytes += v->constant->bytes();
  }
  for (const Value* v : node.outputs) {
    if (!v) continue;
    if (!v->type.is_tensor()) return false;
    if (!v->shape().is_static()) continue;
    const int64_t bytes = element_count(v->shape().to_dims()) * item_bytes(v->dtype());
    if (bytes > std::min(kMaxGrowthBytes, left_bytes) && bytes > input_bytes) return false;
  }
  return !op->work || op->work(node).flops.hint() <= kMaxFlops;
}

// Whether inference knew nothing of the value that its constant tells.
bool is_news(const Value& value, const Value& constant) {
  if (!(value.type == constant.type) || !value.contents) return true;
  return !std::all_of(value.contents->begin(), value.contents->end(), [](const Dim& d) { return d.is_constant(); });
}

// Whether constants took the place of nodes; `has_news`: and told what was not known before.
bool fold_constants_in_body(Graph& graph, const PassContext& context, bool& has_news) {
  bool changed = false;
  std::unordered_set<const Value*> news;
  std::unordered_set<const Node*> stale;
  for (const auto& node : graph.nodes()) {
    for (auto& [name, body] : node->bodies) {
      bool body_has_news = false;
      changed = fold_constants_in_body(*body, context, body_has_news) || changed;
      if (body_has_news) stale.insert(node.get());
    }
  }
  std::optional<Graph::Users> readers;
  for (const auto& node : graph.nodes()) {
    if (!is_foldable(*node, context, *context.foldable_bytes)) continue;
    checkpoint();
    if (is_dequantization(*node) && !readers) readers = graph.users();
    const bool stays = readers && is_of_codes(*node, *readers);
    if (stays && node->outputs.front()->shape().is_static()) {
      if (auto numbers = numbers_of(*node)) {
        *context.foldable_bytes -= std::max<int64_t>(numbers->bytes() - node->inputs[0]->constant->bytes(), 0);
        node->outputs.front()->constant = std::move(*numbers);
        changed = true;
        continue;
      }
    }
    std::vector<HostValue> inputs;
    int64_t growth = 0;
    for (const Value* v : node->inputs) {
      inputs.push_back(v ? HostValue(*v->constant) : HostValue());
      if (v) growth -= v->constant->bytes();
    }
    const std::vector<HostValue> results =
        is_widening(*node) ? std::vector<HostValue>{widened(inputs.front().tensor)} : context.evaluate(*node, inputs);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      Value* old = node->outputs[i];
      if (!old) continue;
      const std::string name = old->name;
      growth += results[i].tensor.bytes();
      if (stays && old->shape().is_static()) {
        old->constant = results[i].tensor;
        continue;
      }
      Value* constant = graph.add_constant(name, results[i].tensor);
      if (is_news(*old, *constant)) news.insert(constant);
      graph.replace_uses(old, constant);
      graph.rename(constant, name);
    }
    *context.foldable_bytes -= std::max<int64_t>(growth, 0);
    changed = true;
  }
  if (changed) {
    const Graph::Users users = graph.users();
    graph.erase_nodes([&](const Node& node) {
      return is_foldable(node, context) && std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value* v) {
               return !v || (!users.count(v) && !graph.is_output(v));
             });
    });
    graph.erase_unused_values();
  }
  has_news = !news.empty() || !stale.empty();
  if (has_news) infer_again(graph, context.ops, std::move(news), stale);
  return changed;
}

}  // namespace

// Nodes whose inputs are all constants become constants. Their readers' types are inferred again.
bool fold_constants(Graph& graph, const PassContext& context) {
  bool has_news = false;
  return fold_constants_in_body(graph, context, has_news);
}

}  // namespace neo
