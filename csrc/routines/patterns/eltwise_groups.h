#pragma once

#include <vector>

#include "routines/routine.h"

namespace neo {

// The workloads that end in `root` and may be one elementwise program: the node alone, and the largest groups that
// compile_eltwise() takes.
std::vector<Workload> match_eltwise(const Node& root, const Graph::Users& users, const Graph& graph);

}  // namespace neo
