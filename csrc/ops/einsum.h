#pragma once

#include <vector>

#include "ir/graph.h"

namespace neo {

// An axis of an operand of Einsum: a letter, or a number from kEinsumEllipsis on for the axes of "...", counted from
// the last.
using EinsumLabel = int;
using EinsumTerm = std::vector<EinsumLabel>;
constexpr EinsumLabel kEinsumEllipsis = 256;

struct EinsumEquation {
  std::vector<EinsumTerm> operands;
  EinsumTerm output;
};

// Reads the equation of a node for operands of these ranks; an error where it is none.
EinsumEquation parse_einsum(const Node& node, const std::vector<int>& ranks);

}  // namespace neo
