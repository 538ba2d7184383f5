#include "routines/patterns/recurrent_form.h"

#include <algorithm>
#include <cctype>

#include "ops/op.h"
#include "routines/patterns/float_tensor.h"

namespace neo {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// True where every direction has these activations, or none are named.
bool has_activations(const Node& node, const std::vector<std::string>& wanted) {
  const auto names = node.strings_attr("activations");
  for (size_t i = 0; i < names.size(); ++i) {
    if (lower(names[i]) != wanted[i % wanted.size()]) return false;
  }
  return true;
}

bool is_float_constant(const Value* v) {
  return v && v->constant && v->dtype() == DType::Float32;
}

// Sequences that are as long as X.
bool are_whole(const Value* lengths, const Dim& steps) {
  if (!lengths) return true;
  if (!lengths->constant || !steps.is_constant()) return false;
  const auto given = load_ints(*lengths->constant);
  return std::all_of(given.begin(), given.end(), [&](int64_t n) { return n == steps.value(); });
}

std::optional<std::string> find_kind(const Node& node, RecurrentForm& form) {
  if (node.op == "LSTM") {
    form.kind = CellKind::Lstm;
    form.gates = 4;
    if (!has_activations(node, {"sigmoid", "tanh", "tanh"})) return "the activations are not the default ones";
    if (node.int_attr("input_forget", 0) != 0) return "input and forget gate are coupled";
    return std::nullopt;
  }
  if (node.op == "GRU") {
    form.kind = node.int_attr("linear_before_reset", 0) != 0 ? CellKind::GruLinear : CellKind::GruGates;
    form.gates = 3;
    if (!has_activations(node, {"sigmoid", "tanh"})) return "the activations are not the default ones";
    return std::nullopt;
  }
  form.gates = 1;
  form.kind = CellKind::RnnTanh;
  if (has_activations(node, {"tanh"})) return std::nullopt;
  form.kind = CellKind::RnnRelu;
  if (has_activations(node, {"relu"})) return std::nullopt;
  return "the activations are neither tanh nor relu";
}

std::optional<std::string> read(const Node& node, RecurrentForm& form) {
  if (auto why = find_kind(node, form)) return why;
  if (node.has_attr("clip")) return "the gates are clipped";
  const Value* w = node.input(1);
  const Value* r = node.input(2);
  form.x = node.input(0);
  form.initial_h = node.input(5);
  form.initial_c = node.op == "LSTM" ? node.input(6) : nullptr;
  if (node.op == "LSTM" && node.input(7)) return "there are peepholes";
  if (!is_float_constant(w) || !is_float_constant(r) || (node.input(3) && !is_float_constant(node.input(3)))) {
    return "the weights are not float32 constants";
  }
  for (const Value* v : {form.x, form.initial_h, form.initial_c}) {
    if (v && (!is_float_tensor(v) || v->shape().rank() != 3)) return "an input is not a float32 tensor of rank 3";
  }
  const std::string direction = node.string_attr("direction", "forward");
  form.directions = direction == "bidirectional" ? 2 : 1;
  form.reverse = direction == "reverse";
  form.batch_first = node.int_attr("layout", 0) != 0;
  if (!are_whole(node.input(4), form.x->shape()[form.batch_first ? 1 : 0]))
    return "the sequences have lengths of their own";
  const Dims& w_dims = w->constant->dims();
  const Dims& r_dims = r->constant->dims();
  if (w_dims.size() != 3 || r_dims.size() != 3) return "the weights have not rank 3";
  form.hidden = r_dims[2];
  form.input = w_dims[2];
  const int64_t rows = form.gates * form.hidden;
  if (form.hidden < 1 || w_dims != Dims{form.directions, rows, form.input} ||
      r_dims != Dims{form.directions, rows, form.hidden} ||
      (node.input(3) && node.input(3)->constant->dims() != Dims{form.directions, 2 * rows})) {
    return "the weights do not fit the hidden size";
  }
  if (!form.x->shape()[2].is(form.input)) return "the size of the input is not known";
  return std::nullopt;
}

}  // namespace

std::optional<RecurrentForm> read_recurrent(const Node& node, std::string* why) {
  RecurrentForm form;
  if (auto reason = read(node, form)) {
    if (why) *why = *reason;
    return std::nullopt;
  }
  return form;
}

}  // namespace neo
