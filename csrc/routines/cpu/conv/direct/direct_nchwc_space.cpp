#include "routines/cpu/conv/direct/direct_nchwc_space.h"

#include <algorithm>
#include <tuple>

#include "base/int_math.h"

namespace neo {
namespace {

// Whether there is a panel or a pass behind another, whose weights are fetched beside it.
bool prefetches(const DirectPlan& plan) {
  return plan.schedule.prefetched == 0 && plan.panels * plan.passes > 1;
}

// The part of a plan that the loops depend on: schedules that agree in it are one.
auto identity(const DirectPlan& plan) {
  const bool reorders = plan.schedule.order == 1 && plan.panel_chunk > 1 && !plan.flat && plan.chunk > 1;
  return std::tuple(plan.flat, plan.chunk, plan.panel_chunk, plan.pass, prefetches(plan), reorders);
}

// Whether every parameter that is set changes something.
bool is_own(const ConvShape& shape, const DirectSchedule& s, const TileKernels& kernels) {
  const DirectPlan whole = plan_direct(shape, s, kernels);
  const int64_t chunk = whole.flat && s.reg_n > 0 ? whole.chunk / s.reg_n : whole.chunk;
  if ((s.chunk > 0 && chunk != s.chunk) || (s.panels > 0 && whole.panel_chunk != s.panels)) return false;
  const auto plan = identity(whole);
  for (int64_t DirectSchedule::*parameter :
       {&DirectSchedule::chunk, &DirectSchedule::panels, &DirectSchedule::line, &DirectSchedule::ic,
        &DirectSchedule::order, &DirectSchedule::prefetched}) {
    if (s.*parameter == 0) continue;
    DirectSchedule without = s;
    without.*parameter = 0;
    if (identity(plan_direct(shape, without, kernels)) == plan) return false;
  }
  return true;
}

// Rows of register blocks that cut an output row, or the plane, differently.
std::vector<int64_t> row_counts(const ConvShape& shape, const TileKernels& kernels) {
  std::vector<int64_t> counts;
  const int64_t most = *std::max_element(kernels.max_rows + 1, kernels.max_rows + kTileVectors + 1);
  for (int64_t rows = most; rows >= 1; --rows) {
    const bool is_most = std::count(kernels.max_rows + 1, kernels.max_rows + kTileVectors + 1, rows) > 0;
    const bool is_fewest = rows == ceil_div(shape.ow, ceil_div(shape.ow, rows));
    if (is_most || is_fewest) counts.push_back(rows);
  }
  return counts;
}

}  // namespace

DirectSchedule direct_schedule(const Schedule& schedule, int64_t lanes) {
  DirectSchedule s;
  s.ic_bn = s.oc_bn = lanes;
  s.oc_vectors = schedule.at("oc_bn") / lanes;
  s.reg_n = schedule.at("reg_n");
  s.line = value_of(schedule, "line");
  s.chunk = value_of(schedule, "chunk");
  s.panels = value_of(schedule, "panels");
  s.ic = value_of(schedule, "ic");
  s.order = value_of(schedule, "order");
  s.prefetched = value_of(schedule, "prefetch");
  return s;
}

Space direct_space(const ConvShape& shape, const TileKernels& kernels) {
  constexpr int64_t kMaxParts = 16;
  const int64_t lanes = kernels.lanes;
  DirectSchedule widest;
  widest.ic_bn = widest.oc_bn = lanes;
  widest.oc_vectors = 1;
  const int64_t vectors = plan_direct(shape, widest, kernels).group_vectors;
  const int64_t pixels = shape.oh * shape.ow;
  std::vector<int64_t> widths, chunks = part_sizes(std::max<int64_t>(1, shape.oh), kMaxParts, 0);
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, kTileVectors); ++v) widths.push_back(v * lanes);
  std::vector<int64_t> passes = {0};
  for (int64_t channels = lanes; channels < shape.group_ic(); channels *= 2) passes.push_back(channels);
  const auto read = [&](std::span<const int64_t> v) {
    DirectSchedule s = widest;
    s.oc_vectors = v[1] / lanes;
    s.reg_n = v[2];
    s.line = v[3];
    s.chunk = v[4];
    s.panels = v[5];
    s.ic = v[6];
    s.order = v[7];
    s.prefetched = v[8];
    return s;
  };
  const auto allows = [&](std::span<const int64_t> v) {
    const DirectSchedule s = read(v);
    const int64_t most = kernels.max_rows[s.oc_vectors];
    if (s.reg_n > most || s.reg_n * 3 < most) return false;
    if (s.order == 1 && s.ic > 0) return false;
    const DirectPlan plan = plan_direct(shape, s, kernels);
    // Where tiles end with their row, it alone decides into how many equal ones it is cut.
    const int64_t line = plan.flat ? pixels : shape.ow;
    if (s.reg_n != most && ceil_div(line, s.reg_n) == ceil_div(line, most)) return false;
    return is_own(shape, s, kernels);
  };
  return Space({{"ic_bn", {lanes}},
                {"oc_bn", widths},
                {"reg_n", row_counts(shape, kernels)},
                {"line", {0, 1, 2}},
                {"chunk", std::move(chunks)},
                {"panels", part_sizes(vectors, 8, 0)},
                {"ic", passes},
                {"order", {0, 1}},
                {"prefetch", {0, 1}}},
               allows);
}

