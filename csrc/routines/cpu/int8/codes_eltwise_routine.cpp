#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/int_math.h"
#include "ops/infer.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/int8/codes_elements.h"
#include "routines/cpu/int8/codes_kernels.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/compile_program.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

constexpr int64_t kTable = 256;
constexpr size_t kMaxTabledNodes = 32;

const Node* linear_source(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  return node && node->op == "DequantizeLinear" && !value->constant ? node : nullptr;
}

bool is_number(const Value* value) {
  return value && value->constant && value->constant->size() == 1;
}

// The nodes that make a QuantizeLinear's codes of other codes, elementwise; codes on the way are rounded and numbers
// again. From the nearest codes on, `open` goes further back.
class CodesFunction {
 public:
  // The function behind a QuantizeLinear; false where there is none.
  bool start(const Node& root) { return add(root, nodes_, leaves_); }

  // Goes back from codes that depend on others, as long as some do; whether one value of codes is left.
  bool open_dependent() {
    while (leaves_.size() > 1) {
      const auto it = std::find_if(leaves_.begin(), leaves_.end(), [&](const Value* leaf) {
        return std::any_of(leaves_.begin(), leaves_.end(),
                           [&](const Value* other) { return other != leaf && reaches(leaf, other, kMaxWay); });
      });
      if (it == leaves_.end() || !open(*it)) return false;
    }
    return leaves_.size() == 1;
  }
  bool open_last() { return open(leaves_.front()) && open_dependent(); }

  // The group, where nobody else reads what it makes but its codes.
  std::optional<Workload> workload(const Graph::Users& users, const Graph& graph) const {
    for (const Node* node : nodes_) {
      if (node == nodes_.back() || node->op == "DequantizeLinear") continue;
      const auto readers = users.find(node->outputs.front());
      if (readers == users.end() || graph.is_output(node->outputs.front())) return std::nullopt;
      for (const auto& [reader, index] : readers->second) {
        if (std::find(nodes_.begin(), nodes_.end(), reader) == nodes_.end()) return std::nullopt;
      }
    }
    return Workload::of(nodes_);
  }

 private:
  static constexpr int kMaxWay = 4;
  static constexpr size_t kMaxLeaves = 3;
  using Nodes = std::vector<const Node*>;
  using Leaves = std::vector<const Value*>;

  template <class T>
  static void add_once(std::vector<T>& all, T item) {
    if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
  }

  // A node behind what it reads, in order; the codes that this ends at.
  bool add(const Node& node, Nodes& nodes, Leaves& leaves) const {
    if (std::find(nodes.begin(), nodes.end(), &node) != nodes.end()) return true;
    if (nodes.size() >= kMaxTabledNodes || leaves.size() > kMaxLeaves) return false;
    const bool rounds = node.op == "QuantizeLinear";
    if (rounds ? !read_code_grid(node) : !is_eltwise(node)) return false;
    for (size_t i = 0; i < (rounds ? 1 : node.inputs.size()); ++i) {
      const Value* v = node.inputs[i];
      if (!v || is_number(v)) continue;
      if (const Node* source = linear_source(v)) {
        if (!read_code_grid(*source)) return false;
        const Value* codes = source->inputs[0];
        const bool is_opened = std::find(opened_.begin(), opened_.end(), codes) != opened_.end();
        if (is_opened && !add(*codes->producer, nodes, leaves)) return false;
        if (!is_opened) add_once(leaves, codes);
        add_once(nodes, source);
      } else if (!v->producer || !add(*v->producer, nodes, leaves)) {
        return false;
      }
    }
    add_once(nodes, &node);
    return true;
  }

  bool open(const Value* codes) {
    if (!codes->producer || codes->producer->op != "QuantizeLinear") return false;
    opened_.push_back(codes);
    const Node* root = nodes_.back();
    nodes_.clear();
    leaves_.clear();
    return add(*root, nodes_, leaves_);
  }

  bool reaches(const Value* codes, const Value* other, int steps) const {
    if (codes == other) return true;
    if (steps == 0 || !codes->producer || codes->producer->op != "QuantizeLinear") return false;
    Nodes nodes;
    Leaves leaves;
    return add(*codes->producer, nodes, leaves) &&
           std::any_of(leaves.begin(), leaves.end(), [&](const Value* v) { return reaches(v, other, steps - 1); });
  }

  Nodes nodes_;
  Leaves leaves_, opened_;
};

std::optional<CodesBinary::Op> binary_op(const Node& node) {
  if (node.op == "Add") return CodesBinary::Op::Add;
  if (node.op == "Sub") return CodesBinary::Op::Sub;
  if (node.op == "Mul") return CodesBinary::Op::Mul;
  return std::nullopt;
}

