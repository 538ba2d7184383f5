#include "candidates/store_halves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ops/infer.h"

namespace neo {
namespace {

// Every element of a result is one of the operands' elements, or zero.
constexpr std::string_view kMoves[] = {
    "Abs",      "Concat",    "DepthToSpace", "Expand",    "Flatten",      "Gather",  "GatherElements",
    "GatherND", "Identity",  "Max",          "MaxPool",   "Min",          "Neg",     "Pad",
    "Relu",     "Reshape",   "Slice",        "Split",     "SpaceToDepth", "Squeeze", "GlobalMaxPool",
    "Tile",     "Transpose", "Unsqueeze",    "ReduceMax", "Where"};
// Their floats are no operands that may become halves, or their attributes name a dtype.
constexpr std::string_view kLeft[] = {"ConstantOfShape",
                                      "DequantizeLinear",
                                      "DynamicQuantizeLinear",
                                      "EyeLike",
                                      "NonMaxSuppression",
                                      "QuantizeLinear",
                                      "Range"};
// Their results are far larger than their operands, and may leave float16's range.
constexpr std::string_view kSums[] = {"ReduceL1", "ReduceSum", "ReduceSumSquare"};

template <size_t kCount>
bool is_one_of(const std::string& op, const std::string_view (&ops)[kCount]) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool is_float32(const Value* v) {
  return v && v->type.is_tensor() && v->dtype() == DType::Float32;
}

// Inputs that stay float32: the region and the factors of a resize.
bool keeps_input(const Node& node, size_t i) {
  return (node.op == "Resize" || node.op == "Upsample") && i > 0;
}

int64_t onnx_number(DType dtype) {
  return dtype == DType::Float32 ? 1 : dtype == DType::Float16 ? 10 : 16;
}

// Whether every element of float32 is a half as it is; of many elements nobody asks.
bool holds(const Tensor& tensor, DType dtype) {
  constexpr int64_t kMax = 4096;
  if (tensor.is_absent() || tensor.size() > kMax) return false;
  const float* from = tensor.as<float>();
  return std::all_of(from, from + tensor.size(), [&](float x) {
    uint16_t half = 0;
    store_double(dtype, &half, x);
    return std::isnan(x) || load_double(dtype, &half) == x;
  });
}

class Storing {
 public:
  Storing(Graph& graph, const HalfValues& halves, const Target& target, const RoutineTable& routines)
      : graph_(graph), target_(target), routines_(routines) {
    cpu_.isa = target.isa;
    mark(halves);
  }

  bool run() {
    if (marks_.empty()) return false;
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      if (!skips(*node) && !try_to_store(*node)) keep(*node);
    }
    if (stored_.empty()) return false;
    const Graph::Users users = graph_.users();
    graph_.erase_nodes([&](const Node& node) {
      const Value* y = node.outputs.empty() ? nullptr : node.outputs.front();
      return node.op == "Cast" && y && users.find(y) == users.end() && !graph_.is_output(y);
    });
    graph_.erase_unused_values();
    return true;
  }

 private:
  std::optional<DType> mark_of(const Value* v) const {
    const auto it = marks_.find(v);
    return it == marks_.end() ? std::nullopt : std::optional(it->second);
  }

  void set_mark(const Value* v, DType dtype) {
    const bool may_overflow = dtype == DType::Float16 && v->producer && is_one_of(v->producer->op, kSums);
    if (!may_overflow) marks_.try_emplace(v, dtype);
  }

