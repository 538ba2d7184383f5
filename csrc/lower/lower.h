#pragma once

#include <memory>
#include <vector>

#include "candidates/problem.h"
#include "exec/plan.h"
#include "exec/team.h"
#include "lower/source_constants.h"

namespace neo {

// Selection to Plan, on the threads of the team: emits each chosen candidate once, each conversion once, packs
// constants, cuts blocks into regions and says which buffers may share memory. `choices` has one entry per variable of
// the problem, which must be of this graph. `denormals` is how the plan's calls treat denormal numbers. Constants that
// are released become absent in the graph.
std::shared_ptr<const Plan> lower(const Graph& graph, const SelectionProblem& problem, const std::vector<int>& choices,
                                  double total_us, const OpRegistry& ops, const Target& target, Team& team,
                                  Denormals denormals = Denormals::Flush,
                                  SourceConstants constants = SourceConstants::Keep);

}  // namespace neo
