#pragma once

#include <span>
#include <vector>

#include "routines/routine.h"

namespace neo {

// A function of one value of 8-bit codes whose results are 8-bit codes: a table of 256.
constexpr int64_t kCodeTable = 256;

struct CodeFunction {
  std::vector<const Node*> nodes;  // elementwise, in order, from DequantizeLinear on to a QuantizeLinear
  const Value* x = nullptr;        // the codes
};

// The functions that end in a QuantizeLinear, the shortest first. Codes on the way are rounded and numbers again;
// nobody else reads what is made on the way, but for the numbers of codes.
std::vector<CodeFunction> match_code_functions(const Node& root, const Graph::Users& users, const Graph& graph);

// Whether nodes, in order, are a function of the codes `x` alone, in whose shape every result is.
bool is_code_function(std::span<const Node* const> nodes, const Value* x);

// The result of every code, by the nodes' references.
void fill_code_table(const CodeFunction& function, const OpRegistry& ops, uint8_t* table);

}  // namespace neo
