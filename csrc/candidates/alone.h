#pragma once

#include "routines/routine.h"

namespace neo {

// The same machine with one thread.
Target alone(const Target& target);

// What a candidate takes on one thread, whose time on the target's team is that of its cost: what estimates say of one
// beside the other.
double time_alone_us(const Candidate& candidate, const Target& target, const Target& alone, const OpRegistry& ops);

}  // namespace neo
