#include "routines/peak_rates.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "base/arena.h"
#include "base/topology.h"
#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(float peak_multiply_add(const float* starts, int64_t rounds); int64_t peak_lanes();
                  float peak_read(const float* from, int64_t count))

namespace neo {
namespace {

constexpr int kMultiplyTimes = 20;
constexpr int kReadTimes = 8;
constexpr int64_t kMultiplyRounds = 1 << 18;
constexpr float kStarts[12] = {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1, 1.1f, 1.2f};
constexpr int64_t kMinBytes = 64 << 20;

// Bytes for all members together: four times what up to four last-level caches hold.
int64_t bytes_to_read(int members) {
  return std::max(kMinBytes, 4 * host_topology().l3_bytes * std::min(members, 4));
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

PeakRates measure_peak_rates(Isa isa, Team& team) {
  const auto multiply_add = NEO_PICK_TIER(isa, peak_multiply_add);
  const auto read = NEO_PICK_TIER(isa, peak_read);
  const auto lanes = static_cast<double>(NEO_PICK_TIER(isa, peak_lanes)());
  const int members = team.size();
  std::vector<float> sums(static_cast<size_t>(members));  // read by nobody; keeps the work from being left out

  PeakRates rates;
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
  rates.gflops = 2e-9 * 12 * lanes * static_cast<double>(kMultiplyRounds) * members / multiplying;

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
  rates.gbps = 4e-9 * static_cast<double>(share) * members / reading;
  return rates;
}

namespace {

// Seconds of the calling thread's processor, the least of some rounds.
template <class F>
double least_seconds(int rounds, F&& f) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    f();
    least = std::min(least, processor_seconds() - start);
  }
  return least;
}

// A chain of multiplications and additions of integers takes a core four cycles a link.
double measure_ghz() {
  constexpr int kRounds = 10;
  constexpr int64_t kLinks = 1 << 20, kLinkCycles = 4;
  volatile uint64_t start = 1;
  const double seconds = least_seconds(kRounds, [&] {
    uint64_t x = start;
    for (int64_t i = 0; i < kLinks; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    start = x;
  });
  return 1e-9 * static_cast<double>(kLinks * kLinkCycles) / seconds;
}

}  // namespace

Machine measure_machine(Isa isa, Team& team) {
  constexpr int kRounds = 20;
  constexpr int64_t kReadBytes = 32 << 20, kStep = 1 << 12;
  const auto read = NEO_PICK_TIER(isa, peak_read);
  SerialTeam alone;
  const PeakRates one = measure_peak_rates(isa, alone), all = measure_peak_rates(isa, team);
  Machine machine = Machine::of(isa, true);
  machine.ghz = measure_ghz();
  machine.gflops = one.gflops;
  machine.memory_gbps = one.gbps;
  machine.shared_memory_gbps = all.gbps;
  // A buffer of half a level's size lies in that level, and one of the last level's in a part of it, which is shared.
  int64_t below = 0;
  for (CacheFigures& level : machine.cache) {
    const int64_t bytes =
        std::max(std::min(level.bytes / 2, below > 0 ? 6 * below : level.bytes), kStep) / kStep * kStep;
    below = level.bytes;
    Arena arena;
    arena.reserve(bytes);
    auto* floats = reinterpret_cast<float*>(arena.data());
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float)), times = std::max<int64_t>(1, kReadBytes / bytes);
    std::fill_n(floats, count, 1.0f);
    volatile float sum = 0;
    const double seconds = least_seconds(kRounds, [&] {
      for (int64_t i = 0; i < times; ++i) sum = read(floats, count);
    });
    level.gbps = 1e-9 * static_cast<double>(bytes * times) / seconds;
  }
  // The time that a team takes longer for a share each than a member for one. Members that wait poll for a while:
  // shared steps follow each other at once, as they do in a plan.
  constexpr int kShared = 2000;
  constexpr int64_t kShareRounds = 1 << 11;
  const auto multiply_add = NEO_PICK_TIER(isa, peak_multiply_add);
  std::vector<float> sums(static_cast<size_t>(team.size()));  // read by nobody; keeps the work from being left out
  double together = std::numeric_limits<double>::infinity(), by_one = together;
  for (int i = 0; i < kShared; ++i) {
    const double start = wall_seconds();
    sums[0] = multiply_add(kStarts, kShareRounds);
    const double between = wall_seconds();
    share_out(team, [&](size_t member) { sums[member] = multiply_add(kStarts, kShareRounds); });
    by_one = std::min(by_one, between - start);
    together = std::min(together, wall_seconds() - between);
  }
  machine.wake_us = 1e6 * std::max(0.0, together - by_one);
  return machine;
}

}  // namespace neo
