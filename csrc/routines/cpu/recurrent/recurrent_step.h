#pragma once

#include "exec/step.h"
#include "routines/cpu/recurrent/recurrent_plan.h"
#include "routines/routine.h"

namespace neo {

std::unique_ptr<Step> make_recurrent_step(const Candidate& candidate, const RecurrentMethod& method,
                                          const Target& target, PackedStore& packed);
// The step of a layer of float64.
std::unique_ptr<Step> make_recurrent64_step(const Candidate& candidate, const Target& target, PackedStore& packed);

}  // namespace neo
