#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"
#include "routines/patterns/cell_kind.h"

namespace neo {

// What a recurrent node computes, as its attributes and constants say.
struct RecurrentForm {
  CellKind kind = CellKind::Lstm;  // GruGates stands for both halves of that form
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t gates = 4;
  int64_t directions = 1;
  bool reverse = false;  // the first direction runs backwards
  bool batch_first = false;
  const Value* x = nullptr;
  const Value* initial_h = nullptr;  // or null
  const Value* initial_c = nullptr;  // or null
};

// The form of a node, or why there is none.
std::optional<RecurrentForm> read_recurrent(const Node& node, std::string* why);

}  // namespace neo
