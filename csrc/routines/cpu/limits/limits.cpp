#include "routines/limits.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "base/arena.h"
#include "base/topology.h"
#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(float limit_multiply_add(const float* starts, int64_t rounds); int64_t limit_lanes();
                  float limit_read(const float* from, int64_t count))

namespace neo {
namespace {

constexpr int kMultiplyTimes = 20;
constexpr int kReadTimes = 8;
constexpr int64_t kMultiplyRounds = 1 << 18;
constexpr float kStarts[12] = {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1, 1.1f, 1.2f};
constexpr int64_t kLeastBytes = 64 << 20;

// Of all members together: four times what up to four last-level caches hold.
int64_t bytes_to_read(int members) {
  return std::max(kLeastBytes, 4 * host_topology().l3_bytes * std::min(members, 4));
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
void share_out(Team& team, F&& share) {
  team.parallel_for(team.size(), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) share(static_cast<size_t>(i));
  });
}

}  // namespace

Limits measure_limits(Isa isa, Team& team) {
  const auto multiply_add = NEO_PICK_TIER(isa, limit_multiply_add);
  const auto read = NEO_PICK_TIER(isa, limit_read);
  const auto lanes = static_cast<double>(NEO_PICK_TIER(isa, limit_lanes)());
  const int members = team.size();
  std::vector<float> sums(static_cast<size_t>(members));  // read by nobody; keeps the work from being left out

  Limits limits;
  // Each share counts the processor's time, so that other programs do not lower the peak.
  double multiplying = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(sums.size());
  for (int round = 0; round < kMultiplyTimes; ++round) {
    share_out(team, [&](size_t i) {
      const double start = processor_seconds();
      sums[i] = multiply_add(kStarts, kMultiplyRounds);
      seconds[i] = processor_seconds() - start;
    });
    multiplying = std::min(multiplying, *std::max_element(seconds.begin(), seconds.end()));
  }
  limits.gflops = 2e-9 * 12 * lanes * static_cast<double>(kMultiplyRounds) * members / multiplying;

  const int64_t share = bytes_to_read(members) / static_cast<int64_t>(sizeof(float)) / members / 256 * 256;
  Arena arena;
  arena.reserve(share * members * static_cast<int64_t>(sizeof(float)));
  auto* floats = reinterpret_cast<float*>(arena.data());
  std::fill_n(floats, share * members, 1.0f);
  double reading = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kReadTimes; ++round) {
    const double start = wall_seconds();
    share_out(team, [&](size_t i) { sums[i] = read(floats + static_cast<int64_t>(i) * share, share); });
    reading = std::min(reading, wall_seconds() - start);
  }
  limits.gbps = 4e-9 * static_cast<double>(share) * members / reading;
  return limits;
}

}  // namespace neo
