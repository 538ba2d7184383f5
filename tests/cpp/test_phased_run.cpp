#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/phased_run.h"

namespace neo {
namespace {

TEST(EndBySpeed, GivesEveryMemberATaskAndTheFastestMost) {
  for (const int64_t count : {4, 5, 16, 1000}) {
    for (const std::vector<double>& speeds :
         {std::vector<double>{1, 1, 1, 1}, {8, 1, 1, 1}, {1e-9, 1, 1e9, 1}, {1, 2, 3, 4}}) {
      const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
      const int parts = static_cast<int>(speeds.size());
      double sum = 0;
      int64_t begin = 0;
      for (int i = 0; i < parts; ++i) {
        const double speed = speeds[static_cast<size_t>(i)];
        sum += speed;
        const int64_t end = end_by_speed(count, parts, i, begin, sum / all);
        EXPECT_GT(end, begin);
        if (count == 1000) {
          EXPECT_NEAR(static_cast<double>(end - begin), 1000 * speed / all, 4);
        }
        begin = end;
      }
      EXPECT_EQ(begin, count);
    }
  }
}

struct Call {
  int64_t phase, begin, end;
  int member;
};

// All calls of a run by two members, of whom the second sleeps for every task. Nobody is late at its begin.
std::vector<Call> run_beside_slow_member(int64_t phases, int64_t count, ShareChanges changes) {
  PhasedRun run(2);
  std::barrier begin(2);
  std::vector<Call> calls;
  std::mutex mutex;
  const auto task = [&](int64_t phase, int64_t begin, int64_t end, int member) {
    if (member == 1) std::this_thread::sleep_for(std::chrono::microseconds(100 * (end - begin)));
    const std::lock_guard lock(mutex);
    calls.push_back({phase, begin, end, member});
  };
  run.start(
      phases, count, 2, changes,
      [](void* context, int64_t phase, int64_t begin, int64_t end, int member) {
        (*static_cast<decltype(&task)>(context))(phase, begin, end, member);
      },
      const_cast<void*>(static_cast<const void*>(&task)));
  std::thread other([&] {
    begin.arrive_and_wait();
    run.work_as(1);
  });
  begin.arrive_and_wait();
  run.work_as(0);
  other.join();
  return calls;
}

// Where the ranges of each phase meet; every phase has two of them, after all calls of the phase before.
std::vector<int64_t> meeting_points(const std::vector<Call>& calls, int64_t phases, int64_t count) {
  EXPECT_EQ(calls.size(), static_cast<size_t>(2 * phases));
  std::vector<int64_t> points;
  for (size_t i = 0; i + 1 < calls.size(); i += 2) {
    const bool is_in_order = calls[i].begin == 0;
    const Call &first = calls[is_in_order ? i : i + 1], &second = calls[is_in_order ? i + 1 : i];
    EXPECT_EQ(first.phase, static_cast<int64_t>(i / 2));
    EXPECT_EQ(second.phase, static_cast<int64_t>(i / 2));
    EXPECT_EQ(first.begin, 0);
    EXPECT_EQ(first.end, second.begin);
    EXPECT_EQ(second.end, count);
    points.push_back(first.end);
  }
  return points;
}

TEST(PhasedRun, SlowMembersGetFewerTasksWhereRangesMayChange) {
  constexpr int64_t kPhases = 40, kTasks = 20;
  const ShareChanges changes{3, 5};
  // Another process may slow the other member down more for the length of a run, not for all of them.
  int64_t last = 0;
  for (int attempt = 0; attempt < 50 && last <= kTasks / 2; ++attempt) {
    const auto points = meeting_points(run_beside_slow_member(kPhases, kTasks, changes), kPhases, kTasks);
    ASSERT_EQ(points.size(), static_cast<size_t>(kPhases));
    EXPECT_EQ(points[0], kTasks / 2);
    for (size_t phase = 1; phase < points.size(); ++phase) {
      if (!changes.are_before(static_cast<int64_t>(phase))) {
        EXPECT_EQ(points[phase], points[phase - 1]) << "phase " << phase;
      }
    }
    last = points.back();
  }
  EXPECT_GT(last, kTasks / 2);
}

TEST(PhasedRun, RangesStayWhereNothingIsSaid) {
  const std::vector<int64_t> points = meeting_points(run_beside_slow_member(12, 8, {}), 12, 8);
  EXPECT_EQ(points, std::vector<int64_t>(12, 4));
}

TEST(PhasedRun, MembersWithOneTaskEachKeepIt) {
  const std::vector<int64_t> points = meeting_points(run_beside_slow_member(12, 2, {1, 1}), 12, 2);
  EXPECT_EQ(points, std::vector<int64_t>(12, 1));
}

}  // namespace
}  // namespace neo
