#include "passes/slices.h"

#include <algorithm>
#include <array>

#include "passes/gate_sums.h"

namespace neo {
namespace {

constexpr std::array<std::string_view, 38> kElementwise = {
    "Abs",       "Add",      "And",       "Cast", "Ceil",  "Clip",       "Cos",     "Div",
    "Elu",       "Equal",    "Erf",       "Exp",  "Floor", "Gelu",       "Greater", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "Less", "Log",   "Max",        "Min",     "Mish",
    "Mul",       "Neg",      "Not",       "Or",   "Pow",   "Reciprocal", "Relu",    "Sigmoid",
    "Sin",       "Softplus", "Softsign",  "Sqrt", "Sub",   "Tanh"};

// The hidden state that a layer of one direction ends with is a step of its result, too.
std::optional<Position> as_last_step(const Value* state) {
  const Node* node = state->producer;
  const std::string direction = node->string_attr("direction", "forward");
  Value* all = node->output(0);
  if (state->output_index != 1 || !all || node->int_attr("layout", 0) != 0 || node->input(4) ||
      direction == "bidirectional" || !all->shape().has_rank() || !all->shape()[0].is_constant())
    return std::nullopt;
  return Position{all, 0, direction == "reverse" ? 0 : all->shape()[0].value() - 1};
}

}  // namespace

std::optional<Position> as_position(Value* value) {
  Value* part = unranked(value);
  const Node* node = part->producer;
  if (node && (node->op == "LSTM" || node->op == "GRU" || node->op == "RNN")) return as_last_step(part);
  if (!node || node->inputs.empty() || !node->inputs[0]->type.is_tensor() || !node->inputs[0]->shape().has_rank())
    return std::nullopt;
  Value* whole = node->inputs[0];
  const int rank = whole->shape().rank();
  std::optional<int64_t> index;
  int64_t axis = node->int_attr("axis", 0);
  const auto number = [&](size_t i) -> std::optional<int64_t> {
    const Value* v = node->input(i);
    if (!v || !v->constant || v->constant->size() != 1) return std::nullopt;
    return load_ints(*v->constant).front();
  };
  if (node->op == "Gather") {
    index = number(1);
  } else if (node->op == "Split" && part->shape()[static_cast<int>(axis < 0 ? axis + rank : axis)].is(1)) {
    const bool alike = std::all_of(node->outputs.begin(), node->outputs.end(),
                                   [&](const Value* v) { return v && v->shape() == part->shape(); });
    if (alike) index = part->output_index;
  } else if (node->op == "Slice") {
    const auto start = number(1), at = number(3), step = number(4);
    if (!start || !at || (node->input(4) && step != 1)) return std::nullopt;
    axis = *at;
    if (part->shape()[static_cast<int>(axis < 0 ? axis + rank : axis)].is(1)) index = start;
  }
  if (axis < 0) axis += rank;
  if (!index || axis < 0 || axis >= rank || !whole->shape()[static_cast<int>(axis)].is_constant()) return std::nullopt;
  if (*index < 0) *index += whole->shape()[static_cast<int>(axis)].value();
  return Position{whole, static_cast<int>(axis), *index};
}

bool is_elementwise(const std::string& op) {
  return std::find(kElementwise.begin(), kElementwise.end(), op) != kElementwise.end();
}

}  // namespace neo
