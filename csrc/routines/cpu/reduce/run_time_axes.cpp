#include "routines/cpu/reduce/run_time_axes.h"

#include <algorithm>
#include <numeric>

#include "routines/cpu/move/copy_step.h"

namespace neo {
namespace {

bool is_scan(const Node& node) {
  return node.op == "CumSum" || node.op == "CumProd";
}

// Which axes a call lists; none where it lists no axis, or one that is not the operand's, which the reference refuses.
std::optional<std::vector<bool>> listed_axes(int rank, const std::vector<int64_t>& axes) {
  std::vector<bool> listed(static_cast<size_t>(rank));
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    listed[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return axes.empty() ? std::nullopt : std::optional(std::move(listed));
}

// The neighbouring axes that are listed, of which those of size 1 need not be; none where they are no neighbours.
std::optional<AxisRun> listed_run(const Dims& dims, const std::vector<bool>& listed) {
  std::optional<AxisRun> run;
  for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (!listed[at] || (dims[at] == 1 && run)) continue;
    const bool replaces = !run || dims[static_cast<size_t>(run->first)] == 1;
    run = AxisRun{replaces ? axis : run->first, axis};
  }
  for (int axis = run ? run->first : 0; run && axis <= run->last; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (!listed[at] && dims[at] != 1) return std::nullopt;
  }
  return run;
}

}  // namespace

bool has_run_time_axes(const Node& node) {
  const bool is_listed = node.op.starts_with("Reduce") || is_scan(node);
  return is_listed && node.input(1) && !node.inputs[1]->constant;
}

AxisRun likely_run(const Node& node) {
  const auto run = reduced_run(node);
  const int last = node.inputs.front()->shape().rank() - 1;
  return run ? *run : AxisRun{last, last};
}

Candidate reduction_candidate(const Workload& workload) {
  const Node& node = workload.root();
  const bool is_host = has_run_time_axes(node);
  Candidate c = Candidate::reading(workload, {node.inputs.front(), is_host ? node.inputs[1] : nullptr});
  if (is_host) c.kind = Candidate::Kind::Host;
  return c;
}

RunTimeAxesStep::RunTimeAxesStep(const Candidate& candidate, const Target& target, const OpRegistry& ops, Make make)
    : NodeStep(candidate, ops), reference_(ops.get(node().op).reference), target_(target), make_(std::move(make)) {}

void RunTimeAxesStep::compute(ReferenceContext& ctx, Team& team) const {
  const Tensor& x = ctx.input(0);
  const std::vector<int64_t> axes = ctx.ints(1);
  const auto listed = listed_axes(x.rank(), axes);
  if (!listed || x.rank() > kCopyAxes || (is_scan(node()) && axes.size() != 1)) return reference_(ctx);
  Dims dims;
  for (size_t axis = 0; axis < listed->size(); ++axis) {
    if (is_scan(node()) || !(*listed)[axis]) {
      dims.push_back(x.dims()[axis]);
    } else if (node().int_attr("keepdims", 1) != 0) {
      dims.push_back(1);
    }
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  if (y.size() == 0) return;
  if (const auto run = listed_run(x.dims(), *listed)) return reduce(x, *run, y, team);
  std::vector<int64_t> order(listed->size());
  std::iota(order.begin(), order.end(), 0);
  const auto behind =
      std::ranges::stable_partition(order, [&](int64_t axis) { return !(*listed)[static_cast<size_t>(axis)]; });
  Dims turned_dims;
  for (const int64_t axis : order) turned_dims.push_back(x.dims()[static_cast<size_t>(axis)]);
  const Tensor turned(x.dtype(), turned_dims);
  turn_.run(order, x, turned, team, [&] { return std::make_unique<CopyStep>(make_transpose_pattern(order), target_); });
  const auto kept = static_cast<int>(behind.begin() - order.begin());
  reduce(turned, {kept, x.rank() - 1}, y, team);
}

void RunTimeAxesStep::reduce(const Tensor& x, AxisRun run, const Tensor& y, Team& team) const {
  made_.run({run.first, run.last}, x, y, team, [&] { return make_(run); });
}

}  // namespace neo