// A function of codes: of one value, whose 256 results are a table, or Add, Sub or Mul of two, clamped.
struct CodesEltwise {
  const Value* x = nullptr;
  const Value* other = nullptr;  // of two
  const Value* y = nullptr;
  CodesBinary binary;

  static std::optional<CodesEltwise> read(const Workload& workload, std::string* why) {
    const auto reject = [&](const char* reason) {
      if (why) *why = reason;
      return std::nullopt;
    };
    CodesEltwise e;
    e.y = workload.outputs.front();
    const auto y_grid = read_code_grid(workload.root());
    if (!y_grid) return reject("the result is not 8-bit codes of one constant scale");
    std::vector<const Node*> sources;
    for (const Node* node : workload.nodes) {
      if (node->op != "DequantizeLinear") continue;
      if (!read_code_grid(*node)) return reject("an operand is not 8-bit codes of one constant scale");
      const bool is_outer = workload.input_index(node->inputs[0]) >= 0;
      const bool is_new = std::none_of(sources.begin(), sources.end(),
                                       [&](const Node* other) { return other->inputs[0] == node->inputs[0]; });
      if (is_outer && is_new) sources.push_back(node);
    }
    if (sources.empty() || sources.size() > 2) return reject("it is not a function of one or two values of codes");
    e.x = sources[0]->inputs[0];
    for (const Node* node : workload.nodes) {
      if (!(node->outputs.front()->shape() == e.x->shape())) return reject("an operand is broadcast");
    }
    if (sources.size() == 1) return e;
    if (workload.nodes.size() < 4) return reject("the function of two values is not a sum or product");
    const Node& node = *workload.nodes[2];
    const auto op = binary_op(node);
    if (!op || workload.nodes.size() > 5) return reject("the function of two values is not a sum or product");
    // The operands in the node's order.
    const Node* first = linear_source(node.inputs[0]);
    const Node* second = linear_source(node.inputs[1]);
    if (!first || !second) return reject("an operand is not codes");
    e.x = first->inputs[0];
    e.other = second->inputs[0];
    if (!(e.x->shape() == e.y->shape()) || !(e.other->shape() == e.y->shape()))
      return reject("an operand is broadcast");
    const CodeGrid p = *read_code_grid(*first), q = *read_code_grid(*second);
    CodesBinary& f = e.binary;
    f.op = *op;
    f.a_is_signed = p.is_signed();
    f.a_zero = p.zero;
    f.a_scale = p.scale;
    f.b_is_signed = q.is_signed();
    f.b_zero = q.zero;
    f.b_scale = q.scale;
    f.y_is_signed = y_grid->is_signed();
    f.y_zero = y_grid->zero;
    f.y_scale = y_grid->scale;
    int32_t lo = y_grid->lo(), hi = y_grid->hi();
    if (workload.nodes.size() == 5) {
      const auto clamp = read_clamp(*workload.nodes[3]);
      if (!clamp) return reject("the function of two values is not a sum or product");
      lo = y_grid->code_of(clamp->lo);
      hi = y_grid->code_of(clamp->hi);
    }
    f.lo = static_cast<float>(lo - f.y_zero);
    f.hi = static_cast<float>(hi - f.y_zero);
    return e;
  }
};

// Every code through the nodes' references.
void fill_table(const Workload& workload, const OpRegistry& ops, uint8_t* table) {
  const Value* x = CodesEltwise::read(workload, nullptr)->x;
  std::map<const Value*, HostValue> values;
  Tensor codes(x->dtype(), {kTable});
  for (int64_t i = 0; i < kTable; ++i) codes.as<uint8_t>()[i] = static_cast<uint8_t>(i);
  values[x] = HostValue(codes);
  for (const Node* node : workload.nodes) {
    std::vector<HostValue> inputs;
    for (const Value* v : node->inputs) {
      const auto it = values.find(v);
      if (!v) {
        inputs.emplace_back();
      } else if (it != values.end()) {
        inputs.push_back(it->second);
      } else {
        inputs.emplace_back(v->constant->reshaped({}));
      }
    }
    values[node->outputs.front()] = evaluate_node(*node, ops, inputs).front();
  }
  const Tensor& result = values[workload.outputs.front()].tensor;
  NEO_ASSERT(result.size() == kTable, "a function of one code has another number of results");
  std::memcpy(table, result.data(), kTable);
}

