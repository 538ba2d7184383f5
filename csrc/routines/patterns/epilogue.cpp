#include "routines/patterns/epilogue.h"

#include <algorithm>

#include "base/check.h"
#include "routines/patterns/compile_program.h"

namespace neo {
namespace {

bool has_clamp(const Node& node) {
  return node.has_attr("clamp_min") || node.has_attr("clamp_max");
}

// A bound of a Clip; the fallback where it is left out, none where it is not known.
std::optional<float> bound(const Node& clip, size_t input, float fallback) {
  const Value* v = clip.input(input);
  if (!v) return fallback;
  if (!v->constant || v->constant->size() != 1) return std::nullopt;
  return static_cast<float>(load_double(v->dtype(), v->constant->data()));
}

constexpr std::string_view kEpilogueOps[] = {"Add",  "Relu",      "Clip", "Swish",    "HardSwish",   "Sigmoid", "Tanh",
                                             "Gelu", "LeakyRelu", "Mish", "Softplus", "HardSigmoid", "Elu"};

// float32, or a half that kernels compute in float32.
bool is_shaped(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool is_activation(const Node& node) {
  if (read_clamp(node) || node.op == "Add") return false;
  // A bound that arrives at run time is an operand of its own.
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] && !node.inputs[i]->constant) return false;
  }
  return std::find(std::begin(kEpilogueOps), std::end(kEpilogueOps), node.op) != std::end(kEpilogueOps) &&
         is_shaped(node.outputs.front()->dtype()) && is_eltwise(node);
}

}  // namespace

bool read_only_by_one(const Value* value, const Graph::Users& users, const Graph& graph) {
  const auto it = users.find(value);
  return it != users.end() && it->second.size() == 1 && !graph.is_output(value);
}

std::optional<ClampRange> read_clamp(const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.op == "Relu") return ClampRange{0.0f, kInfinity};
  if (node.op != "Clip") return std::nullopt;
  const auto lo = bound(node, 1, -kInfinity), hi = bound(node, 2, kInfinity);
  if (!lo || !hi || !(*lo <= *hi)) return std::nullopt;
  return ClampRange{*lo, *hi};
}

std::span<const std::string_view> epilogue_ops() {
  return kEpilogueOps;
}

std::vector<Workload> match_epilogues(const Node& root, std::span<const std::string_view> ops,
                                      const Graph::Users& users, const Graph& graph) {
  const auto is_first = [&](const Node* node) {
    return node && std::find(ops.begin(), ops.end(), node->op) != ops.end();
  };
  if (is_first(&root)) return {Workload::of(root)};
  const Node* add = &root;
  if (root.op != "Add") {
    if (!read_clamp(root) && !is_activation(root)) return {};
    const Value* input = root.inputs.front();
    add = input->producer;
    if (!add || !read_only_by_one(input, users, graph)) return {};
    if (is_activation(root) && is_first(add) && !has_clamp(*add)) return {Workload::of({add, &root})};
    if (add->op != "Add") return {};
  }
  const Shape& shape = add->outputs.front()->shape();
  if (!shape.has_rank()) return {};
  std::vector<Workload> found;
  for (size_t i = 0; i < 2; ++i) {
    const Value* sum = add->inputs[i];
    const Value* other = add->inputs[1 - i];
    const Node* first = sum->producer;
    if (!is_first(first) || has_clamp(*first) || !read_only_by_one(sum, users, graph)) continue;
    if (!(sum->shape() == shape) || !(other->shape() == shape)) continue;
    std::vector<const Node*> nodes = {first, add};
    if (add != &root) nodes.push_back(&root);
    found.push_back(Workload::of(std::move(nodes)));
  }
  return found;
}

Epilogue read_epilogue(const Workload& workload) {
  const Node& first = *workload.nodes.front();
  Epilogue epilogue;
  epilogue.lo = static_cast<float>(first.float_attr("clamp_min", epilogue.lo));
  epilogue.hi = static_cast<float>(first.float_attr("clamp_max", epilogue.hi));
  if (workload.nodes.size() == 1 || workload.root().op == "MaxPool") return epilogue;
  if (is_activation(workload.root())) epilogue.activation = &workload.root();
  const Node& add = *workload.nodes[1];
  if (&add == epilogue.activation) return epilogue;
  epilogue.residual = add.inputs[add.inputs[0] == first.outputs.front() ? 1 : 0];
  if (workload.nodes.size() == 3 && !epilogue.activation) {
    const auto bounds = read_clamp(workload.root());
    NEO_ASSERT(bounds, "a group of another form ends in ", workload.root().place());
    epilogue.lo = bounds->lo;
    epilogue.hi = bounds->hi;
  }
  return epilogue;
}

std::optional<EltwiseStep> find_activation_step(const Node& node) {
  const Value* x = node.input(0);
  if (!x || x->constant || !is_eltwise(node)) return std::nullopt;
  const Value& y = *node.outputs.front();
  if (!is_shaped(x->dtype()) || y.dtype() != x->dtype() || !(x->shape() == y.shape())) return std::nullopt;
  const auto compiled = compile_eltwise(Workload::of(node), nullptr);
  if (!compiled || compiled->program.steps != 1 || compiled->program.inputs != 1) return std::nullopt;
  const EltwiseStep& step = compiled->program.step[0];
  return step.op < EltwiseOp::Add ? std::optional(step) : std::nullopt;  // the operators before it are unary
}

EltwiseStep activation_step(const Epilogue& epilogue) {
  const auto step = find_activation_step(*epilogue.activation);
  NEO_ASSERT(step, epilogue.activation->place());
  return *step;
}

double activation_flops(const EltwiseStep& step) {
  EltwiseProgram program;
  program.steps = 1;
  program.step[0] = step;
  return 2 * eltwise_cycles(program);
}

bool keeps_zero(const Epilogue& epilogue) {
  if (!epilogue.activation) return true;
  const std::string& op = epilogue.activation->op;
  return op != "Sigmoid" && op != "Softplus" && op != "HardSigmoid";
}

int argument_of(const Candidate& candidate, const Value* value) {
  const int index = value ? candidate.workload->input_index(value) : -1;
  if (index < 0 || !candidate.inputs[static_cast<size_t>(index)]) return -1;
  return static_cast<int>(std::count_if(candidate.inputs.begin(), candidate.inputs.begin() + index,
                                        [](const auto& schema) { return schema.has_value(); }));
}

int argument_of_result(const Candidate& candidate, const Value* value) {
  const std::vector<Value*>& outputs = candidate.workload->outputs;
  const auto it = std::find(outputs.begin(), outputs.end(), value);
  if (!value || it == outputs.end()) return -1;
  return static_cast<int>(std::count_if(candidate.inputs.begin(), candidate.inputs.end(),
                                        [](const auto& schema) { return schema.has_value(); }) +
                          (it - outputs.begin()));
}

}  // namespace neo
