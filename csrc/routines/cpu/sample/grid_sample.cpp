#include "routines/cpu/sample/grid_sample.h"

#include <algorithm>

#include "base/check.h"
#include "ops/movement.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"

NEO_DECLARE_TIERS(void grid_sample_tasks(const GridSampleArgs&, int64_t, int64_t))

namespace neo {
namespace {

using GridSampleKernel = decltype(&scalar::grid_sample_tasks);

struct GridSampleCall {
  GridSampleArgs args;
  TaskSplit split;
};

class GridSampleStep final : public KernelStep {
 public:
  GridSampleStep(const Node& node, int x, int grid, GridSampleKernel kernel) : x_(x), grid_(grid), kernel_(kernel) {
    const std::string padding = node.string_attr("padding_mode", "zeros");
    shape_.nearest = node.string_attr("mode", "linear") == "nearest";
    shape_.cubic = node.string_attr("mode", "linear") == "cubic";
    shape_.align_corners = node.int_attr("align_corners", 0) != 0;
    shape_.padding = padding == "zeros"    ? GridPadding::Zeros
                     : padding == "border" ? GridPadding::Border
                                           : GridPadding::Reflection;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "samples are taken of whole planes");
    const Dims& x = args[static_cast<size_t>(x_)].dims;
    const Dims& y = args.back().dims;
    GridSampleCall call;
    GridSampleArgs& a = call.args = shape_;
    a.images = y[0];
    a.channels = y[1];
    a.points = count_between(y, 2, static_cast<int>(y.size()));
    a.axes = static_cast<int>(x.size()) - 2;
    std::copy(x.begin() + 2, x.end(), a.sizes);
    const int64_t elements = element_count(y), pixels = count_between(x, 2, static_cast<int>(x.size()));
    NEO_CHECK(elements == 0 || (pixels > 0 && pixels <= INT32_MAX), Shape, "GridSample",
              "a plane must hold pixels, fewer than 2^31. Got ", to_string(x));
    const int64_t tasks =
        elements == 0 ? 0 : a.images * ceil_div(a.channels, kGridChannels) * ceil_div(a.points, kGridPoints);
    call.split = TaskSplit::of(tasks, elements * 16);
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const GridSampleCall*>(prepared);
    GridSampleArgs a = call.args;
    a.x = reinterpret_cast<const float*>(args[x_]);
    a.grid = reinterpret_cast<const float*>(args[grid_]);
    a.y = reinterpret_cast<float*>(args[std::max(x_, grid_) + 1]);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) { kernel_(a, begin, end); });
  }

 private:
  GridSampleArgs shape_;
  int x_;
  int grid_;
  GridSampleKernel kernel_;
};

// GridSample of lines, planes and volumes over the plain layout.
class GridSampleRoutine final : public RoutineOf<GridSampleRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/grid_sample"; }
  std::vector<std::string_view> roots() const override { return {"GridSample"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor() || !v->shape().has_rank() || v->shape().rank() < 3 ||
          v->shape().rank() > 2 + kMaxGridAxes || v->dtype() != DType::Float32) {
        return "an input is no float32 tensor of rank 3, 4 or 5";
      }
    }
    const bool cubic = workload.root().string_attr("mode", "linear") == "cubic";
    if (cubic && workload.inputs.front()->shape().rank() > 4) return "the interpolation is cubic in a volume";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    Candidate c = Candidate::plain(workload);
    price(c, workload,
          {StepFamily::GridSample, static_cast<double>(workload.work(ops).flops.hint()) / target.lanes(), 1}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    return std::make_unique<GridSampleStep>(node, argument_of(candidate, node.inputs[0]),
                                            argument_of(candidate, node.inputs[1]),
                                            NEO_PICK_TIER(target.isa, grid_sample_tasks));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(grid_sample, GridSampleRoutine)

}  // namespace neo
