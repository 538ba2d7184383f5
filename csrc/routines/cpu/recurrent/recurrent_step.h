#pragma once

#include "exec/step.h"
#include "routines/cpu/recurrent/recurrent_arguments.h"
#include "routines/cpu/recurrent/recurrent_plan.h"
#include "routines/routine.h"

namespace neo {

std::unique_ptr<Step> make_recurrent_step(const Candidate& candidate, const RecurrentMethod& method,
                                          const Target& target, PackedStore& packed);
// The same of a form whose tensors are these arguments of the step; `op` is named in messages.
std::unique_ptr<KernelStep> make_recurrent_layer(std::string op, const RecurrentForm& form,
                                                 const RecurrentArguments& arguments, const RecurrentMethod& method,
                                                 const Target& target, PackedStore& packed);
// The step of a layer of float64.
std::unique_ptr<Step> make_recurrent64_step(const Candidate& candidate, const Target& target, PackedStore& packed);

}  // namespace neo
