#pragma once

#include <string_view>

#include "routines/routine.h"

namespace neo::gpu {

// The value of a parameter into `to`, which stays as it is where the schedule leaves the parameter out.
inline void read_value(const Schedule& schedule, std::string_view name, int& to) {
  if (const auto it = schedule.find(name); it != schedule.end()) to = static_cast<int>(it->second);
}

}  // namespace neo::gpu
