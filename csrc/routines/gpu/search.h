#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "routines/gpu/device_model.h"
#include "routines/space.h"

namespace neo::gpu {

// The point of a space whose estimate is the least, never one that the device cannot run; large spaces are searched by
// steps. `profile_of` is given the values of a point.
template <class ProfileOf>
std::optional<Schedule> search_by_estimate(const Space& space, const DeviceModel& model, const ProfileOf& profile_of) {
  constexpr int64_t kMostTried = 6000;
  constexpr double kGain = 0.99;  // what comes first is simpler
  const int64_t step = std::max<int64_t>(1, space.size() / kMostTried) | 1;
  std::optional<int64_t> best;
  double least = 0;
  for (int64_t point = 0; point < space.size(); point += step) {
    const Estimate e = estimate(profile_of(std::span<const int64_t>(space.values(point))), model);
    if (e.reject || (best && e.time_us >= least * kGain)) continue;
    best = point;
    least = e.time_us;
  }
  return best ? std::optional(space.at(*best)) : std::nullopt;
}

// What an estimate reads of a model, as a part of a key.
std::string key_of(const DeviceModel& model);

}  // namespace neo::gpu
