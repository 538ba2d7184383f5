#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "passes/gate_sums.h"
#include "passes/scan_parts.h"
#include "passes/slices.h"

namespace neo {
namespace {

// Bytes that one lifted value may take where its sizes are known.
constexpr int64_t kMaxLifted = int64_t{1} << 28;

constexpr std::array<std::string_view, 8> kAlongAxes = {"Squeeze",   "Unsqueeze", "ReduceMean", "ReduceSum",
                                                        "ReduceMax", "ReduceMin", "ReduceL2",   "ReduceProd"};
constexpr std::array<std::string_view, 4> kOverAxis = {"LayerNormalization", "RMSNormalization", "Softmax",
                                                       "LogSoftmax"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, const std::string& op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// A value of the body for all iterations at once, along a first axis.
struct Lifted {
  Value* whole = nullptr;
  bool reverse = false;  // the first iteration has the last position
};

class Lifter {
 public:
  Lifter(Graph& graph, Node& scan, const PassContext& context)
      : outer_(graph, context),
        scan_(scan),
        body_graph_(scan.body("body")),
        body_(body_graph_, context),
        parts_(read_scan_parts(scan)) {}

  bool run() {
    for (const auto& s : parts_.scanned) {
      if (!s.whole->type.is_tensor() || !s.whole->shape().has_rank()) return false;
    }
    for (const auto& c : parts_.captured) captured_[c.inner] = c.outer;
    for (auto& s : parts_.scanned) {
      const int rank = s.whole->shape().rank();
      const int64_t axis = s.axis < 0 ? s.axis + rank : s.axis;
      scanned_[s.inner] = {s.whole, s.reverse};
      if (axis != 0) moved_axes_[s.inner] = axis;
    }
    find_late();
    for (Node* node : body_.nodes()) lift(*node);
    for (const auto& c : parts_.collected) {
      if (c.result && whole_of(c.inner) && whole_of(c.inner)->reverse == c.reverse) hands_on_ = true;
    }
    const bool changes = !lifted_.empty() || hands_on_;
    if (changes) finish();
    return changes;
  }

 private:
  // A value of the body for all iterations at once; null where it depends on those before.
  const Lifted* whole_of(Value* value) {
    if (const auto it = lifted_.find(value); it != lifted_.end()) return &it->second;
    const auto it = scanned_.find(value);
    if (it == scanned_.end()) return nullptr;
    if (const auto moved = moved_axes_.find(value); moved != moved_axes_.end()) {
      std::vector<int64_t> perm{moved->second};
      for (int64_t i = 0; i < it->second.whole->shape().rank(); ++i) {
        if (i != moved->second) perm.push_back(i);
      }
      it->second.whole = insert("Transpose", {it->second.whole}, value->name, {{"perm", perm}});
      moved_axes_.erase(moved);
    }
    return &it->second;
  }

  bool varies(Value* value) const { return lifted_.count(value) > 0 || scanned_.count(value) > 0; }

  // The same value in every iteration, outside; null where there is none.
  Value* same_of(Value* value) {
    if (const auto it = captured_.find(value); it != captured_.end()) return it->second;
    if (!value->constant) return nullptr;
    Value* copy = outer_.add_constant(value->name, *value->constant);
    captured_[value] = copy;
    return copy;
  }

  Value* insert(std::string_view op, std::vector<Value*> inputs, const std::string& like, Attrs attrs = {}) {
    return outer_.insert(&scan_, op, std::move(inputs), std::move(attrs), like);
  }
  Value* ints(const std::vector<int64_t>& numbers) { return outer_.add_ints("axes", numbers); }

  static bool has_rank(const Value* value) { return value && value->type.is_tensor() && value->shape().has_rank(); }

  // Whether an elementwise result is much larger than all that varies of its inputs.
  bool expands(const Node& node) const {
    constexpr int64_t kTimes = 4;
    const auto count = [](const Value* v) { return std::max<int64_t>(1, v->shape().element_count().hint()); };
    return has_rank(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* in) {
             return !in || in->constant || captured_.count(in) > 0 ||
                    (has_rank(in) && count(node.outputs[0]) >= kTimes * count(in));
           });
  }

  // Finds elementwise nodes that only make more of a slice, as outer products are, for elementwise nodes that wait for
  // the iteration before. They stay: beside their readers they take no memory for all iterations.
  void find_late() {
    std::set<const Value*> waiting;
    for (const auto& c : parts_.carried) waiting.insert(c.inner);
    std::set<const Node*> waits, beside;
    const std::vector<Node*> nodes = body_.nodes();
    for (const Node* node : nodes) {
      if (std::none_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return waiting.count(v) > 0; }))
        continue;
      waits.insert(node);
      waiting.insert(node->outputs.begin(), node->outputs.end());
    }
    waiting.erase(nullptr);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const Node* node = *it;
      if (waits.count(node) > 0 || !is_elementwise(node->op) || body_graph_.is_output(node->outputs[0])) continue;
      const auto readers = body_.readers(node->outputs[0]);
      const bool is_beside = std::all_of(readers.begin(), readers.end(), [&](const Node* reader) {
        return beside.count(reader) > 0 || (waits.count(reader) > 0 && is_elementwise(reader->op));
      });
      if (is_beside) beside.insert(node);
    }
    for (const Node* node : nodes) {
      if (beside.count(node) == 0) continue;
      const bool is_late = expands(*node) || std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) {
                             return v && late_.count(v->producer) > 0;
                           });
      if (is_late) late_.insert(node);
    }
  }

  // Lifts a node if all its inputs are lifted, or the same in every iteration.
  void lift(Node& node) {
    if (late_.count(&node) > 0 || lift_layer(node) || !node.bodies.empty() || node.outputs.empty() ||
        !has_rank(node.outputs[0]))
      return;
    bool any = false;
    for (Value* in : node.inputs) {
      if (!in) continue;
      const bool is_same = in->constant || captured_.count(in) > 0;
      if (!is_same && !varies(in)) {
        split_product(node);
        return;
      }
      any = any || !is_same;
    }
    if (!any || !node.symbols.empty() || !node.guards.empty()) return;
    Dim bytes = parts_.scanned.front().whole->shape()[0] * Dim(item_bytes(node.outputs[0]->dtype()));
    for (const Dim& d : node.outputs[0]->shape().dims()) bytes = bytes * d;
    if (bytes.is_constant() && bytes.value() > kMaxLifted) return;
    // All slices are taken in one order.
    std::vector<const Lifted*> wholes;
    bool reverse = false;
    for (Value* in : node.inputs) {
      const Lifted* whole = in && varies(in) ? whole_of(in) : nullptr;
      if (whole && any) reverse = whole->reverse;
      any = any && !whole;
      if (whole && whole->reverse != reverse) return;
      wholes.push_back(whole);
    }
    std::vector<Value*> made = lift_node(node, wholes);
    for (size_t i = 0; i < made.size(); ++i) {
      if (node.outputs[i] && made[i]) lifted_[node.outputs[i]] = {made[i], reverse};
    }
  }

  // Inputs outside, in the node's order.
  std::vector<Value*> inputs_of(const Node& node, const std::vector<const Lifted*>& wholes) {
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(!node.inputs[i] ? nullptr : wholes[i] ? wholes[i]->whole : same_of(node.inputs[i]));
    return inputs;
  }

  std::vector<Value*> lift_node(const Node& node, const std::vector<const Lifted*>& wholes) {
    const Value* out = node.outputs[0];
    const int rank = out->shape().rank();
    const std::string& name = out->name;
    const bool is_first = wholes[0] != nullptr;
    const bool is_only =
        is_first && std::count(wholes.begin(), wholes.end(), nullptr) + 1 == static_cast<std::ptrdiff_t>(wholes.size());
    const auto repeat = [&](Attrs attrs) { return insert(node.op, inputs_of(node, wholes), name, std::move(attrs)); };
    const auto behind = [](int64_t axis) { return axis < 0 ? axis : axis + 1; };
    const bool has_axis = node.has_attr("axis");
    Attrs attrs = node.attrs;
    if (has_axis) attrs["axis"] = behind(node.int_attr("axis", 0));
    if (is_elementwise(node.op)) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Value* in = node.inputs[i];
        if (in && (!has_rank(in) || (wholes[i] ? in->shape().rank() != rank : in->shape().rank() > rank))) return {};
      }
      return {repeat(node.attrs)};
    }
    if (node.op == "MatMul") {
      const bool fits = is_only && has_rank(node.inputs[1]) && node.inputs[1]->shape().rank() == 2;
      return fits ? std::vector{repeat(node.attrs)} : std::vector<Value*>{};
    }
    if (node.op == "Gemm") return lift_gemm(node, wholes);
    if (is_one_of(kAlongAxes, node.op) && is_only) {
      const Value* axes = node.input(1);
      if (!axes || !axes->constant) return {};
      std::vector<int64_t> numbers = load_ints(*axes->constant);
      if (numbers.empty()) return {};
      for (int64_t& n : numbers) n = behind(n);
      return {insert(node.op, {wholes[0]->whole, ints(numbers)}, name, node.attrs)};
    }
    if (is_one_of(kOverAxis, node.op) && is_only && !node.output(1)) {
      if (!has_axis) attrs["axis"] = int64_t{-1};
      return {repeat(std::move(attrs))};
    }
    if (node.op == "Transpose") {
      std::vector<int64_t> perm = node.ints_attr("perm");
      for (int i = rank; perm.empty() && i > 0; --i) perm.push_back(i - 1);
      if (static_cast<int>(perm.size()) != rank) {
        perm.clear();
        for (int i = rank; i > 0; --i) perm.push_back(i - 1);
      }
      for (int64_t& p : perm) ++p;
      perm.insert(perm.begin(), 0);
      return {insert(node.op, {wholes[0]->whole}, name, {{"perm", perm}})};
    }
    if (node.op == "Concat" && std::count(wholes.begin(), wholes.end(), nullptr) == 0)
      return {repeat(std::move(attrs))};
    if (node.op == "Gather" && ((is_only && has_axis) || (!is_first && node.int_attr("axis", 0) == 0)))
      return {repeat(is_only ? std::move(attrs) : node.attrs)};
    if (node.op == "Split" && is_only && has_axis) {
      std::vector<std::string> names;
      for (const Value* v : node.outputs) names.push_back(v ? v->name : "");
      return outer_.insert_all(&scan_, node.op, inputs_of(node, wholes), names, std::move(attrs));
    }
    if (node.op == "Slice" && is_only && node.input(3) && node.input(3)->constant) {
      std::vector<int64_t> axes = load_ints(*node.inputs[3]->constant);
      for (int64_t& a : axes) a = behind(a);
      std::vector<Value*> inputs = inputs_of(node, wholes);
      inputs[3] = ints(axes);
      return {insert(node.op, std::move(inputs), name, node.attrs)};
    }
    return {};
  }

  // A Gemm has two axes only.
  std::vector<Value*> lift_gemm(const Node& node, const std::vector<const Lifted*>& wholes) {
    const std::string& name = node.outputs[0]->name;
    if (!wholes[0] || wholes[1] || (wholes.size() > 2 && wholes[2]) || node.int_attr("transA", 0) != 0 ||
        node.float_attr("alpha", 1) != 1 || (node.input(2) && node.float_attr("beta", 1) != 1))
      return {};
    Value* weights = same_of(node.inputs[1]);
    if (node.int_attr("transB", 0) != 0)
      weights = insert("Transpose", {weights}, weights->name, {{"perm", std::vector<int64_t>{1, 0}}});
    Value* product = insert("MatMul", {wholes[0]->whole, weights}, name);
    return {node.input(2) ? insert("Add", {product, same_of(node.inputs[2])}, name) : product};
  }

  // [a, b] W is a W' + b W'': what does not depend on the iterations before is multiplied for all of them at once.
  void split_product(Node& node) {
    const bool is_gemm = node.op == "Gemm";
    if ((!is_gemm && node.op != "MatMul") || !node.inputs[1]->constant || node.inputs[1]->constant->rank() != 2) return;
    if (!is_gemm && (!node.attrs.empty() || node.input(2))) return;
    if (is_gemm && (node.int_attr("transA", 0) != 0 || node.float_attr("alpha", 1) != 1 ||
                    (node.input(2) && node.float_attr("beta", 1) != 1)))
      return;
    const Node* concat = made_by(node.inputs[0], "Concat");
    Value* out = node.outputs[0];
    if (!concat || body_.is_retired(&node) || body_graph_.is_output(out)) return;
    const int rank = node.inputs[0]->shape().has_rank() ? node.inputs[0]->shape().rank() : 0;
    const int64_t axis = concat->int_attr("axis", 0);
    if (rank < 2 || (axis != -1 && axis != rank - 1)) return;
    const int64_t row_axis = is_gemm && node.int_attr("transB", 0) != 0 ? 1 : 0;
    bool any = false, all = true;
    for (Value* part : concat->inputs) {
      if (!has_rank(part) || !part->shape().dims().back().is_constant()) return;
      any = any || varies(part);
      all = all && varies(part);
    }
    if (!any || all) return;
    Value* sum = nullptr;
    int64_t first = 0;
    for (Value* part : concat->inputs) {
      const int64_t depth = part->shape().dims().back().value();
      Value* rows = rows_of(*node.inputs[1], row_axis, first, depth);
      first += depth;
      Value* product = body_.insert(&node, "MatMul", {part, rows}, {}, out->name);
      lift(*product->producer);
      sum = sum ? body_.insert(&node, "Add", {sum, product}, {}, out->name) : product;
      lift(*sum->producer);
    }
    if (node.input(2)) sum = body_.insert(&node, "Add", {sum, node.inputs[2]}, {}, out->name);
    body_.replace(out, sum);
  }

  // Rows of a constant matrix, or columns made rows.
  Value* rows_of(const Value& matrix, int64_t axis, int64_t first, int64_t count) {
    const Tensor& from = *matrix.constant;
    const int64_t width = from.dims()[static_cast<size_t>(1 - axis)], step = from.dims()[1];
    const int64_t bytes = item_bytes(from.dtype());
    Tensor rows(from.dtype(), {count, width});
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = axis == 0 ? (first + r) * step + c : c * step + first + r;
        std::copy_n(from.as<std::byte>() + at * bytes, bytes, rows.as<std::byte>() + (r * width + c) * bytes);
      }
    }
    return body_.add_constant(matrix.name, std::move(rows));
  }

  // One step of a recurrent layer whose states nobody else reads becomes the layer over all iterations.
  bool lift_layer(Node& node) {
    const bool is_lstm = node.op == "LSTM";
    if (!is_lstm && node.op != "GRU" && node.op != "RNN") return false;
    Value* x = node.inputs[0];
    if (!varies(x) || x->shape().rank() != 3 || !x->shape()[0].is(1) || node.input(4) ||
        node.int_attr("layout", 0) != 0 || node.string_attr("direction", "forward") != "forward")
      return true;
    std::vector<Value*> inputs{nullptr};
    for (size_t i = 1; i < 4; ++i) {
      inputs.push_back(node.input(i) ? same_of(node.inputs[i]) : nullptr);
      if (node.input(i) && !inputs.back()) return true;
    }
    inputs.push_back(nullptr);
    Value* peepholes = node.input(7) ? same_of(node.inputs[7]) : nullptr;
    if (node.input(7) && !peepholes) return true;
    std::vector<ScanParts::Carried*> states;
    for (size_t i = 5; i < (is_lstm ? 7U : 6U); ++i) {
      ScanParts::Carried* state = node.input(i) ? carried_by(node, i) : nullptr;
      if (!state) return true;
      states.push_back(state);
    }
    if (is_lstm && !is_only_next(node.output(2), states[1]->next)) return true;
    const Lifted* whole = whole_of(x);
    for (const ScanParts::Carried* state : states) {
      Value* initial = is_zero(state->initial) ? nullptr : state->initial;
      if (initial && initial->shape().rank() == 2) initial = insert("Unsqueeze", {initial, ints({0})}, initial->name);
      inputs.push_back(initial);
    }
    if (peepholes) inputs.push_back(peepholes);
    inputs[0] = insert("Squeeze", {whole->whole, ints({1})}, x->name);
    Attrs attrs = node.attrs;
    if (whole->reverse) attrs["direction"] = std::string("reverse");
    std::vector<std::string> names{states[0]->next->name};
    for (const ScanParts::Carried* state : states) names.push_back(state->result ? state->result->name : "");
    const auto made = outer_.insert_all(&scan_, node.op, std::move(inputs), names, std::move(attrs));
    for (size_t i = 0; i < states.size(); ++i) {
      if (!states[i]->result) continue;
      Value* final_state = made[i + 1];
      if (states[i]->inner->shape().rank() == 2)
        final_state = insert("Squeeze", {final_state, ints({0})}, states[i]->result->name);
      finals_.emplace_back(states[i]->result, final_state);
      states[i]->result = nullptr;
    }
    for (const ScanParts::Carried* state : states) gone_.insert(state->inner);
    if (node.output(1)) lifted_[node.outputs[1]] = {made[0], whole->reverse};
    if (node.output(0))
      lifted_[node.outputs[0]] = {insert("Unsqueeze", {made[0], ints({1})}, node.outputs[0]->name), whole->reverse};
    return true;
  }

  // The carried value that a step begins with and leaves, if nobody else reads it.
  ScanParts::Carried* carried_by(const Node& node, size_t input) {
    Value* before = unranked(node.inputs[input]);
    for (auto& c : parts_.carried) {
      if (c.inner != before || gone_.count(c.inner) > 0) continue;
      const Value* after = unranked(c.next);
      const bool is_state = after->producer == &node && (after->output_index == static_cast<int>(input) - 4 ||
                                                         (input == 5 && after->output_index == 0));
      return is_state && is_read_by(c.inner, node) && has_rank(c.initial) && c.initial->shape() == c.inner->shape()
                 ? &c
                 : nullptr;
    }
    return nullptr;
  }

  // Whether a value goes to one node only, be it in another rank.
  bool is_read_by(const Value* value, const Node& reader) const {
    if (body_graph_.is_output(value)) return false;
    const auto readers = body_.readers(value);
    return std::all_of(readers.begin(), readers.end(), [&](const Node* n) {
      Value* out = n->outputs.empty() ? nullptr : n->outputs[0];
      return n == &reader || (out && n->inputs[0] == value && unranked(out) != out && is_read_by(out, reader));
    });
  }

  // Whether a state is carried on and read by nobody.
  bool is_only_next(const Value* value, const Value* next) const {
    if (!value) return false;
    if (value == next) return body_.readers(value).empty();
    const auto readers = body_.readers(value);
    return !body_graph_.is_output(value) && std::all_of(readers.begin(), readers.end(), [&](const Node* n) {
      Value* out = n->outputs.empty() ? nullptr : n->outputs[0];
      return out && unranked(out) != out && is_only_next(out, next);
    });
  }

  // Rewrites the Scan: lifted values are scanned where something in the body reads them still.
  void finish() {
    std::erase_if(parts_.carried, [&](const auto& c) { return gone_.count(c.inner) > 0; });
    std::vector<ScanParts::Collected> collected;
    for (const auto& c : parts_.collected) {
      const Lifted* whole = c.result && varies(c.inner) ? whole_of(c.inner) : nullptr;
      if (!whole || whole->reverse != c.reverse) {
        if (c.result) collected.push_back(c);
        continue;
      }
      Value* result = whole->whole;
      const int rank = result->shape().rank();
      const int64_t axis = c.axis < 0 ? c.axis + rank : c.axis;
      if (axis != 0) {
        std::vector<int64_t> perm;
        for (int i = 1; i < rank; ++i) perm.push_back(i);
        perm.insert(perm.begin() + axis, 0);
        result = insert("Transpose", {result}, c.result->name, {{"perm", perm}});
      }
      finals_.emplace_back(c.result, result);
    }
    parts_.collected = std::move(collected);
    body_graph_.outputs.clear();
    for (const auto& c : parts_.carried) body_graph_.outputs.push_back(c.next);
    for (const auto& c : parts_.collected) body_graph_.outputs.push_back(c.inner);
    scan_lifted();
    // A result of the graph is a value of its own.
    Graph& graph = outer_.graph();
    std::set<const Value*> outputs;
    for (auto& [from, to] : finals_) {
      const bool is_taken =
          graph.is_output(from) && (!to->producer || graph.is_output(to) || !outputs.insert(to).second);
      if (is_taken) to = insert("Identity", {to}, from->name);
    }
    const PassContext& context = outer_.context();
    Node* scan = &scan_;
    for (auto& c : parts_.carried) {
      if (c.result && outer_.uses(c.result) == 0) c.result = nullptr;
    }
    outer_.finish();
    replace_by_scan(graph, *scan, parts_, context);
    for (const auto& [from, to] : finals_) graph.replace_uses(from, to);
    graph.erase_nodes([&](const Node& n) { return &n == scan; });
  }

  void scan_lifted() {
    body_.finish();
    erase_unread();
    const auto users = body_graph_.users();
    std::vector<ScanParts::Scanned> scanned;
    std::vector<Value*> read;
    for (const auto& value : body_graph_.values()) {
      if (varies(value.get()) && is_needed(users, value.get())) read.push_back(value.get());
    }
    for (Value* value : read) {
      const auto it =
          std::find_if(parts_.scanned.begin(), parts_.scanned.end(), [&](const auto& s) { return s.inner == value; });
      if (it != parts_.scanned.end()) {
        scanned.push_back(*it);
        continue;
      }
      const Lifted* from = &lifted_.at(value);
      Value* inner = body_graph_.add_input(value->name, value->type);
      body_graph_.replace_uses(value, inner);
      for (auto& c : parts_.carried) c.next = c.next == value ? inner : c.next;
      for (auto& c : parts_.collected) c.inner = c.inner == value ? inner : c.inner;
      scanned.push_back({from->whole, inner, 0, from->reverse});
    }
    // The length is that of a scanned value.
    if (scanned.empty()) scanned.push_back(parts_.scanned.front());
    parts_.scanned = std::move(scanned);
    erase_unread();
    const auto left = body_graph_.users();
    std::erase_if(parts_.captured, [&](const auto& c) { return !is_read(left, c.inner); });
  }

  // Whether what is not lifted reads a value.
  bool is_needed(const Graph::Users& users, const Value* value) const {
    const auto it = users.find(value);
    return body_graph_.is_output(value) ||
           (it != users.end() && std::any_of(it->second.begin(), it->second.end(), [&](const auto& read) {
              const auto& outputs = read.first->outputs;
              return std::any_of(outputs.begin(), outputs.end(),
                                 [&](const Value* v) { return v && !lifted_.count(v); });
            }));
  }

  bool is_read(const Graph::Users& users, const Value* value) const {
    const auto it = users.find(value);
    return (it != users.end() && !it->second.empty()) || body_graph_.is_output(value);
  }

  // Nodes that nobody reads, and those that are lifted.
  void erase_unread() {
    for (size_t before = 0; before != body_graph_.nodes().size();) {
      before = body_graph_.nodes().size();
      const auto users = body_graph_.users();
      body_graph_.erase_nodes([&](const Node& n) {
        return std::none_of(n.outputs.begin(), n.outputs.end(), [&](const Value* v) { return v && is_read(users, v); });
      });
    }
  }

  Rewriter outer_;
  Node& scan_;
  Graph& body_graph_;
  Rewriter body_;
  ScanParts parts_;
  std::map<const Value*, Value*> captured_;
  std::map<const Value*, Lifted> scanned_, lifted_;
  std::map<const Value*, int64_t> moved_axes_;
  std::set<const Node*> late_;                     // which stay, though they do not wait
  std::set<const Value*> gone_;                    // carried values that a layer took over
  std::vector<std::pair<Value*, Value*>> finals_;  // results of the Scan, and what they are now
  bool hands_on_ = false;
};

bool lift_in_body(Graph& graph, const PassContext& context) {
  std::vector<Node*> scans;
  for (const auto& node : graph.nodes()) {
    if (node->op == "Scan") scans.push_back(node.get());
  }
  bool changed = false;
  for (Node* scan : scans) changed = Lifter(graph, *scan, context).run() || changed;
  if (!scans.empty()) graph.erase_unused_values();
  return changed;
}

}  // namespace

// Values that an iteration of a Scan computes from its slices alone are computed for all iterations at once, before it:
// products of the input by weights above all. A recurrent layer's step becomes the layer, and what is left may be
// nothing.
bool lift_from_scans(Graph& graph, const PassContext& context) {
  const bool changed = for_each_body(graph, [&](Graph& g) { return lift_in_body(g, context); });
  if (changed) remove_dead_nodes(graph, context);
  return changed;
}

}  // namespace neo
