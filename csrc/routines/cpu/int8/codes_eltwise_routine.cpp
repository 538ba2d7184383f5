#include <algorithm>

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
#include "routines/patterns/codes_eltwise.h"

namespace neo {
namespace {

CodesBinary binary_of(const CodesEltwise& e) {
  CodesBinary f;
  f.op = static_cast<CodesBinary::Op>(e.op);
  f.a_is_signed = e.x_grid.is_signed();
  f.a_zero = e.x_grid.zero;
  f.a_scale = e.x_grid.scale;
  f.b_is_signed = e.other_grid.is_signed();
  f.b_zero = e.other_grid.zero;
  f.b_scale = e.other_grid.scale;
  f.y_is_signed = e.y_grid.is_signed();
  f.y_zero = e.y_grid.zero;
  f.y_scale = e.y_grid.scale;
  f.lo = static_cast<float>(e.lo - f.y_zero);
  f.hi = static_cast<float>(e.hi - f.y_zero);
  return f;
}

class CodesEltwiseStep final : public KernelStep {
 public:
  CodesEltwiseStep(const CodesEltwise& e, const Candidate& candidate, const OpRegistry& ops, const Target& target,
                   PackedStore& packed)
      : binary_(binary_of(e)), repeats_(e.repeats), kernels_(NEO_PICK_TIER(target.isa, codes_kernels)()) {
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
    return match_codes_eltwise(root, users, graph);
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
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_eltwise, CodesEltwiseRoutine)

}  // namespace neo
