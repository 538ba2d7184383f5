#pragma once

#include "exec/plan.h"

namespace neo {

// The time of a call on some executors, and a bound that no schedule stays below: the longest way through each region,
// and its work shared out evenly.
struct Makespan {
  double time_us = 0;
  double bound_us = 0;
};

// The time of a step on a team, in microseconds: between its estimates on one thread and on `estimated_at` threads, the
// part that threads share falls as there are more of them.
double time_on(const Item& item, int threads, int estimated_at);

// Schedules the items of a plan in virtual time as runtime/scheduler.h does, by what they are expected to take.
Makespan simulate(const Plan& plan, const Configuration& configuration, int estimated_at);

}  // namespace neo