class CodesEltwiseStep final : public KernelStep {
 public:
  CodesEltwiseStep(const CodesEltwise& e, const Candidate& candidate, const OpRegistry& ops,
                   const CodesKernels& kernels, PackedStore& packed)
      : binary_(e.binary), kernels_(kernels) {
    x_ = argument_of(candidate, e.x);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    if (e.other) {
      other_ = argument_of(candidate, e.other);
      return;
    }
    table_ = packed.floats(kTable / 4, {},
                           [&](float* to) { fill_table(*candidate.workload, ops, reinterpret_cast<uint8_t*>(to)); });
  }

  Prepared prepare(std::span<const Arg> args) const override { return Prepared::of(DenseElements::of(args)); }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& elements = *reinterpret_cast<const DenseElements*>(prepared);
    elements.run(team, args[y_], 1, [&](int64_t first, int64_t count) { apply(args, first, count); });
  }

 private:
  void apply(std::byte* const* args, int64_t first, int64_t count) const {
    const auto codes = [&](int i) { return reinterpret_cast<const uint8_t*>(args[i]) + first; };
    auto* y = reinterpret_cast<uint8_t*>(args[y_]) + first;
    const uint8_t* x = codes(x_);
    if (other_ >= 0) {
      kernels_.binary(binary_, x, codes(other_), y, count);
      return;
    }
    kernels_.look_up(reinterpret_cast<const uint8_t*>(table_.as<float>()), x, y, count);
  }

  CodesBinary binary_;
  const CodesKernels& kernels_;
  int x_ = -1, other_ = -1, y_ = 0;
  Tensor table_;
};

// Elementwise functions between codes: as the linear operators and the function compute them, code by code.
class CodesEltwiseRoutine final : public RoutineOf<CodesEltwiseRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/eltwise"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    std::vector<Workload> found;
    CodesFunction function;
    if (function.start(root) && function.open_dependent()) {
      // The further back, the fewer tables; what others read on the way ends it.
      do {
        auto workload = function.workload(users, graph);
        if (workload) found.push_back(std::move(*workload));
      } while (function.open_last());
    }
    const Node* clamp = root.inputs[0]->producer;
    if (clamp && !read_clamp(*clamp)) clamp = nullptr;
    const Node* node = clamp ? clamp->inputs[0]->producer : root.inputs[0]->producer;
    const bool is_read = clamp && !read_only_by_one(clamp->inputs[0], users, graph);
    if (node && !is_read && read_only_by_one(root.inputs[0], users, graph)) {
      auto binary = match_binary(*node, clamp ? std::vector{&root, clamp} : std::vector{&root});
      found.insert(found.end(), std::make_move_iterator(binary.begin()), std::make_move_iterator(binary.end()));
    }
    return found;
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    return CodesEltwise::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CodesEltwise e = *CodesEltwise::read(workload, nullptr);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const auto at = [&](const Value* v) -> std::optional<Schema>& {
      return c.inputs[static_cast<size_t>(workload.input_index(v))];
    };
    at(e.x) = plain_schema(e.x->type);
    if (e.other) at(e.other) = plain_schema(e.other->type);
    c.outputs.push_back(plain_schema(e.y->type));
    if (e.x->dtype() == e.y->dtype()) c.in_place = workload.input_index(e.x);
    const auto count = static_cast<double>(element_count(e.y->shape().hint_dims()));
    constexpr double kLookUpCycles = 8, kBinaryCycles = 22;  // of a vector
    const double cycles = count / static_cast<double>(target.lanes()) * (e.other ? kBinaryCycles : kLookUpCycles);
    price(c, workload, {StepFamily::CodesEltwise, cycles, 1}, target);
    if (!e.other) c.cost.packed_bytes = kTable;
    return held_alike(std::move(c), e.y->shape(), target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return std::make_unique<CodesEltwiseStep>(*CodesEltwise::read(*candidate.workload, nullptr), candidate, ops,
                                              NEO_PICK_TIER(target.isa, codes_kernels)(), packed);
  }

 private:
  // `behind`: the root and perhaps a clamp before it.
  static std::vector<Workload> match_binary(const Node& node, std::vector<const Node*> behind) {
    if (!binary_op(node) || node.has_attr("clamp_min") || node.has_attr("clamp_max")) return {};
    const Node* a = linear_source(node.inputs[0]);
    const Node* b = linear_source(node.inputs[1]);
    if (!a || !b || a == b) return {};
    std::vector<const Node*> nodes{a, b, &node};
    nodes.insert(nodes.end(), behind.rbegin(), behind.rend());
    return {Workload::of(std::move(nodes))};
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_eltwise, CodesEltwiseRoutine)

}  // namespace neo