LoopNest direct_loops(const ConvProblem& problem, const DirectPlan& plan, const TileKernels& kernels) {
  const ConvShape& s = plan.shape;
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const int64_t line = plan.flat ? std::min(plan.chunk, s.oh * s.ow) : s.ow;
  const int64_t widest = ceil_div(plan.group_vectors, std::max<int64_t>(1, plan.panels));
  const int64_t most = plan.schedule.reg_n > 0 ? plan.schedule.reg_n : kernels.max_rows[widest];
  const double pixels = real(plan.flat ? plan.chunk : plan.chunk * s.ow);
  const double pass_channels = std::min(real(s.group_ic()), real(plan.pass * plan.schedule.ic_bn));
  LoopNest l;
  l.flops = 2 * real(direct_weight_size(plan)) * real(s.n * s.oh * s.ow);
  l.rows = real(line) / real(ceil_div(std::max<int64_t>(line, 1), most));
  l.vectors = real(plan.group_vectors) / real(std::max<int64_t>(1, plan.panels));
  l.full_rows = real(most);
  l.passes = real(plan.passes);
  l.reduction = pass_channels * real(s.taps());
  l.inner = real(std::min(plan.schedule.ic_bn, s.group_ic()));
  l.block_bytes = l.reduction * l.vectors * real(plan.lanes) * 4;
  l.pixel_bytes = l.rows * real(s.stride_w) * pass_channels * real(s.kh) * 4;
  const double rows_in = pixels / std::max(1.0, real(s.ow)) * real(s.stride_h) + real(s.kh - s.stride_h);
  l.task_inputs = std::min(real(s.ih), rows_in) * real(s.iw * s.group_ic()) * 4;
  l.task_weights = real(plan.panel_chunk) * l.vectors * real(plan.lanes * s.group_ic() * s.taps()) * 4;
  l.task_outputs = pixels * real(plan.panel_chunk) * l.vectors * real(plan.lanes) * 4;
  l.inputs = real(s.n * s.ic * s.ih * s.iw) * 4;
  l.weights = real(direct_weight_size(plan)) * 4;
  l.outputs = problem.traffic_bytes(plan.lanes, plan.lanes) - l.inputs;
  l.tasks = real(plan.tasks);
  l.input_reads = l.task_inputs * l.tasks * (plan.schedule.order == 1 ? 1 : real(plan.panel_chunk));
  l.weight_reads = l.task_weights * l.tasks * (plan.schedule.order == 1 ? real(plan.chunk) : 1);
  l.sweep_bytes = plan.schedule.order == 1 ? l.task_weights + l.pixel_bytes : l.block_bytes + l.pixel_bytes;
  l.order = real(plan.schedule.order) + (plan.flat ? 2 : 0);
  l.prefetched = prefetches(plan) ? 1 : 0;
  return l;
}

}  // namespace neo
