#include <algorithm>
#include <cmath>

#include "ops/movement.h"
#include "routines/cpu/made_step.h"
#include "routines/cpu/move/copy_step.h"
#include "routines/cpu/move/tile.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

// Rows that copy_rows() moves without a call.
bool is_short_row(double bytes) {
  return bytes == 2 || (bytes >= 4 && bytes <= 64);
}

// Planes that copy_plane() transposes by vectors: fewer rows or columns of narrow elements do not fill words.
bool is_transposed(int64_t width, double columns, double rows) {
  constexpr double kFewNarrow = 16;
  return width == 4 || (width < 4 && columns >= kFewNarrow && rows >= kFewNarrow);
}

// The load of a copy's parts: whole rows, of which short ones are moves and not calls, vectors of transposed planes,
// elements one by one. A plane begins anew.
StepLoad copy_load(const Candidate& c, const Workload& workload, const Target& target) {
  constexpr double kElementCycles = 1.3, kRepeatedCycles = 0.9, kTransposedCycles = 2, kInterleavedCycles = 0.3;
  constexpr double kPlaneRuns = 3, kShortRuns = 0.17, kPlaneRows = 64;
  if (workload.root().op == "Tile") {
    const Dims from = workload.root().inputs.front()->shape().hint_dims();
    const Dims to = workload.outputs.front()->shape().hint_dims();
    const double members = element_count(to) > kSerialCopied ? target.threads : 1;
    return {StepFamily::Copy, 0, static_cast<double>(tiled_rows(from, to)), members};
  }
  std::vector<Arg> args;
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    if (c.inputs[i]) args.push_back(hint_arg(workload.inputs[i]->type, *c.inputs[i]));
  }
  for (size_t i = 0; i < workload.outputs.size(); ++i)
    args.push_back(hint_arg(workload.outputs[i]->type, c.outputs[i]));
  const CopyPlan plan = make_copy_pattern(workload)->planned(args);
  const double lanes = target.lanes();
  const auto filled = static_cast<double>(plan.fill_count * plan.width);
  StepLoad load{StepFamily::Copy, 0, 1, 1, 0, filled};
  for (int64_t i = 0; i < plan.parts; ++i) {
    const CopyPart& p = plan.part[i];
    double elements = 1;
    for (int axis = 0; axis < p.axes; ++axis) elements *= static_cast<double>(p.size[axis]);
    if (elements > static_cast<double>(kSerialCopied)) load.tasks = target.threads;
    load.reads += elements * static_cast<double>(plan.width);
    load.writes += elements * static_cast<double>(plan.width);
    const int inner = p.axes - 1;
    const double element_cycles = p.axes > 0 && p.from[inner] == 0 ? kRepeatedCycles : kElementCycles;
    const bool in_rows = p.axes == 0 || (p.from[inner] == 1 && p.to[inner] == 1);
    const double row = p.axes > 0 ? static_cast<double>(p.size[inner]) : 1;
    if (p.axes < 2) {
      load.cycles += in_rows ? 0 : element_cycles * elements;
      load.runs += kPlaneRuns;
      continue;
    }
    const auto rows = static_cast<double>(p.size[inner - 1]);
    const double planes = elements / (row * rows) * std::ceil(rows / kPlaneRows);
    load.runs += kPlaneRuns * planes;
    if (in_rows) {
      load.runs += elements / row * (is_short_row(row * static_cast<double>(plan.width)) ? kShortRuns : 1);
    } else if (plan.width == 1 && row == 2 && p.from[inner - 1] == 1 && p.to[inner] == 1 && p.to[inner - 1] == 2) {
      load.cycles += kInterleavedCycles * elements;
    } else if (is_transposed(plan.width, row, rows) && p.from[inner - 1] == 1 && p.to[inner] == 1) {
      load.cycles += kTransposedCycles * elements / row * std::ceil(row / lanes) * std::max(1.0, lanes / rows);
    } else {
      load.cycles += element_cycles * elements;
    }
  }
  return load;
}

// Positions of one channel, at the hints.
int64_t pixels(const Shape& shape) {
  const Dims dims = shape.hint_dims();
  return count_between(dims, 2, static_cast<int>(dims.size()));
}
constexpr int64_t kBlockedPixels = 4;

