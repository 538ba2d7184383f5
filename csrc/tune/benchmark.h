#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace neo {

struct BenchmarkOptions {
  int rounds = 7;                   // timed ones
  int64_t enough_ns = 400'000'000;  // after three rounds and this long no more are begun
  int64_t deadline_ns = 0;          // on the same clock as benchmark() is given; 0: none
  std::function<void()> poll;       // between two runs; what it throws ends the benchmark
};

struct BenchmarkTime {
  double time_us = 0;    // the lower quartile of its rounds; meaningless without rounds
  int rounds = 0;        // 0: never ran
  double spread_us = 0;  // from the lower to the upper quartile of its rounds
};

// Times candidates against each other: each runs once per round, in turn, so that a disturbance hits all alike. One
// that falls far behind the best drops out (successive elimination): the more rounds, the smaller the lead that counts.
// When the rounds of all that are left agree within 1.5 percent, more would tell nothing, and none are begun.
// `time_ns(i)` runs candidate i once.
std::vector<BenchmarkTime> benchmark(size_t candidates, const std::function<int64_t(size_t)>& time_ns,
                                     const std::function<int64_t()>& now_ns, const BenchmarkOptions& options);

}  // namespace neo
