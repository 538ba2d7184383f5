#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "passes/gate_sums.h"

namespace neo {
namespace {

// A recurrent cell that a graph writes out: one step of LSTM, GRU or RNN.
struct Cell {
  std::string op;
  const Node* position = nullptr;  // all that the cell reads comes before it
  Value* h = nullptr;              // before the step
  Value* c = nullptr;
  Value* new_h = nullptr;
  Value* new_c = nullptr;
  std::vector<GateSum> gates;  // in ONNX's order
  std::vector<GateFunction> functions;
  std::vector<double> hidden_bias;   // GRU: of the last gate's product with h, which the reset gate multiplies
  std::vector<double> peepholes[3];  // LSTM: of the gates i, o and f; empty where one has none
  bool linear_before_reset = false;
  bool coupled = false;               // LSTM: f is one less i
  bool flips_update = false;          // the first gate is one less what the graph computes
  std::vector<GateTerm> later_terms;  // of h, from the step after
  bool is_linked = false;             // the step after has been recognised
  bool is_recognised = false;

  int64_t hidden() const { return gates.front().width; }
  // A product with an h of zero may have been folded away, which leaves a term without a leaf.
  bool is_state(const GateTerm& term) const { return !term.leaf || (h && is_same_state(term.leaf, h)); }
};

// The term of one operand.
const GateTerm* term_of(const GateSum& gate, const GateTerm& operand) {
  for (const GateTerm& term : gate.terms) {
    if (term.leaf == operand.leaf) return &term;
  }
  return nullptr;
}

const GateTerm* state_term(const Cell& cell, const GateSum& gate) {
  for (const GateTerm& term : gate.terms) {
    if (cell.is_state(term)) return &term;
  }
  return nullptr;
}

// The terms of the first gate that are not of h: their order is that of the columns of W.
std::vector<GateTerm> operands_of(const Cell& cell) {
  std::vector<GateTerm> operands = cell.gates.front().terms;
  std::erase_if(operands, [&](const GateTerm& term) { return cell.is_state(term); });
  return operands;
}

bool have_same_weights(const Cell& a, const Cell& b) {
  if (a.op != b.op || a.gates.size() != b.gates.size() || a.hidden_bias != b.hidden_bias || a.coupled != b.coupled ||
      a.flips_update != b.flips_update || !std::equal(a.peepholes, a.peepholes + 3, b.peepholes) ||
      a.new_h->dtype() != b.new_h->dtype())
    return false;
  const auto left = operands_of(a), right = operands_of(b);
  if (left.size() != right.size()) return false;
  for (size_t g = 0; g < a.gates.size(); ++g) {
    const GateSum &x = a.gates[g], &y = b.gates[g];
    if (x.bias != y.bias || !state_term(a, x)->has_weights_of(*state_term(b, y))) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!term_of(x, left[i])->has_weights_of(*term_of(y, right[i]))) return false;
    }
  }
  return true;
}

bool has_one_function(std::initializer_list<const GateFunction*> functions) {
  return std::all_of(functions.begin(), functions.end(),
                     [&](const GateFunction* f) { return f->is_same(**functions.begin()); });
}

// The two factors of a product of two values.
std::optional<std::array<Value*, 2>> as_factors(Value* value) {
  const Node* node = made_by(unranked(value), "Mul");
  if (!node) return std::nullopt;
  return std::array{node->inputs[0], node->inputs[1]};
}

// v of 1 - v.
Value* as_complement(Value* value) {
  value = unranked(value);
  if (const Node* sub = made_by(value, "Sub")) return uniform(sub->inputs[0]) == 1.0 ? sub->inputs[1] : nullptr;
  const auto shifted = as_shifted(value);
  const Node* neg = shifted && shifted->number == 1 ? made_by(shifted->value, "Neg") : nullptr;
  return neg ? neg->inputs[0] : nullptr;
}

bool has_dims_of(const Value* a, const Value* b) {
  return a->type.is_tensor() && a->shape().has_rank() && a->shape() == b->shape();
}

// h' as weight * chosen + (1 - weight) * other.
struct Mixture {
  Value* weight = nullptr;
  Value* chosen = nullptr;
  Value* other = nullptr;
};

