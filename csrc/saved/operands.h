#pragma once

#include "exec/plan.h"
#include "saved/steps.h"

namespace neo {

// Checks that the slots of a step, which BlockFlow has taken, hold what the step was made for: place, dtype, layout
// and, where the routine may have looked at them, elements.
void check_operands(const Block& block, const StepItem& item, const SavedStep& made);

}  // namespace neo
