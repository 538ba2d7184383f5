#pragma once

#include <span>

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

// Which of the items that wait for an executor starts first, as in runtime/scheduler.h.
enum class ReadyOrder : uint8_t { CriticalPathFirst, FirstInFirstOut };

// Schedules the items of a plan in virtual time as runtime/scheduler.h does, by what they are expected to take.
Makespan simulate(const Plan& plan, const Configuration& configuration, int estimated_at);
// The same by the times of the outermost block's items, in the order of its regions.
Makespan simulate(const Plan& plan, int executors, std::span<const double> times_us, ReadyOrder order);

}  // namespace neo
