#pragma once

#include <vector>

#include "candidates/problem.h"
#include "exec/plan.h"
#include "exec/team.h"
#include "lower/source_constants.h"
#include "ops/op.h"
#include "routines/cost/target.h"
#include "routines/routine.h"

namespace neo {

// Makes the steps of a block's candidates, which pack their constants, on all threads of the team. Result i belongs to
// candidate i. Steps of one routine that make the same bytes of the same constants share them. `release` hears of
// every step; it may be null.
std::vector<StepItem> pack_steps(const std::vector<const Candidate*>& candidates, const Target& target,
                                 const OpRegistry& ops, Team& team, ConstantRelease* release);

// For each choice of each variable, end to end, a number that is equal where candidates may share what they pack; -1
// where nothing is packed.
std::vector<int64_t> packed_forms(const SelectionProblem& problem);

}  // namespace neo
