#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/patterns/code_grid.h"
#include "routines/routine.h"

namespace neo {

// DequantizeLinear, pool, QuantizeLinear.
struct CodesPoolProblem {
  const Node* pool = nullptr;
  const Value* x = nullptr;
  const Value* y = nullptr;
  CodeGrid x_grid, y_grid;

  bool is_global() const { return pool->op == "GlobalAveragePool"; }
  bool is_average() const { return pool->op != "MaxPool"; }
  int axes() const { return x->shape().rank() - 2; }

  static std::optional<CodesPoolProblem> read(const Workload& workload, std::string* why);
};

// The groups that end in a QuantizeLinear.
std::vector<Workload> match_codes_pool(const Node& root, const Graph::Users& users, const Graph& graph);

}  // namespace neo
