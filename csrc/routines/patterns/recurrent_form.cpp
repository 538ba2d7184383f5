#include "routines/patterns/recurrent_form.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/recurrent.h"

namespace neo {
namespace {

struct CellFunctionName {
  std::string_view name;
  CellFunction function;
};

constexpr std::array kCellFunctions = {
    CellFunctionName{"", CellFunction::Affine},
    CellFunctionName{"Affine", CellFunction::Affine},
    CellFunctionName{"Clip", CellFunction::Clip},
    CellFunctionName{"Elu", CellFunction::Elu},
    CellFunctionName{"HardSigmoid", CellFunction::HardSigmoid},
    CellFunctionName{"LeakyRelu", CellFunction::LeakyRelu},
    CellFunctionName{"Relu", CellFunction::Relu},
    CellFunctionName{"ScaledTanh", CellFunction::ScaledTanh},
    CellFunctionName{"Sigmoid", CellFunction::Sigmoid},
    CellFunctionName{"Softplus", CellFunction::Softplus},
    CellFunctionName{"Softsign", CellFunction::Softsign},
    CellFunctionName{"Tanh", CellFunction::Tanh},
    CellFunctionName{"ThresholdedRelu", CellFunction::ThresholdedRelu},
};

bool is_lstm(const Node& node) {
  return node.op == "LSTM" || node.op == "com.microsoft.DynamicQuantizeLSTM";
}

CellRules read_rules(const Node& node, const std::vector<std::string>& fallback, int64_t direction) {
  CellRules rules;
  rules.clip = static_cast<float>(node.float_attr("clip", std::numeric_limits<double>::infinity()));
  rules.coupled = is_lstm(node) && node.int_attr("input_forget", 0) != 0;
  const auto activations = direction_activations(node, fallback, direction);
  for (size_t i = 0; i < activations.size(); ++i) {
    const auto* found = std::find_if(kCellFunctions.begin(), kCellFunctions.end(),
                                     [&](const CellFunctionName& f) { return f.name == activations[i].name(); });
    NEO_ASSERT(found != kCellFunctions.end(), std::string(activations[i].name()));
    rules.functions[i] = found->function;
    rules.a[i] = static_cast<float>(activations[i].a());
    rules.b[i] = static_cast<float>(activations[i].b());
  }
  return rules;
}

bool is_plain(const CellRules& rules, std::initializer_list<CellFunction> functions) {
  return rules.clip == std::numeric_limits<float>::infinity() && !rules.coupled &&
         std::equal(functions.begin(), functions.end(), rules.functions);
}

// Kind, gates and rules, the weights' directions known.
void read_cell(const Node& node, RecurrentForm& form) {
  std::vector<std::string> fallback = {"Tanh"};
  if (is_lstm(node)) {
    form.kind = CellKind::Lstm;
    form.gates = 4;
    fallback = {"Sigmoid", "Tanh", "Tanh"};
  } else if (node.op == "GRU") {
    form.kind = node.int_attr("linear_before_reset", 0) != 0 ? CellKind::GruLinear : CellKind::GruGates;
    form.gates = 3;
    fallback = {"Sigmoid", "Tanh"};
  } else {
    form.kind = CellKind::RnnTanh;
    form.gates = 1;
  }
  for (int64_t d = 0; d < form.directions; ++d) form.rules[d] = read_rules(node, fallback, d);
  const auto are_plain = [&](std::initializer_list<CellFunction> functions) {
    return std::all_of(form.rules, form.rules + form.directions,
                       [&](const CellRules& rules) { return is_plain(rules, functions); });
  };
  if (is_lstm(node)) {
    form.has_rules = form.peepholes || !are_plain({CellFunction::Sigmoid, CellFunction::Tanh, CellFunction::Tanh});
  } else if (node.op == "GRU") {
    form.has_rules = !are_plain({CellFunction::Sigmoid, CellFunction::Tanh});
  } else if (are_plain({CellFunction::Relu})) {
    form.kind = CellKind::RnnRelu;
  } else {
    form.has_rules = !are_plain({CellFunction::Tanh});
  }
}

// The lengths of sequences, which check_sequence_lengths() has seen to.
std::optional<std::string> read_lengths(const Node& node, RecurrentForm& form) {
  form.lengths = node.input(4);
  if (!form.lengths) return std::nullopt;
  if (node.int_attr("checked_lengths", 0) == 0) return "nobody has looked whether the lengths fit";
  if (!form.lengths->type.is_tensor() || form.lengths->dtype() != DType::Int32) return "the lengths are not int32";
  return std::nullopt;
}

bool is_tensor_of(const Value* v, DType dtype) {
  return v && v->type.is_tensor() && v->dtype() == dtype && v->shape().has_rank();
}

bool has_dims(const Value* v, const Dims& dims) {
  for (size_t i = 0; v && i < dims.size(); ++i) {
    if (!v->shape()[static_cast<int>(i)].is(dims[i])) return false;
  }
  return true;
}

// Matrices of numbers, and what belongs to them.
std::optional<std::string> read_weights(RecurrentForm& form) {
  for (const Value* v : {form.w, form.r, form.b, form.peepholes}) {
    if (!v) continue;
    const bool is_matrix = v == form.w || v == form.r;
    if (!is_tensor_of(v, form.dtype) || v->shape().rank() != (is_matrix ? 3 : 2))
      return "the weights have another dtype than X, or another rank";
    form.has_constant_weights = form.has_constant_weights && v->constant;
  }
  const Dim hidden = form.r->shape()[2], input = form.w->shape()[2];
  if (!hidden.is_constant() || !input.is_constant()) return "the size of the weights is not known";
  form.hidden = hidden.value();
  form.input = input.value();
  const int64_t rows = form.gates * form.hidden;
  const bool fits =
      has_dims(form.w, {form.directions, rows, form.input}) && has_dims(form.r, {form.directions, rows, form.hidden});
  return fits ? std::nullopt : std::optional<std::string>("the weights do not fit the hidden size");
}

// Matrices of codes, which are constants.
std::optional<std::string> read_codes(const Node& node, RecurrentForm& form) {
  form.is_quantized = true;
  form.w_scale = node.input(8);
  form.w_zero = node.input(9);
  form.r_scale = node.input(10);
  form.r_zero = node.input(11);
  for (const Value* v : {form.w, form.r, form.w_scale, form.r_scale}) {
    if (!v || !v->constant || !v->shape().has_rank()) return "the weights are not constants";
  }
  for (const Value* v : {form.b, form.peepholes, form.w_zero, form.r_zero}) {
    if (v && (!v->constant || !v->shape().has_rank())) return "the weights are not constants";
  }
  for (const Value* v : {form.w, form.r}) {
    if (v->shape().rank() != 3 || (v->dtype() != DType::Int8 && v->dtype() != DType::UInt8))
      return "the weights are not 8-bit codes";
  }
  for (const Value* v : {form.w_scale, form.r_scale, form.b, form.peepholes}) {
    if (v && v->dtype() != DType::Float32) return "the scales, or the biases, are not float32";
  }
  form.hidden = form.r->shape()[1].value();
  form.input = form.w->shape()[1].value();
  const int64_t columns = form.gates * form.hidden;
  bool fits = has_dims(form.w, {form.directions, form.input, columns}) &&
              has_dims(form.r, {form.directions, form.hidden, columns});
  for (const Value* v : {form.w_scale, form.w_zero, form.r_scale, form.r_zero}) {
    if (v) fits = fits && (v->constant->size() == form.directions || v->constant->size() == form.directions * columns);
  }
  return fits ? std::nullopt : std::optional<std::string>("the weights do not fit the hidden size");
}

std::optional<std::string> read(const Node& node, RecurrentForm& form) {
  form.x = node.input(0);
  form.w = node.input(1);
  form.r = node.input(2);
  form.b = node.input(3);
  form.initial_h = node.input(5);
  form.initial_c = is_lstm(node) ? node.input(6) : nullptr;
  form.peepholes = is_lstm(node) ? node.input(7) : nullptr;
  const bool is_double = form.x->type.is_tensor() && form.x->dtype() == DType::Float64;
  if (is_double && node.op != "com.microsoft.DynamicQuantizeLSTM") form.dtype = DType::Float64;
  for (const Value* v : {form.x, form.initial_h, form.initial_c}) {
    if (v && (!is_tensor_of(v, form.dtype) || v->shape().rank() != 3))
      return "an input is not a tensor of float32 or float64 and of rank 3";
  }
  const std::string direction = node.string_attr("direction", "forward");
  form.directions = direction == "bidirectional" ? 2 : 1;
  form.reverse = direction == "reverse";
  form.batch_first = node.int_attr("layout", 0) != 0;
  read_cell(node, form);
  if (auto why = read_lengths(node, form)) return why;
  if (auto why = node.op == "com.microsoft.DynamicQuantizeLSTM" ? read_codes(node, form) : read_weights(form))
    return why;
  if (form.hidden < 1 || !has_dims(form.b, {form.directions, 2 * form.gates * form.hidden}) ||
      !has_dims(form.peepholes, {form.directions, 3 * form.hidden})) {
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

std::optional<std::string> why_not_plain(const RecurrentForm& form) {
  if (form.dtype != DType::Float32) return "the numbers are float64";
  if (!form.has_constant_weights) return "the weights are not constants";
  if (form.lengths) return "the sequences have lengths of their own";
  if (form.peepholes) return "there are peepholes";
  if (form.has_rules) return "the gates have functions, or bounds, of their own";
  return std::nullopt;
}

}  // namespace neo
