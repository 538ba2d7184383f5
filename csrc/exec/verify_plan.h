#pragma once

#include "exec/plan.h"

namespace neo {

// The specification of a Plan, every rule that the interpreter relies on without a look: slots are written before they
// are read (BlockFlow), sizes are known where they are needed, items wait for what they read, and memory is shared only
// by buffers that are never needed at once. Throws an Internal error that names the rule. Runs after lowering under
// NEO_VERIFY=1.
void verify_plan(const Plan& plan);

}  // namespace neo