// An Expand or Tile whose sizes only a call tells.
class RepeatHostStep final : public NodeStep {
 public:
  RepeatHostStep(const Candidate& candidate, const OpRegistry& ops, const Target& target)
      : NodeStep(candidate, ops), reference_(ops.get(node().op).reference), target_(target) {}

 private:
  void compute(ReferenceContext& ctx, Team& team) const override {
    const Tensor& x = ctx.input(0);
    const auto sizes = result_sizes(x.dims(), ctx.ints(1));
    if (!sizes) return reference_(ctx);
    const Tensor& y = ctx.output(0, x.dtype(), *sizes);
    if (y.size() == 0) return;
    made_.run({}, x, y, team, [&]() -> std::unique_ptr<KernelStep> {
      if (node().op == "Tile") return std::make_unique<TileStep>();
      return std::make_unique<CopyStep>(make_copy_pattern(Workload::of(node())), target_);
    });
  }

  // None where the reference has to say what is wrong.
  std::optional<Dims> result_sizes(Dims from, Dims numbers) const {
    if (std::ranges::any_of(numbers, [](int64_t n) { return n < 0; })) return std::nullopt;
    const bool is_tile = node().op == "Tile";
    if (is_tile && numbers.size() != from.size()) return std::nullopt;
    const size_t rank = std::max(from.size(), numbers.size());
    from.insert(from.begin(), rank - from.size(), 1);
    numbers.insert(numbers.begin(), rank - numbers.size(), 1);
    for (size_t i = 0; i < rank; ++i) {
      if (is_tile) {
        if (__builtin_mul_overflow(from[i], numbers[i], &numbers[i])) return std::nullopt;
      } else if (numbers[i] == 1) {
        numbers[i] = from[i];
      } else if (from[i] != numbers[i] && from[i] != 1) {
        return std::nullopt;
      }
    }
    return numbers;
  }

  NodeFunction reference_;
  Target target_;
  MadeStep made_;
};

// Movement by strided copies, any dtype of a fixed size.
class CopyRoutine final : public RoutineOf<CopyRoutine> {
 public:
  std::string_view name() const override { return "cpu/copy"; }
  std::vector<std::string_view> roots() const override {
    return {"Transpose", "Slice",        "Split",        "Concat",          "Expand",
            "Tile",      "DepthToSpace", "SpaceToDepth", "ConstantOfShape", "Identity"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    return reject_copy(workload);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    if (repeats_at_run_time(node)) {
      Candidate host = Candidate::plain(workload);
      host.kind = Candidate::Kind::Host;
      const auto elements = static_cast<double>(workload.outputs.front()->shape().element_count().hint());
      price(host, workload, {StepFamily::Copy, elements}, target);
      return {std::move(host)};
    }
    Candidate c;
    for (const Value* v : workload.inputs) {
      const bool read = node.op == "Concat" || (v == node.inputs.front() && node.op != "ConstantOfShape");
      c.inputs.push_back(read ? std::optional(plain_schema(v->type)) : std::nullopt);
    }
    for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
    std::vector<Candidate> all{c};
    // Channels that become the last axis are read from their blocks, a vector at a time, where an image has some
    // pixels.
    if (node.op == "Transpose" && node.inputs[0]->dtype() == DType::Float32 && node.inputs[0]->shape().rank() >= 3 &&
        transpose_axes(node).back() == 1 && pixels(node.inputs[0]->shape()) >= kBlockedPixels) {
      c.inputs[0]->layout = Layout::channel_blocked(node.inputs[0]->shape().rank(), target.lanes());
      all.push_back(std::move(c));
    }
    for (Candidate& each : all) price(each, workload, copy_load(each, workload, target), target);
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    if (candidate.kind == Candidate::Kind::Host) return std::make_unique<RepeatHostStep>(candidate, ops, target);
    if (candidate.workload->root().op == "Tile") return std::make_unique<TileStep>();
    return std::make_unique<CopyStep>(make_copy_pattern(*candidate.workload), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(copy, CopyRoutine)

}  // namespace neo
