#include "routines/cpu/reference/node_step.h"

#include <map>
#include <mutex>
#include <tuple>

#include "ops/infer.h"

namespace neo {
namespace {

// A copy of one node in a graph of its own, so that a step outlives the graph it was lowered from.
std::pair<std::shared_ptr<Graph>, const Node*> isolate(const Node& node) {
  auto graph = std::make_shared<Graph>();
  std::map<const Value*, Value*> copies;
  std::vector<Value*> inputs;
  for (const Value* v : node.inputs) {
    if (v && !copies.count(v)) {
      copies[v] = v->constant ? graph->add_constant(v->name, *v->constant) : graph->add_input(v->name, v->type);
    }
    inputs.push_back(v ? copies[v] : nullptr);
  }
  std::vector<std::string> names;
  for (const Value* v : node.outputs) names.push_back(v ? v->name : "");
  Node* copy = graph->add_node(node.op, inputs, names, node.attrs, node.name);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) copy->outputs[i]->type = node.outputs[i]->type;
  }
  return {graph, copy};
}

class FunctionStep final : public NodeStep {
 public:
  FunctionStep(const Candidate& candidate, const OpRegistry& ops, NodeFunction function)
      : NodeStep(candidate, ops), function_(function) {}

 private:
  void compute(ReferenceContext& ctx, Team&) const override { function_(ctx); }

  NodeFunction function_;
};

}  // namespace

NodeStep::NodeStep(const Candidate& candidate, const OpRegistry& ops) : ops_(ops) {
  const Workload& workload = *candidate.workload;
  std::tie(holder_, node_) = isolate(workload.root());
  int next = 0;
  std::vector<int> argument_of_input(workload.inputs.size(), -1);
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    if (candidate.inputs[i]) argument_of_input[i] = next++;
  }
  for (const Value* v : workload.root().inputs) {
    argument_of_input_.push_back(v ? argument_of_input[static_cast<size_t>(workload.input_index(v))] : -1);
    is_open_ |= v && v->type.is_tensor() && !v->shape().has_rank();
  }
}

void NodeStep::run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team& team) const {
  std::vector<HostValue> all(argument_of_input_.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (argument_of_input_[i] >= 0) all[i] = inputs[static_cast<size_t>(argument_of_input_[i])];
  }
  // The op sees every output place of the node, the step only those that exist.
  std::vector<HostValue> places(node_->outputs.size());
  size_t next = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (node_->outputs[i]) places[i] = std::move(outputs[next++]);
  }
  if (is_open_) check(all);
  ReferenceContext context(*node_, all, places);
  compute(context, team);
  next = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (node_->outputs[i]) outputs[next++] = std::move(places[i]);
  }
}

// Inferring takes longer than most of the ops that it is for: inputs of the types that passed last are not checked.
void NodeStep::check(std::span<const HostValue> inputs) const {
  std::vector<int64_t> types;
  for (const HostValue& value : inputs) {
    types.push_back(static_cast<int64_t>(value.kind));
    if (value.kind != HostValue::Kind::Tensor) continue;
    const Dims& dims = value.tensor.dims();
    types.insert(types.end(), {static_cast<int64_t>(value.tensor.dtype()), std::ssize(dims)});
    types.insert(types.end(), dims.begin(), dims.end());
  }
  {
    const std::lock_guard lock(mutex_);
    if (types == passed_) return;
  }
  check_ranks(*node_, ops_, inputs);
  const std::lock_guard lock(mutex_);
  passed_ = std::move(types);
}

std::unique_ptr<Step> make_node_step(const Candidate& candidate, const OpRegistry& ops, NodeFunction function) {
  return std::make_unique<FunctionStep>(candidate, ops, function);
}

}  // namespace neo
