#include "tune/benchmark.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace neo {
namespace {

// Times the fastest after its first run, which finds code and memory cold; a second run would not bring it back.
constexpr double kHopeless = 8;
// Rounds that are enough where they differ by no more than this share of the time.
constexpr int kEnoughRounds = 5;
constexpr double kSettled = 0.015;
// A run that takes this long does so by itself.
constexpr int64_t kSurelyNs = 500'000'000;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// By how much a candidate may be behind the best after so many timed rounds.
double allowed_lag(int rounds) {
  if (rounds < 3) return 2;
  return rounds < 5 ? 1.25 : 1.1;
}

BenchmarkTime summary(std::vector<int64_t> times) {
  std::sort(times.begin(), times.end());
  const double low = static_cast<double>(times[(times.size() - 1) / 4]) * 1e-3;
  const double high = static_cast<double>(times[times.size() - 1 - (times.size() - 1) / 4]) * 1e-3;
  return {low, static_cast<int>(times.size()), high - low};
}

bool is_settled(const BenchmarkTime& time) {
  return time.rounds >= kEnoughRounds && time.spread_us <= kSettled * time.time_us;
}

}  // namespace

std::vector<BenchmarkTime> benchmark(size_t candidates, const std::function<int64_t(size_t)>& time_ns,
                                     const std::function<int64_t()>& now_ns, const BenchmarkOptions& options) {
  std::vector<BenchmarkTime> results(candidates);
  std::vector<int64_t> first(candidates);
  std::vector<std::vector<int64_t>> times(candidates);
  std::vector<size_t> running;
  const int64_t start = now_ns();
  const auto is_over = [&] { return options.deadline_ns != 0 && now_ns() >= options.deadline_ns; };
  const auto drop = [&](double lag) {
    double best = std::numeric_limits<double>::infinity();
    for (const size_t i : running) best = std::min(best, results[i].time_us);
    std::erase_if(running, [&](size_t i) { return results[i].time_us > lag * best; });
  };
  const auto take = [&](size_t i) {
    if (options.poll) options.poll();
    if (is_over()) return false;
    first[i] = results[i].rounds == 0 ? time_ns(i) : std::min(first[i], time_ns(i));
    results[i] = {static_cast<double>(first[i]) * 1e-3, 1, 0};
    return true;
  };
  // The first run is no measurement, except of who is hopeless; and that takes two, for one may have been disturbed.
  for (size_t i = 0; i < candidates; ++i) {
    if (!take(i)) return results;
    running.push_back(i);
  }
  if (candidates == 0) return results;
  const int64_t best_first = *std::min_element(first.begin(), first.end());
  for (const size_t i : running) {
    const bool is_behind = static_cast<double>(first[i]) > kHopeless * static_cast<double>(best_first);
    if (is_behind && first[i] < kSurelyNs && !take(i)) return results;
  }
  drop(kHopeless);
  for (int round = 0; round < options.rounds && !running.empty(); ++round) {
    if (round >= 3 && now_ns() - start >= options.enough_ns) break;
    if (std::all_of(running.begin(), running.end(), [&](size_t i) { return is_settled(results[i]); })) break;
    for (size_t k = 0; k < running.size(); ++k) {
      const size_t i = running[(k + static_cast<size_t>(round)) % running.size()];
      if (options.poll) options.poll();
      if (is_over()) return results;
      times[i].push_back(time_ns(i));
      results[i] = summary(times[i]);
      // Before the third round a time may be an outlier.
      const double limit_us = results[i].rounds < 3 ? static_cast<double>(first[i]) * 1e-3 : kNoLimit;
      results[i].time_us = std::min(results[i].time_us, limit_us);
    }
    drop(allowed_lag(round + 1));
  }
  return results;
}

}  // namespace neo
