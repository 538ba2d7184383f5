#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "routines/routine.h"

namespace neo::gpu {

// The value of a parameter into `to`, which stays as it is where the schedule leaves the parameter out.
inline void read_value(const Schedule& schedule, std::string_view name, int& to) {
  if (const auto it = schedule.find(name); it != schedule.end()) to = static_cast<int>(it->second);
}

// A parameter of a space and the member of a schedule that holds it.
template <class S>
struct Parameter {
  std::string_view name;
  int S::*member;
};

template <class S, size_t kCount>
S read_schedule(const Parameter<S> (&parameters)[kCount], const Schedule& schedule) {
  S s;
  for (const Parameter<S>& p : parameters) read_value(schedule, p.name, s.*p.member);
  return s;
}

// From a point of a space that has these parameters in this order.
template <class S, size_t kCount>
S read_point(const Parameter<S> (&parameters)[kCount], std::span<const int64_t> values) {
  S s;
  for (size_t i = 0; i < kCount; ++i) s.*parameters[i].member = static_cast<int>(values[i]);
  return s;
}

}  // namespace neo::gpu
