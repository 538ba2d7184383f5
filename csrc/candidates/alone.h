#pragma once

#include "routines/routine.h"

namespace neo {

// The same machine with one thread.
Target alone(const Target& target);

// The time of a candidate on one thread, from its cost's time on the target's team and the ratio of the estimates of
// both.
double time_alone_us(const Candidate& candidate, const Target& target, const Target& alone, const OpRegistry& ops);

}  // namespace neo