std::vector<Mixture> read_mixtures(const Node& node) {
  std::vector<Mixture> found;
  for (size_t side = 0; side < 2; ++side) {
    Value* base = node.inputs[side];
    const auto step = as_factors(node.inputs[1 - side]);
    if (!step || (node.op == "Sub" && side == 1)) continue;
    for (size_t at = 0; at < 2; ++at) {
      Value *weight = (*step)[at], *factor = (*step)[1 - at];
      if (const Node* sub = made_by(unranked(factor), "Sub")) {
        // base + w (a - base), or base - w (base - a)
        const size_t same = node.op == "Add" ? 1 : 0;
        if (unranked(sub->inputs[same]) == unranked(base)) found.push_back({weight, sub->inputs[1 - same], base});
      }
      const auto rest = node.op == "Add" ? as_factors(base) : std::nullopt;
      for (size_t r = 0; rest && r < 2; ++r) {
        Value* complement = as_complement((*rest)[r]);
        if (complement && unranked(complement) == unranked(weight)) found.push_back({weight, factor, (*rest)[1 - r]});
      }
    }
  }
  return found;
}

// c' = f * c + i * g
struct StateUpdate {
  GateFunction i, f, g;
  Value* c = nullptr;
  bool coupled = false, flips = false;  // as of a Cell
};

std::vector<StateUpdate> read_state_updates(const Node& sum) {
  std::vector<StateUpdate> found;
  for (size_t kept = 0; sum.op == "Add" && kept < 2; ++kept) {
    const auto old = as_factors(sum.inputs[kept]), fresh = as_factors(sum.inputs[1 - kept]);
    if (!old || !fresh) continue;
    for (const auto& [at_f, at_i] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)}) {
      const auto f = read_gate_function((*old)[static_cast<size_t>(at_f)]);
      const auto i = read_gate_function((*fresh)[static_cast<size_t>(at_i)]);
      const auto g = read_gate_function((*fresh)[static_cast<size_t>(1 - at_i)]);
      if (f && i && g) found.push_back({*i, *f, *g, (*old)[static_cast<size_t>(1 - at_f)]});
    }
  }
  for (const Mixture& mixture : read_mixtures(sum)) {
    const auto gate = read_gate_function(mixture.weight);
    for (const bool keeps : {false, true}) {
      const auto g = read_gate_function(keeps ? mixture.other : mixture.chosen);
      if (gate && g && (!keeps || gate->name == "Sigmoid"))
        found.push_back({*gate, *gate, *g, keeps ? mixture.chosen : mixture.other, true, keeps});
    }
  }
  return found;
}

// The row that multiplies a state in a gate's sum, which loses that term; empty where there is none.
std::vector<double> take_peephole(GateSum& gate, Value* state) {
  for (auto term = gate.terms.begin(); term != gate.terms.end(); ++term) {
    const bool is_whole = !term->weights && term->first_column == 0 && term->depth == gate.width;
    const auto factors = is_whole ? as_factors(term->leaf) : std::nullopt;
    for (size_t side = 0; factors && side < 2; ++side) {
      auto row = as_row((*factors)[1 - side], gate.width);
      if (!row || unranked((*factors)[side]) != unranked(state)) continue;
      gate.terms.erase(term);
      return *std::move(row);
    }
  }
  return {};
}

// h' = o * H(c')
std::optional<Cell> read_lstm(Value* new_h) {
  const auto outer = as_factors(new_h);
  if (!outer) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    const auto o = read_gate_function((*outer)[side]), of_state = read_gate_function((*outer)[1 - side]);
    if (!o || !of_state) continue;
    Value* new_c = unranked(of_state->input);
    const Node* sum = new_c->producer;
    if (!sum || (sum->op != "Add" && sum->op != "Sub")) continue;
    for (const StateUpdate& update : read_state_updates(*sum)) {
      if (!has_one_function({&update.i, &update.f, &*o})) continue;
      Cell cell{"LSTM", sum, nullptr, update.c, new_h, new_c};
      if (!has_dims_of(cell.c, cell.new_c) && !is_zero(cell.c)) continue;
      for (Value* in : {update.i.input, o->input, update.f.input, update.g.input}) {
        auto gate = read_gate_sum(in);
        if (!gate) break;
        const size_t at = cell.gates.size();
        if (at < 3) cell.peepholes[at] = take_peephole(*gate, at == 1 ? new_c : cell.c);
        cell.gates.push_back(std::move(*gate));
      }
      cell.functions = {update.i, update.g, *of_state};
      cell.coupled = update.coupled;
      cell.flips_update = update.flips;
      if (cell.gates.size() == 4) return cell;
    }
  }
  return std::nullopt;
}

