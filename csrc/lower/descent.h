#pragma once

#include <vector>

#include "lower/cost_trees.h"

namespace neo {

// Better schedules for one workload than its routines chose by their estimates, as a cost model sees it: from the best
// candidate of every routine that may win, step by step to the best neighbour. `candidates` have the model's times
// already; what is returned has them too, and comes beside them.
std::vector<Candidate> descend(const std::vector<const Candidate*>& candidates, const CostTrees& trees,
                               const Target& target, const OpRegistry& ops);

}  // namespace neo
