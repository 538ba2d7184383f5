#include "routines/patterns/codes_eltwise.h"

#include <algorithm>
#include <iterator>

#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

const Node* linear_source(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  return node && node->op == "DequantizeLinear" && !value->constant ? node : nullptr;
}

std::optional<CodesEltwise::Op> binary_op(const Node& node) {
  if (node.op == "Add") return CodesEltwise::Op::Add;
  if (node.op == "Sub") return CodesEltwise::Op::Sub;
  if (node.op == "Mul") return CodesEltwise::Op::Mul;
  return std::nullopt;
}

// Whether a value has one element for each channel of each image of an image's shape.
bool is_by_image_channel(const Shape& shape, const Shape& image) {
  if (shape.rank() != image.rank() || shape.rank() < 3 || !(shape[0] == image[0]) || !(shape[1] == image[1]))
    return false;
  for (int i = 2; i < shape.rank(); ++i) {
    if (!shape[i].is(1)) return false;
  }
  return true;
}

// `behind`: the root and perhaps a clamp before it.
std::vector<Workload> match_binary(const Node& node, std::vector<const Node*> behind) {
  if (!binary_op(node) || node.has_attr("clamp_min") || node.has_attr("clamp_max")) return {};
  const Node* a = linear_source(node.inputs[0]);
  const Node* b = linear_source(node.inputs[1]);
  if (!a || !b || a == b) return {};
  std::vector<const Node*> nodes{a, b, &node};
  nodes.insert(nodes.end(), behind.rbegin(), behind.rend());
  return {Workload::of(std::move(nodes))};
}

}  // namespace

std::optional<CodesEltwise> CodesEltwise::read(const Workload& workload, std::string* why) {
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  CodesEltwise e;
  e.y = workload.outputs.front();
  const auto y_grid = read_code_grid(workload.root());
  if (!y_grid) return reject("the result is not 8-bit codes of one constant scale");
  std::vector<const Node*> sources;
  for (const Node* node : workload.nodes) {
    if (node->op != "DequantizeLinear") continue;
    if (!read_code_grid(*node)) return reject("an operand is not 8-bit codes of one constant scale");
    const bool is_outer = workload.input_index(node->inputs[0]) >= 0;
    const bool is_new = std::none_of(sources.begin(), sources.end(),
                                     [&](const Node* other) { return other->inputs[0] == node->inputs[0]; });
    if (is_outer && is_new) sources.push_back(node);
  }
  if (sources.empty() || sources.size() > 2) return reject("it is not a function of one or two values of codes");
  if (sources.size() == 1) {
    e.x = sources[0]->inputs[0];
    return is_code_function(workload.nodes, e.x) ? std::optional(e) : reject("an operand is broadcast");
  }
  if (workload.nodes.size() < 4) return reject("the function of two values is not a sum or product");
  const Node& node = *workload.nodes[2];
  const auto op = binary_op(node);
  if (!op || workload.nodes.size() > 5) return reject("the function of two values is not a sum or product");
  // The operands in the node's order, but for one that is broadcast, which is the second.
  const Node* first = linear_source(node.inputs[0]);
  const Node* second = linear_source(node.inputs[1]);
  if (!first || !second) return reject("an operand is not codes");
  const Shape& shape = e.y->shape();
  if (*op != CodesEltwise::Op::Sub && !(first->outputs[0]->shape() == shape)) std::swap(first, second);
  e.x = first->inputs[0];
  e.other = second->inputs[0];
  e.repeats = !(e.other->shape() == shape);
  if (!(e.x->shape() == shape) || (e.repeats && !is_by_image_channel(e.other->shape(), shape)))
    return reject("an operand is broadcast");
  e.op = *op;
  e.x_grid = *read_code_grid(*first);
  e.other_grid = *read_code_grid(*second);
  e.y_grid = *y_grid;
  e.lo = y_grid->lo();
  e.hi = y_grid->hi();
  if (workload.nodes.size() == 5) {
    const auto clamp = read_clamp(*workload.nodes[3]);
    if (!clamp) return reject("the function of two values is not a sum or product");
    e.lo = y_grid->code_of(clamp->lo);
    e.hi = y_grid->code_of(clamp->hi);
  }
  return e;
}

std::vector<Workload> match_codes_eltwise(const Node& root, const Graph::Users& users, const Graph& graph) {
  std::vector<Workload> found;
  // The further back, the fewer tables.
  for (CodeFunction& function : match_code_functions(root, users, graph))
    found.push_back(Workload::of(std::move(function.nodes)));
  const Node* clamp = root.inputs[0]->producer;
  if (clamp && !read_clamp(*clamp)) clamp = nullptr;
  const Node* node = clamp ? clamp->inputs[0]->producer : root.inputs[0]->producer;
  const bool is_read = clamp && !read_only_by_one(clamp->inputs[0], users, graph);
  if (node && !is_read && read_only_by_one(root.inputs[0], users, graph)) {
    auto binary = match_binary(*node, clamp ? std::vector{&root, clamp} : std::vector{&root});
    found.insert(found.end(), std::make_move_iterator(binary.begin()), std::make_move_iterator(binary.end()));
  }
  return found;
}

}  // namespace neo