// The last gate: tanh(x W + r * (h R + b)) or tanh(x W + (r * h) R).
bool read_candidate_gate(Cell& cell, const GateFunction& n, Value*& reset) {
  auto sum = read_gate_sum(n.input);
  if (!sum) return false;
  for (size_t at = 0; at < sum->terms.size(); ++at) {
    GateTerm& term = sum->terms[at];
    const auto factors = as_factors(term.leaf);
    for (size_t side = 0; factors && side < 2; ++side) {
      Value* other = (*factors)[1 - side];
      if (!read_gate_function((*factors)[side])) continue;
      reset = (*factors)[side];
      if (!term.weights) {
        const auto inner = read_gate_sum(other);
        if (!inner || inner->width != sum->width) continue;
        sum->terms.erase(sum->terms.begin() + static_cast<std::ptrdiff_t>(at));
        sum->terms.insert(sum->terms.end(), inner->terms.begin(), inner->terms.end());
        cell.hidden_bias = inner->bias;
        cell.linear_before_reset = true;
      } else if (is_same_state(other, cell.h)) {
        term.leaf = cell.h;
      } else {
        continue;
      }
      cell.gates.push_back(std::move(*sum));
      return true;
    }
  }
  return false;
}

// h' = z * h + (1 - z) * n, or with the places of h and n changed.
std::optional<Cell> read_gru(Value* new_h) {
  const Node* node = new_h->producer;
  if (node->op != "Add" && node->op != "Sub") return std::nullopt;
  for (const Mixture& mixture : read_mixtures(*node)) {
    const auto z = read_gate_function(mixture.weight);
    if (!z) continue;
    for (const bool flips : {false, true}) {
      const auto n = read_gate_function(flips ? mixture.chosen : mixture.other);
      if (!n || (flips && z->name != "Sigmoid")) continue;
      Cell cell{"GRU", node, flips ? mixture.other : mixture.chosen, nullptr, new_h};
      cell.flips_update = flips;
      Value* reset = nullptr;
      Cell last = cell;
      if (!read_candidate_gate(last, *n, reset)) continue;
      const auto r = read_gate_function(reset);
      auto update = read_gate_sum(z->input), gate = read_gate_sum(r->input);
      if (!update || !gate || !r->is_same(*z) || (!has_dims_of(cell.h, new_h) && !is_zero(cell.h))) continue;
      last.gates = {std::move(*update), std::move(*gate), std::move(last.gates.front())};
      last.functions = {*z, *n};
      return last;
    }
  }
  return std::nullopt;
}

// h' = f(x W + h R), which only its neighbours in time tell from a layer.
std::optional<Cell> read_rnn(Value* new_h) {
  const auto f = read_gate_function(new_h);
  auto gate = f ? read_gate_sum(f->input) : std::nullopt;
  if (!gate) return std::nullopt;
  Cell cell{"RNN", new_h->producer, nullptr, nullptr, new_h};
  cell.gates.push_back(std::move(*gate));
  cell.functions = {*f};
  return cell;
}

// The values that a body carries from one iteration to the next, by what they are after it.
std::map<const Value*, Value*> carried_values(const Graph& graph, const Node* owner) {
  std::map<const Value*, Value*> carried;
  if (!owner || (owner->op != "Scan" && owner->op != "Loop")) return carried;
  const bool is_loop = owner->op == "Loop";
  const auto others = static_cast<size_t>(owner->int_attr("num_captured", 0) + owner->int_attr("num_scan_inputs", 0));
  const size_t first = is_loop ? 2 : 0;
  for (size_t i = first; i + others < graph.inputs.size(); ++i)
    carried.emplace(unranked(graph.outputs[i - (is_loop ? 1 : 0)]), graph.inputs[i]);
  return carried;
}

class CellReader {
 public:
  CellReader(Graph& graph, const PassContext& context, const Node* owner)
      : rewriter_(graph, context),
        carried_(carried_values(graph, owner)),
        is_iteration_(owner && (owner->op == "Scan" || owner->op == "Loop")) {}