  void mark(const HalfValues& halves) {
    for (const auto& node : graph_.nodes()) {
      for (const Value* v : node->outputs) {
        const auto it = v ? halves.find(v->name) : halves.end();
        if (it != halves.end() && is_float32(v) && !graph_.is_output(v)) set_mark(v, it->second);
      }
      if (node->op != "Cast") continue;
      const Value *x = node->inputs.front(), *y = node->outputs.front();
      if (is_half(x->dtype()) && is_float32(y)) marks_[y] = x->dtype();
      if (is_float32(x) && is_half(y->dtype()) && !x->constant && !graph_.is_output(x)) set_mark(x, y->dtype());
    }
    const auto spread = [&](const std::vector<Value*>& from, const std::vector<Value*>& to) {
      std::optional<DType> dtype;
      for (const Value* v : from) {
        if (!is_float32(v) || v->constant) continue;
        if (!mark_of(v)) return;
        dtype = mark_of(v);
      }
      for (const Value* v : from) {
        if (dtype && is_float32(v) && v->constant && !holds(*v->constant, *dtype)) return;
      }
      for (const Value* v : to) {
        if (dtype && is_float32(v) && !v->constant && !graph_.is_output(v)) set_mark(v, *dtype);
      }
    };
    const auto& nodes = graph_.nodes();
    for (const auto& node : nodes) {
      if (is_one_of(node->op, kMoves)) spread(node->inputs, node->outputs);
    }
    const Graph::Users users = graph_.users();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      for (Value* v : (*it)->outputs) {
        const auto readers = users.find(v);
        if (!v || readers == users.end()) continue;
        const bool moves = std::all_of(readers->second.begin(), readers->second.end(), [&](const auto& reader) {
          return is_one_of(reader.first->op, kMoves) && !reader.first->outputs.empty();
        });
        if (!moves) continue;
        std::vector<Value*> results;
        for (const auto& [reader, input] : readers->second) {
          results.insert(results.end(), reader->outputs.begin(), reader->outputs.end());
        }
        spread(results, {v});
      }
    }
  }

  // A cast between a half and what is stored as that half is neither computed nor kept.
  bool skips(Node& node) {
    if (node.op != "Cast") return false;
    Value *x = node.inputs.front(), *y = node.outputs.front();
    if (is_half(x->dtype()) && stored_.count(x) == 0 && is_float32(y)) {
      half_of_[y] = x;
      return true;
    }
    if (stored_.count(x) == 0 || y->dtype() != x->dtype()) return false;
    graph_.replace_uses(y, x);
    return true;
  }

