#include "routines/cpu/reduce/reduce_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/int_math.h"

namespace neo {

std::optional<ReduceKind> reduce_kind(const Node& node) {
  if (node.op == "GlobalLpPool") {
    const int64_t p = node.int_attr("p", 2);
    return p == 1 ? std::optional(ReduceKind::L1) : p == 2 ? std::optional(ReduceKind::L2) : std::nullopt;
  }
  static const std::map<std::string_view, ReduceKind> kinds = {
      {"ReduceSum", ReduceKind::Sum},
      {"ReduceMean", ReduceKind::Mean},
      {"ReduceMax", ReduceKind::Max},
      {"ReduceMin", ReduceKind::Min},
      {"ReduceL1", ReduceKind::L1},
      {"ReduceL2", ReduceKind::L2},
      {"ReduceSumSquare", ReduceKind::SumSquare},
      {"ReduceLogSum", ReduceKind::LogSum},
      {"ReduceLogSumExp", ReduceKind::LogSumExp},
      {"ReduceProd", ReduceKind::Prod},
      {"ArgMax", ReduceKind::ArgMax},
      {"ArgMin", ReduceKind::ArgMin},
      {"GlobalAveragePool", ReduceKind::Mean},
      {"GlobalMaxPool", ReduceKind::Max},
  };
  const auto it = kinds.find(node.op);
  return it == kinds.end() ? std::nullopt : std::optional(it->second);
}

ReduceShape shape_along(const Dims& dims, AxisRun run) {
  constexpr int64_t kElementsPerTask = 4096;
  ReduceShape s;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const int64_t d = dims[static_cast<size_t>(i)];
    (i < run.first ? s.outer : i <= run.last ? s.along : s.inner) *= d;
  }
  // Columns of one element are rows of one.
  if (s.along == 1) s.outer *= std::exchange(s.inner, 1);
  if (s.inner == 1) {
    s.rows_per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, s.along));
    s.tasks = ceil_div(s.outer, s.rows_per_task);
  } else {
    s.tasks = s.outer * ceil_div(s.inner, kReduceColumns);
  }
  return s;
}

StepLoad reduction_load(StepFamily family, const ReduceShape& shape, double cycles, const Target& target) {
  // Two elements of rows that are shorter than a vector count as one; a task of columns begins as slowly as many rows.
  constexpr double kTaskRuns = 15;
  const auto outer = static_cast<double>(shape.outer), along = static_cast<double>(shape.along);
  const int64_t lanes = target.lanes();
  const bool is_serial = shape.outer * shape.along * shape.inner <= kSerialReduced;
  StepLoad load{family};
  load.tasks = is_serial ? 1 : target.threads;
  const bool gives_less = family == StepFamily::Reduce || family == StepFamily::TypedReduce;
  if (shape.inner > 1) {
    load.cycles = cycles * outer * along * static_cast<double>(ceil_div(shape.inner, lanes));
    load.runs = (gives_less ? kTaskRuns : 1) * static_cast<double>(shape.tasks);
  } else if (gives_less && shape.along < lanes) {
    load.cycles = cycles * outer * std::max(1.0, along / 2);
  } else {
    load.cycles = cycles * outer * static_cast<double>(ceil_div(shape.along, lanes));
    load.runs = outer;
  }
  return load;
}

}  // namespace neo
