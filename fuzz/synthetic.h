#pragma once

#include <optional>
#include <vector>

#include "exec/plan.h"
#include "fuzz/random.h"

namespace neo::fuzz {

// Inputs of a plan's types: symbols at their hints or near their bounds, small numbers, short words. None where
// a type says of no kind of value. May throw what Tensor throws.
std::vector<HostValue> synthetic_inputs(const Plan& plan, Random& random);

}  // namespace neo::fuzz
