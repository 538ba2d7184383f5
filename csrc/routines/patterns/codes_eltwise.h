#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/patterns/code_function.h"
#include "routines/patterns/code_grid.h"

namespace neo {

// A function of codes: of one value, whose 256 results are a table, or Add, Sub or Mul of two, clamped.
struct CodesEltwise {
  enum class Op : uint8_t { Add, Sub, Mul };
  const Value* x = nullptr;
  const Value* other = nullptr;  // of two
  const Value* y = nullptr;
  bool repeats = false;  // `other` has one code for each channel of each image
  Op op = Op::Add;
  CodeGrid x_grid, other_grid, y_grid;
  int32_t lo = 0, hi = 255;  // of the codes of two

  static std::optional<CodesEltwise> read(const Workload& workload, std::string* why);
};

// The groups that end in a QuantizeLinear.
std::vector<Workload> match_codes_eltwise(const Node& root, const Graph::Users& users, const Graph& graph);

}  // namespace neo
