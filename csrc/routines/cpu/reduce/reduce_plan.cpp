#include "routines/cpu/reduce/reduce_plan.h"

#include <algorithm>
#include <map>

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
  if (s.inner == 1) {
    s.rows_per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, s.along));
    s.tasks = ceil_div(s.outer, s.rows_per_task);
  } else {
    s.tasks = s.outer * ceil_div(s.inner, kReduceColumns);
  }
  return s;
}

}  // namespace neo