  bool run() {
    for (const Node* node : rewriter_.nodes()) {
      if (node->outputs.empty() || !node->outputs.front()) continue;
      Value* out = node->outputs.front();
      if (!out->type.is_tensor() || !out->shape().has_rank()) continue;
      if (out->dtype() != DType::Float32 && out->dtype() != DType::Float64) continue;
      std::optional<Cell> cell;
      if (node->op == "Mul") cell = read_lstm(out);
      if (node->op == "Add" || node->op == "Sub") cell = read_gru(out);
      if (!cell && unranked(out) == out) cell = read_rnn(out);
      if (!cell) continue;
      by_state_[unranked(cell->new_h)] = cells_.size();
      cells_.push_back(std::move(*cell));
    }
    // A step knows its state by the one before; the first one by those after it.
    for (size_t i = cells_.size(); i-- > 0;) find_state(cells_[i]);
    for (const Cell& cell : cells_) {
      if (cell.is_recognised) emit(cell);
    }
    return rewriter_.finish();
  }

 private:
  struct Weights {
    const Cell* cell;
    Value *w, *r, *b, *p;
  };

  Cell* maker(Value* state) {
    const auto it = state ? by_state_.find(unranked(state)) : by_state_.end();
    return it == by_state_.end() ? nullptr : &cells_[it->second];
  }

  // The cell before this one in time: the maker of a leaf that is a state, by the same weights.
  Cell* predecessor(const Cell& cell, Value* state) {
    Value* leaf = unranked(state);
    Cell* before = maker(leaf);
    if (!before || before == &cell || before->op != cell.op || before->hidden() != cell.hidden()) return nullptr;
    if (cell.op == "LSTM") return unranked(cell.c) == unranked(before->new_c) ? before : nullptr;
    if (cell.op == "GRU") return unranked(cell.h) == unranked(before->new_h) ? before : nullptr;
    const GateSum& gate = cell.gates.front();
    const bool shares =
        gate.terms.size() > 1 && std::all_of(gate.terms.begin(), gate.terms.end(), [&](const auto& t) {
          const auto& others = before->gates.front().terms;
          return unranked(t.leaf) == leaf ||
                 std::any_of(others.begin(), others.end(), [&](const auto& o) { return t.has_weights_of(o); });
        });
    return shares ? before : nullptr;
  }

  bool is_carried(Value* next, Value* state) const {
    const auto it = carried_.find(unranked(next));
    return it != carried_.end() && it->second == unranked(state);
  }

