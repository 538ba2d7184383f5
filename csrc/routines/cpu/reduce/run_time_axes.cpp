#include "routines/cpu/reduce/run_time_axes.h"

#include <algorithm>

namespace neo {
namespace {

bool is_scan(const Node& node) {
  return node.op == "CumSum" || node.op == "CumProd";
}

// The neighbouring axes that a call works along, of which those of size 1 need not be listed; none where there are
// none, or an axis that is not the operand's, which the reference refuses.
std::optional<AxisRun> run_of_call(const Dims& dims, const std::vector<int64_t>& axes) {
  const auto rank = std::ssize(dims);
  std::vector<bool> listed(dims.size());
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    listed[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  std::optional<AxisRun> run;
  for (int axis = 0; axis < static_cast<int>(rank); ++axis) {
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

RunTimeAxesStep::RunTimeAxesStep(const Candidate& candidate, const OpRegistry& ops, Make make)
    : NodeStep(candidate, ops), reference_(ops.get(node().op).reference), make_(std::move(make)) {}

void RunTimeAxesStep::compute(ReferenceContext& ctx, Team& team) const {
  const Tensor& x = ctx.input(0);
  const std::vector<int64_t> axes = ctx.ints(1);
  const auto run = run_of_call(x.dims(), axes);
  if (!run || (is_scan(node()) && axes.size() != 1)) return reference_(ctx);
  Dims dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = x.dims()[static_cast<size_t>(axis)];
    const bool is_reduced =
        std::ranges::find(axes, axis) != axes.end() || std::ranges::find(axes, axis - x.rank()) != axes.end();
    if (is_scan(node()) || !is_reduced) {
      dims.push_back(size);
    } else if (node().int_attr("keepdims", 1) != 0) {
      dims.push_back(1);
    }
  }
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  if (y.size() > 0) made_.run({run->first, run->last}, x, y, team, [&] { return make_(*run); });
}

}  // namespace neo