  bool try_to_store(Node& node) {
    if (!node.bodies.empty() || node.has_attr("exact") || node.has_attr("dtype") || is_one_of(node.op, kLeft))
      return false;
    std::optional<DType> dtype;
    const auto agrees = [&](const Value* v) {
      if (!is_float32(v) && stored_.count(v) == 0) return true;
      const auto mark = mark_of(v);
      const bool same = mark && (!dtype || dtype == mark);
      dtype = mark;
      return same;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* v = node.inputs[i];
      if (v && !v->constant && !keeps_input(node, i) && !agrees(v)) return false;
    }
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), agrees) || !dtype) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* v = node.inputs[i];
      if (is_float32(v) && v->constant && !keeps_input(node, i) && !constant_of(*v, *dtype)) return false;
    }
    if (!is_taken(node, *dtype)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value*& v = node.inputs[i];
      if (is_float32(v) && !keeps_input(node, i)) v = half_of(v, *dtype, node);
    }
    become_half(node, *dtype);
    for (Value* v : node.outputs) {
      if (v && v->type.is_tensor() && v->dtype() == *dtype) stored_.insert(v);
    }
    return true;
  }

  static void become_half(Node& node, DType dtype) {
    if (node.op == "Cast" && is_float32(node.outputs.front())) node.attrs["to"] = onnx_number(dtype);
    for (Value* v : node.outputs) {
      if (is_float32(v)) v->type.dtype = dtype;
    }
  }

  // Whether a routine of the device takes the node with halves: it is asked with stand-ins.
  bool is_taken(Node& node, DType dtype) {
    const std::vector<Value*> inputs = node.inputs;
    const Attrs attrs = node.attrs;
    std::vector<std::pair<Value*, Type>> types;
    for (Value* v : node.outputs) {
      if (v) types.emplace_back(v, v->type);
    }
    std::map<const Value*, std::unique_ptr<Value>> stand_ins;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* v = inputs[i];
      if (!is_float32(v) || keeps_input(node, i)) continue;
      auto& twin = stand_ins[v];
      if (!twin) {
        twin = std::make_unique<Value>(*v);
        twin->type.dtype = dtype;
        if (v->constant) twin->constant = *constant_of(*v, dtype);
      }
      node.inputs[i] = twin.get();
    }
    become_half(node, dtype);
    const Workload workload = Workload::of(node);
    bool taken = false;
    for (const Routine* routine : routines_.for_root(node.op)) {
      const bool is_device = routine->serves(target_) && !routine->serves(cpu_);
      taken = taken || (is_device && !routine->rejects(workload, target_));
    }
    node.inputs = inputs;
    node.attrs = attrs;
    for (const auto& [v, type] : types) v->type = type;
    return taken;
  }

  // The constant in halves; none where that is another number: one that is too large, or of few that are too small.
  std::optional<Tensor> constant_of(const Value& value, DType dtype) {
    const auto [it, fresh] = constants_.try_emplace({&value, dtype});
    if (!fresh) return it->second;
    constexpr int64_t kFew = 16;
    const Tensor& tensor = *value.constant;
    if (tensor.is_absent()) return std::nullopt;
    const float* from = tensor.as<float>();
    Tensor to(dtype, tensor.dims());
    auto* at = static_cast<std::byte*>(to.data());
    for (int64_t i = 0; i < tensor.size(); ++i, at += item_bytes(dtype)) {
      store_double(dtype, at, from[i]);
      const double held = load_double(dtype, at), x = from[i];
      const bool is_other =
          std::isinf(held) != std::isinf(x) || (tensor.size() <= kFew && std::abs(held - x) > 0x1p-8 * std::abs(x));
      if (is_other) return std::nullopt;
    }
    return it->second = std::move(to);
  }

  Value* half_of(Value* v, DType dtype, const Node& before) {
    Value*& half = half_of_[v];
    if (half) return half;
    if (v->constant) return half = graph_.add_constant(v->name + "_half", *constant_of(*v, dtype));
    return half = cast(v, dtype, v->name + "_half", before);
  }

  Value* cast(Value* v, DType dtype, const std::string& name, const Node& before) {
    Node* node = graph_.insert_before(&before, "Cast", {v}, {name}, {{"to", onnx_number(dtype)}});
    node->outputs.front()->type = Type::tensor(dtype, v->shape());
    return node->outputs.front();
  }

  // The node computes with float32.
  void keep(Node& node) {
    for (Value*& v : node.inputs) {
      if (!v || stored_.count(v) == 0) continue;
      Value*& wide = wide_of_[v];
      if (!wide) wide = cast(v, DType::Float32, v->name + "_wide", node);
      v = wide;
    }
  }

  Graph& graph_;
  const Target& target_;
  const RoutineTable& routines_;
  Target cpu_;
  std::unordered_map<const Value*, DType> marks_;
  std::set<const Value*> stored_;                     // float32 before
  std::unordered_map<const Value*, Value*> half_of_;  // of float32
  std::unordered_map<const Value*, Value*> wide_of_;  // of what is stored
  std::map<std::pair<const Value*, DType>, std::optional<Tensor>> constants_;
};

void find(const Graph& graph, HalfValues& halves) {
  for (const auto& node : graph.nodes()) {
    for (const Value* v : node->outputs) {
      if (v && v->type.is_tensor() && is_half(v->dtype())) halves.emplace(v->name, v->dtype());
    }
  }
}

}  // namespace

HalfValues find_half_values(const Graph& graph) {
  HalfValues halves;
  find(graph, halves);
  return halves;
}

void store_halves(Graph& graph, const HalfValues& halves, const Target& target, const RoutineTable& routines,
                  const OpRegistry& ops) {
  if (Storing(graph, halves, target, routines).run()) infer_graph(graph, ops);
}

}  // namespace neo