  // In a loop a cell is left as it is unless the whole loop can become a layer: the loop carries its states, and
  // nothing else reads them. Else products of the input, which leave the loop, are worth more than a step by one
  // operator.
  bool can_leave_loop(const Cell& cell) const {
    if (!is_iteration_) return true;
    if (!cell.h || !is_carried(cell.new_h, cell.h) || (cell.c && !is_carried(cell.new_c, cell.c))) return false;
    const Graph& graph = rewriter_.graph();
    std::set<const Node*> inside;
    std::vector<const Value*> open{cell.new_h};
    while (!open.empty()) {
      const Node* node = open.back()->producer;
      open.pop_back();
      if (!node || !inside.insert(node).second) continue;
      for (const Value* in : node->inputs) {
        if (in) open.push_back(in);
      }
    }
    open = {unranked(cell.h)};
    if (cell.c) open.push_back(unranked(cell.c));
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      const auto count = std::count(graph.outputs.begin(), graph.outputs.end(), value);
      if (value == cell.new_h) continue;
      if (count > (value == cell.new_c ? 1 : 0)) return false;
      for (const Node* reader : rewriter_.readers(value)) {
        if (inside.count(reader) == 0) return false;
        open.insert(open.end(), reader->outputs.begin(), reader->outputs.end());
      }
    }
    return true;
  }

  // Finds h among the leaves of a cell, and tells the cell before it which matrices h is multiplied by.
  void find_state(Cell& cell) {
    for (const GateTerm& term : cell.gates.front().terms) {
      if (cell.h || term.depth != cell.hidden()) continue;
      const bool is_later = !cell.later_terms.empty() && cell.later_terms.front().has_weights_of(term);
      if (is_carried(cell.new_h, term.leaf) || predecessor(cell, term.leaf) || is_later) cell.h = term.leaf;
    }
    // One step of its own: any operand of that size may be the state.
    for (const GateTerm& term : cell.gates.front().terms) {
      const bool is_alone = cell.op == "LSTM" && cell.later_terms.empty() && cell.gates.front().terms.size() > 1;
      if (is_alone && !cell.h && term.depth == cell.hidden()) cell.h = term.leaf;
    }
    for (size_t g = 0; g < cell.later_terms.size(); ++g) {
      if (state_term(cell, cell.gates[g])) continue;
      cell.gates[g].terms.push_back(cell.later_terms[g]);
      cell.gates[g].terms.back().leaf = nullptr;
    }
    cell.is_recognised = is_whole(cell);
    Cell* before = cell.is_recognised && cell.h ? predecessor(cell, cell.h) : nullptr;
    if (!before) return;
    before->is_linked = true;
    before->later_terms.clear();
    for (const GateSum& gate : cell.gates) before->later_terms.push_back(*state_term(cell, gate));
    // Products with a c of zero may have been folded away, too.
    for (const size_t gate : {size_t{0}, size_t{2}}) {
      if (before->c && is_zero(before->c) && before->peepholes[gate].empty())
        before->peepholes[gate] = cell.peepholes[gate];
    }
  }

  // Every gate is a sum of products by matrices, one of them of h, and all have the same operands.
  bool is_whole(const Cell& cell) {
    std::set<const Value*> operands;
    for (const GateTerm& term : operands_of(cell)) operands.insert(term.leaf);
    for (const GateSum& gate : cell.gates) {
      size_t states = 0, others = 0;
      if (gate.width != cell.hidden()) return false;
      for (const GateTerm& term : gate.terms) {
        if (!term.weights || (cell.is_state(term) && term.depth != cell.hidden())) return false;
        (cell.is_state(term) ? states : others) += cell.is_state(term) || operands.count(term.leaf) > 0 ? 1 : 0;
      }
      if (states != 1 || others != operands.size() || others + 1 != gate.terms.size() || operands.empty()) return false;
    }
    const auto is_state_shaped = [](Value* v) { return !v || is_zero(v) || fits(v); };
    return fits(cell.new_h) && is_state_shaped(cell.h) && is_state_shaped(cell.c) &&
           std::all_of(operands.begin(), operands.end(), [](const Value* v) { return fits(v); }) &&
           (cell.op != "RNN" || is_recurrent(cell)) && can_leave_loop(cell);
  }

  // Rows of one axis, after a leading one or none.
  static bool fits(const Value* value) {
    if (!value->type.is_tensor() || !value->shape().has_rank()) return false;
    const int rank = value->shape().rank();
    return rank == 2 || (rank == 3 && value->shape()[0].is(1));
  }

  bool is_recurrent(const Cell& cell) {
    return cell.is_linked || (cell.h && (is_carried(cell.new_h, cell.h) || predecessor(cell, cell.h)));
  }

  // The value that stands for another since the cell that makes that one has been replaced.
  Value* current(Value* value) const {
    const auto it = replaced_.find(value);
    return it == replaced_.end() ? value : it->second;
  }

  Value* with_step_axis(const Node* position, Value* value) {
    value = current(value);
    if (value->shape().rank() == 3) return value;
    return rewriter_.insert(position, "Unsqueeze", {value, rewriter_.add_ints("step_axis", {0})}, {}, value->name);
  }

  Value* state_of(const Node* position, Value* value) {
    return !value || is_zero(value) ? nullptr : with_step_axis(position, value);
  }

  // W, R, B and the peepholes of a cell, shared by the steps that have the same.
  const Weights& weights_of(const Cell& cell, DType dtype) {
    for (const Weights& known : weights_) {
      if (have_same_weights(cell, *known.cell)) return known;
    }
    const int64_t gates = static_cast<int64_t>(cell.gates.size()), hidden = cell.hidden();
    int64_t depth = 0;
    for (const GateTerm& term : operands_of(cell)) depth += term.depth;
    std::vector<double> w(static_cast<size_t>(gates * hidden * depth)), r(static_cast<size_t>(gates * hidden * hidden)),
        b(static_cast<size_t>(2 * gates * hidden));
    for (int64_t g = 0; g < gates; ++g) {
      const GateSum& gate = cell.gates[static_cast<size_t>(g)];
      const bool negate = cell.flips_update && g == 0;
      int64_t at = 0;
      for (const GateTerm& operand : operands_of(cell)) {
        copy_columns(*term_of(gate, operand), hidden, negate, w.data() + g * hidden * depth + at, depth);
        at += operand.depth;
      }
      copy_columns(*state_term(cell, gate), hidden, negate, r.data() + g * hidden * hidden, hidden);
      for (int64_t i = 0; i < hidden; ++i) {
        const double bias = gate.bias[static_cast<size_t>(i)];
        b[static_cast<size_t>(g * hidden + i)] = negate ? -bias : bias;
        if (g == gates - 1 && !cell.hidden_bias.empty())
          b[static_cast<size_t>((gates + g) * hidden + i)] = cell.hidden_bias[static_cast<size_t>(i)];
      }
    }
    const std::string& name = cell.new_h->name;
    const auto constant = [&](const char* what, Dims dims, const std::vector<double>& numbers) {
      Tensor tensor(dtype, std::move(dims));
      store_doubles(tensor, numbers);
      return rewriter_.add_constant(name + what, std::move(tensor));
    };
    weights_.push_back({&cell, constant(".W", {1, gates * hidden, depth}, w),
                        constant(".R", {1, gates * hidden, hidden}, r), constant(".B", {1, 2 * gates * hidden}, b),
                        nullptr});
    std::vector<double> p;
    for (const auto& row : cell.peepholes) {
      const double sign = cell.flips_update && &row == cell.peepholes ? -1 : 1;
      if (!row.empty()) p.resize(static_cast<size_t>(3 * hidden));
      for (size_t i = 0; i < row.size(); ++i)
        p[static_cast<size_t>((&row - cell.peepholes) * hidden) + i] = sign * row[i];
    }
    if (!p.empty()) weights_.back().p = constant(".P", {1, 3 * hidden}, p);
    return weights_.back();
  }

  void emit(const Cell& cell) {
    const Node* position = cell.position;
    const Weights& weights = weights_of(cell, cell.new_h->dtype());
    std::vector<Value*> operands;
    for (const GateTerm& term : operands_of(cell)) operands.push_back(with_step_axis(position, term.leaf));
    Value* x = operands.front();
    if (operands.size() > 1) x = rewriter_.insert(position, "Concat", operands, {{"axis", int64_t{2}}}, x->name);
    const bool is_lstm = cell.op == "LSTM";
    std::vector<Value*> inputs{x, weights.w, weights.r, weights.b, nullptr, state_of(position, cell.h)};
    if (is_lstm) inputs.push_back(state_of(position, cell.c));
    if (weights.p) inputs.push_back(weights.p);
    Attrs attrs{{"hidden_size", cell.hidden()}};
    std::vector<std::string> names;
    std::vector<double> alpha, beta;
    for (const GateFunction& f : cell.functions) {
      names.push_back(f.name);
      if (!f.numbers.empty()) alpha.push_back(f.numbers[0]);
      if (f.numbers.size() > 1) beta.push_back(f.numbers[1]);
    }
    const bool is_usual = std::all_of(names.begin(), names.end(), [&](const std::string& n) {
      return n == (&n == &names.front() && cell.op != "RNN" ? "Sigmoid" : "Tanh");
    });
    if (!is_usual) attrs["activations"] = names;
    if (!alpha.empty()) attrs["activation_alpha"] = alpha;
    if (!beta.empty()) attrs["activation_beta"] = beta;
    if (cell.coupled) attrs["input_forget"] = int64_t{1};
    if (cell.linear_before_reset) attrs["linear_before_reset"] = int64_t{1};
    std::vector<std::string> outputs{"", cell.new_h->name};
    if (is_lstm) outputs.push_back(cell.new_c->name);
    const auto made = rewriter_.insert_all(position, cell.op, std::move(inputs), outputs, std::move(attrs));
    hand_on(position, cell.new_h, made[1]);
    if (is_lstm) hand_on(position, cell.new_c, made[2]);
  }

  void hand_on(const Node* position, Value* from, Value* state) {
    if (from->shape().rank() == 2)
      state = rewriter_.insert(position, "Squeeze", {state, rewriter_.add_ints("step_axis", {0})}, {}, from->name);
    rewriter_.replace(from, state);
    replaced_[from] = state;
  }

  Rewriter rewriter_;
  std::map<const Value*, Value*> carried_;
  bool is_iteration_ = false;
  std::vector<Cell> cells_;
  std::map<const Value*, size_t> by_state_;
  std::map<const Value*, Value*> replaced_;
  std::vector<Weights> weights_;
};

bool recognize_cells_in(Graph& graph, const PassContext& context, const Node* owner) {
  bool changed = CellReader(graph, context, owner).run();
  for (const auto& node : graph.nodes()) {
    for (auto& [name, body] : node->bodies) changed = recognize_cells_in(*body, context, node.get()) || changed;
  }
  return changed;
}

}  // namespace

// One step of an LSTM, a GRU or an RNN that is written out with constant weights becomes that operator over one step.
bool recognize_cells(Graph& graph, const PassContext& context) {
  return recognize_cells_in(graph, context, nullptr);
}

}  // namespace neo
