#include "routines/patterns/codes_pool.h"

#include "routines/patterns/epilogue.h"

namespace neo {

std::optional<CodesPoolProblem> CodesPoolProblem::read(const Workload& workload, std::string* why) {
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  constexpr int kPoolNodes = 3;
  if (workload.nodes.size() != kPoolNodes) return reject("there are no codes before the pool");
  CodesPoolProblem p;
  p.pool = workload.nodes[1];
  p.x = workload.nodes[0]->inputs[0];
  p.y = workload.outputs.front();
  const auto x_grid = read_code_grid(*workload.nodes[0]), y_grid = read_code_grid(workload.root());
  if (!x_grid || !y_grid) return reject("the codes are not 8-bit ones of one constant scale");
  p.x_grid = *x_grid;
  p.y_grid = *y_grid;
  if (!p.is_average() && p.x_grid != p.y_grid) return reject("a maximum is rounded to another scale");
  if (p.axes() < 1 || p.axes() > 3 || !p.x->shape()[1].is_constant()) return reject("not one to three spatial axes");
  if (p.pool->has_attr("clamp_min") || p.pool->has_attr("clamp_max")) return reject("the pool is clamped");
  return p;
}

std::vector<Workload> match_codes_pool(const Node& root, const Graph::Users& users, const Graph& graph) {
  const Value* value = root.inputs[0];
  const Node* pool = value->producer;
  if (!pool || (pool->op != "MaxPool" && pool->op != "AveragePool" && pool->op != "GlobalAveragePool")) return {};
  const Node* source = pool->inputs[0]->producer;
  if (!source || source->op != "DequantizeLinear" || pool->outputs.size() != 1 ||
      !read_only_by_one(value, users, graph))
    return {};
  return {Workload::of({source, pool, &root})};
}

}  // namespace neo
