#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routines/gpu/device_model.h"
#include "routines/space.h"

namespace neo::gpu {

// Calls visit with the points of a space; large spaces are taken by steps.
template <class Visit>
void each_point(const Space& space, const Visit& visit) {
  constexpr int64_t kMaxTried = 6000;
  const int64_t step = std::max<int64_t>(1, space.size() / kMaxTried) | 1;
  for (int64_t point = 0; point < space.size(); point += step) visit(point);
}

// The point of the least estimate, never one that the device cannot run.
class LeastEstimate {
 public:
  void add(int64_t point, const Estimate& e) {
    constexpr double kGain = 0.99;  // what comes first is simpler
    if (e.reject || (point_ && e.time_us >= time_us_ * kGain)) return;
    point_ = point;
    time_us_ = e.time_us;
  }
  std::optional<int64_t> point() const { return point_; }

 private:
  std::optional<int64_t> point_;
  double time_us_ = 0;
};

// The schedule of the least estimate; none where the device can run none. `profile_of` is given the values of a point.
template <class ProfileOf>
std::vector<Schedule> search_by_estimate(const Space& space, const DeviceModel& model, const ProfileOf& profile_of) {
  LeastEstimate least;
  each_point(space, [&](int64_t point) {
    least.add(point, estimate(profile_of(std::span<const int64_t>(space.values(point))), model));
  });
  return least.point() ? std::vector<Schedule>{space.at(*least.point())} : std::vector<Schedule>();
}

// The figures of a model that an estimate reads, as a part of a key.
std::string key_of(const DeviceModel& model);

}  // namespace neo::gpu
