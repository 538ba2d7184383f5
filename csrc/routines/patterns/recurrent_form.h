#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"
#include "routines/patterns/cell_kind.h"

namespace neo {

// The computation of a recurrent node, from its attributes and constants.
struct RecurrentForm {
  CellKind kind = CellKind::Lstm;  // GruGates stands for both halves of that form
  DType dtype = DType::Float32;    // or Float64: of X, the states and weights that are no codes
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t gates = 4;
  int64_t directions = 1;
  bool reverse = false;  // the first direction runs backwards
  bool batch_first = false;
  const Value* x = nullptr;
  const Value* w = nullptr;
  const Value* r = nullptr;
  const Value* b = nullptr;          // or null
  const Value* lengths = nullptr;    // or null: every sequence is as long as X
  const Value* initial_h = nullptr;  // or null
  const Value* initial_c = nullptr;  // or null
  const Value* peepholes = nullptr;  // or null
  // com.microsoft.DynamicQuantizeLSTM: W and R are codes [directions][depth][gates * hidden].
  bool is_quantized = false;
  const Value* w_scale = nullptr;
  const Value* w_zero = nullptr;  // or null
  const Value* r_scale = nullptr;
  const Value* r_zero = nullptr;     // or null
  bool has_constant_weights = true;  // W, R, B and the peepholes
  bool has_rules = false;            // a direction is not the plain cell of its kind, nor are there peepholes
  CellRules rules[2];                // of each direction, where has_rules
};

// The form of a node, or why there is none.
std::optional<RecurrentForm> read_recurrent(const Node& node, std::string* why);

// Why a form is more than the plain cell of constant float32 weights over whole sequences; none where it is that.
std::optional<std::string> why_not_plain(const RecurrentForm& form);

}  // namespace neo
