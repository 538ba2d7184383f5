#include <gtest/gtest.h>

#include <map>

#include "tune/benchmark.h"

namespace neo {
namespace {

// Contenders that take what a test says, on a clock that only they move.
struct Track {
  std::vector<std::function<int64_t(int)>> candidates;  // by run, in ns
  std::map<size_t, int> runs;
  int64_t now = 0;

  std::vector<BenchmarkTime> benchmark(BenchmarkOptions options = {}) {
    return neo::benchmark(
        candidates.size(),
        [&](size_t i) {
          const int64_t took = candidates[i](runs[i]++);
          now += took;
          return took;
        },
        [&] { return now; }, options);
  }
};

std::function<int64_t(int)> always(int64_t ns) {
  return [ns](int) { return ns; };
}

// A candidate whose runs never agree.
std::function<int64_t(int)> restless(int64_t ns) {
  return [ns](int run) { return ns + run % 3 * ns / 20; };
}

TEST(Benchmark, EqualsRunEveryRound) {
  Track track{{restless(1000), restless(1010)}};
  const auto times = track.benchmark();
  EXPECT_EQ(times[0].rounds, 7);
  EXPECT_EQ(times[1].rounds, 7);
  EXPECT_DOUBLE_EQ(times[0].time_us, 1.0);
}

TEST(Benchmark, RoundsThatAgreeEndIt) {
  Track track{{always(1000), always(1100)}};
  const auto times = track.benchmark();
  EXPECT_EQ(times[0].rounds, 5);
  EXPECT_EQ(times[1].rounds, 5);
  Track another{{always(1000), restless(1000)}};
  EXPECT_EQ(another.benchmark()[0].rounds, 7);
}

TEST(Benchmark, TheSpreadIsFromQuartileToQuartile) {
  Track track{{restless(1000)}};
  const auto times = track.benchmark();
  EXPECT_NEAR(times[0].spread_us, 0.1, 1e-9);
  EXPECT_NEAR((Track{{always(1000)}}.benchmark()[0].spread_us), 0.0, 1e-9);
}

TEST(Benchmark, TheFirstRunIsNotCounted) {
  Track track{{[](int run) { return run == 0 ? 5000 : 1000; }}};
  EXPECT_DOUBLE_EQ(track.benchmark()[0].time_us, 1.0);
}

TEST(Benchmark, TheHopelessRunTwiceAndKeepTheBetterTime) {
  Track track{{always(1000), [](int run) { return run == 0 ? 50000 : 9000; }}};
  const auto times = track.benchmark();
  EXPECT_EQ(track.runs[1], 2);
  EXPECT_EQ(times[1].rounds, 1);
  EXPECT_DOUBLE_EQ(times[1].time_us, 9.0);
}

TEST(Benchmark, TheFartherBehindTheEarlierOut) {
  Track track{{restless(1000), always(4000), always(1400), always(1200), always(1080)}};
  const auto times = track.benchmark();
  EXPECT_EQ(times[1].rounds, 1);
  EXPECT_EQ(times[2].rounds, 3);
  EXPECT_EQ(times[3].rounds, 5);
  EXPECT_EQ(times[4].rounds, 7);
}

TEST(Benchmark, DisturbancesDoNotCount) {
  Track track{{[](int run) { return run % 3 == 0 ? 2900 : 1000; }, restless(1040)}};
  const auto times = track.benchmark();
  EXPECT_DOUBLE_EQ(times[0].time_us, 1.0);
  EXPECT_EQ(times[1].rounds, 7);
}

TEST(Benchmark, OneDisturbedRunDoesNotEndIt) {
  for (const int disturbed : {0, 1, 2}) {
    Track track{{always(1000), [=](int run) { return run == disturbed ? 60'000'000 : 1100; }}};
    const auto times = track.benchmark();
    EXPECT_GE(times[1].rounds, 5) << disturbed;
    EXPECT_DOUBLE_EQ(times[1].time_us, 1.1);
  }
}

TEST(Benchmark, LongRunsHaveThreeRounds) {
  Track track{{always(200'000'000), always(200'000'000)}};
  EXPECT_EQ(track.benchmark()[0].rounds, 3);
}

TEST(Benchmark, TheDeadlineEndsIt) {
  BenchmarkOptions options;
  options.deadline_ns = 2500;
  Track track{{always(1000), always(1000), always(1000), always(1000)}};
  const auto times = track.benchmark(options);
  EXPECT_EQ(times[2].rounds, 1);
  EXPECT_EQ(times[3].rounds, 0);
}

TEST(Benchmark, WhatThePollThrowsEndsIt) {
  BenchmarkOptions options;
  options.poll = [] { throw 7; };
  Track track{{always(1000)}};
  EXPECT_THROW(track.benchmark(options), int);
  EXPECT_EQ(track.runs[0], 0);
}

TEST(Benchmark, NobodyIsNoError) {
  EXPECT_TRUE(Track{}.benchmark().empty());
}

}  // namespace
}  // namespace neo
