#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/codes_elements.h"
#include "routines/cpu/int8/codes_kernels.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/code_function.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

const Node* linear_source(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  return node && node->op == "DequantizeLinear" && !value->constant ? node : nullptr;
}

std::optional<CodesBinary::Op> binary_op(const Node& node) {
  if (node.op == "Add") return CodesBinary::Op::Add;
  if (node.op == "Sub") return CodesBinary::Op::Sub;
  if (node.op == "Mul") return CodesBinary::Op::Mul;
  return std::nullopt;
}

// Whether a value has one element for each channel of each image of an image's shape.
bool is_by_image_channel(const Shape& shape, const Shape& image) {
  if (shape.rank() != image.rank() || shape.rank() < 3 || !(shape[0] == image[0]) || !(shape[1] == image[1]))
    return false;
  for (int i = 2; i < shape.rank(); ++i) {
    if (!shape[i].is(1)) return false;
  }
  return true;
}

// A function of codes: of one value, whose 256 results are a table, or Add, Sub or Mul of two, clamped.
struct CodesEltwise {
  const Value* x = nullptr;
  const Value* other = nullptr;  // of two
  const Value* y = nullptr;
  bool repeats = false;  // `other` has one code for each channel of each image
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
    if (sources.size() == 1) {
      e.x = sources[0]->inputs[0];
      return is_code_function(workload.nodes, e.x) ? std::optional(e) : reject("an operand is broadcast");
    }
    if (workload.nodes.size() < 4) return reject("the function of two values is not a sum or product");
    const Node& node = *workload.nodes[2];
    const auto op = binary_op(node);
    if (!op || workload.nodes.size() > 5) return reject("the function of two values is not a sum or product");
    // The operands in the node's order, but for one that is broadcast, which is the second.
    const Node* first = linear_source(node.inputs[0]);
    const Node* second = linear_source(node.inputs[1]);
    if (!first || !second) return reject("an operand is not codes");
    const Shape& shape = e.y->shape();
    if (*op != CodesBinary::Op::Sub && !(first->outputs[0]->shape() == shape)) std::swap(first, second);
    e.x = first->inputs[0];
    e.other = second->inputs[0];
    e.repeats = !(e.other->shape() == shape);
    if (!(e.x->shape() == shape) || (e.repeats && !is_by_image_channel(e.other->shape(), shape)))
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

class CodesEltwiseStep final : public KernelStep {
 public:
  CodesEltwiseStep(const CodesEltwise& e, const Candidate& candidate, const OpRegistry& ops, const Target& target,
                   PackedStore& packed)
      : binary_(e.binary), repeats_(e.repeats), kernels_(NEO_PICK_TIER(target.isa, codes_kernels)()) {
    x_ = argument_of(candidate, e.x);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    if (e.other) {
      other_ = argument_of(candidate, e.other);
      return;
    }
    table_.emplace(CodeFunction{candidate.workload->nodes, e.x}, target, ops, packed);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    if (!repeats_) return Prepared::of(DenseElements::of(args));
    return Prepared::of(ChannelRows::of(args.back()));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    if (repeats_) {
      run_rows(*reinterpret_cast<const ChannelRows*>(prepared), args, team);
      return;
    }
    const auto& elements = *reinterpret_cast<const DenseElements*>(prepared);
    elements.run(team, args[y_], 1, [&](int64_t first, int64_t count) { apply(args, first, count); });
  }

 private:
  void apply(std::byte* const* args, int64_t first, int64_t count) const {
    const auto codes = [&](int i) { return reinterpret_cast<const uint8_t*>(args[i]) + first; };
    auto* y = reinterpret_cast<uint8_t*>(args[y_]) + first;
    const uint8_t* x = codes(x_);
    if (other_ >= 0) {
      kernels_.binary(binary_, x, codes(other_), false, y, count);
      return;
    }
    table_->apply(x, y, count);
  }

  // Pixels of one channel or of a block of them.
  struct ChannelRows {
    int64_t rows = 0, per_image = 0, lanes = 1, pixels = 1, valid = 1;  // the latter: lanes of an image's last row

    static ChannelRows of(const Arg& y) {
      NEO_ASSERT(y.is_dense(), "an operand of codes is not dense");
      ChannelRows r;
      r.lanes = y.layout.is_blocked() ? y.layout.block_of(1) : 1;
      r.per_image = ceil_div(y.dims[1], r.lanes);
      r.valid = y.dims[1] - (r.per_image - 1) * r.lanes;
      r.rows = y.dims[0] * r.per_image;
      for (size_t i = 2; i < y.dims.size(); ++i) r.pixels *= y.dims[i];
      return r;
    }
  };

  void run_rows(const ChannelRows& r, std::byte* const* args, Team& team) const {
    const auto codes = [&](int i) { return reinterpret_cast<uint8_t*>(args[i]); };
    constexpr int64_t kOfElement = 2;  // operations
    const TaskSplit split = TaskSplit::of(r.rows, kOfElement * r.rows * r.pixels * r.lanes);
    run_tasks(team, split, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * r.pixels * r.lanes;
        const uint8_t* other = codes(other_) + row * r.lanes;
        uint8_t same[kMaxLanes];
        if (r.lanes == 1) {
          std::fill_n(same, kMaxLanes, *other);
          other = same;
        }
        uint8_t* y = codes(y_) + at;
        kernels_.binary(binary_, codes(x_) + at, other, true, y, r.pixels * r.lanes);
        if ((row + 1) % r.per_image == 0 && r.valid < r.lanes) kernels_.clear_lanes(y, r.pixels, r.valid);
      }
    });
  }

  static constexpr int64_t kMaxLanes = 16;
  CodesBinary binary_;
  bool repeats_;
  const CodesKernels& kernels_;
  int x_ = -1, other_ = -1, y_ = 0;
  std::optional<CodeTable> table_;
};

// Elementwise functions between codes: as the linear operators and the function compute them, code by code.
class CodesEltwiseRoutine final : public RoutineOf<CodesEltwiseRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/eltwise"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    std::vector<Workload> found;
    // The further back, the fewer tables.
    for (CodeFunction& function : match_code_functions(root, users, graph))
      found.push_back(Workload::of(std::move(function.nodes)));
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
    constexpr double kLookUpCycles = 2, kBinaryCycles = 8, kRepeatCycles = 7;  // of a vector
    const double of_vector = !e.other ? kLookUpCycles : e.repeats ? kRepeatCycles : kBinaryCycles;
    const double cycles = count / static_cast<double>(target.lanes()) * of_vector;
    price(c, workload, {StepFamily::CodesEltwise, cycles, 1}, target);
    if (!e.other) c.cost.packed_bytes = kCodeTable;
    return held_alike(std::move(c), e.y->shape(), target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return std::make_unique<CodesEltwiseStep>(*CodesEltwise::read(*candidate.workload, nullptr), candidate, ops, target,
                                              packed);
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
