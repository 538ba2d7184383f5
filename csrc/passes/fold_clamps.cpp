#include <limits>
#include <set>

#include "passes/linear.h"
#include "passes/pass.h"

namespace neo {
namespace {

struct Clamp {
  std::optional<double> lo;
  std::optional<double> hi;
};

std::optional<Clamp> as_clamp(const Node& node) {
  if (node.outputs.size() != 1) return std::nullopt;
  if (node.op == "Relu") return Clamp{0.0, std::nullopt};
  if (node.op != "Clip") return std::nullopt;
  Clamp clamp;
  for (size_t i = 1; i < 3; ++i) {
    const Value* v = node.input(i);
    if (!v) continue;
    if (!v->constant || v->constant->size() != 1) return std::nullopt;
    (i == 1 ? clamp.lo : clamp.hi) = load_double(v->dtype(), v->constant->data());
  }
  if (clamp.lo && clamp.hi && *clamp.lo > *clamp.hi) return std::nullopt;
  return clamp;
}

bool takes_clamp(const Node& node) {
  return (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "Gemm" || node.op == "MatMul") && is_float(node.outputs.front()->dtype());
}

bool fold(Graph& graph) {
  bool changed = false;
  Graph::Users users = graph.users();
  std::set<const Node*> dead;
  for (const auto& node : graph.nodes()) {
    const auto clamp = as_clamp(*node);
    if (!clamp) continue;
    Value* input = node->inputs.front();
    Node* producer = input->producer;
    if (!producer || dead.count(producer) || !takes_clamp(*producer) || only_reader(graph, users, input) != node.get()) continue;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double lo = producer->float_attr("clamp_min", -kInfinity);
    double hi = producer->float_attr("clamp_max", kInfinity);
    // clamp(clamp(x, a, b), c, d): both ends move into [c, d].
    if (clamp->lo) lo = std::max(lo, *clamp->lo), hi = std::max(hi, *clamp->lo);
    if (clamp->hi) lo = std::min(lo, *clamp->hi), hi = std::min(hi, *clamp->hi);
    if (lo > -kInfinity) producer->attrs.insert_or_assign("clamp_min", lo);
    if (hi < kInfinity) producer->attrs.insert_or_assign("clamp_max", hi);
    graph.replace_uses(node->outputs.front(), input);
    dead.insert(node.get());
    changed = true;
    users = graph.users();
  }
  graph.erase_nodes([&](const Node& n) { return dead.count(&n) > 0; });
  graph.erase_unused_values();
  return changed;
}

}  // namespace

// Relu and Clip by constants become the clamp of the Conv, Gemm or MatMul before them.
bool fold_clamps(Graph& graph, const PassContext&) {
  return for_each_body(graph, [](Graph& g) { return fold(g); });
}

}  // namespace neo
