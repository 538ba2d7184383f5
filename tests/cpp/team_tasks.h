#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "exec/team.h"

// Work for teams under test.
namespace neo {

// Runs body(member) on every member of the team; each waits for all, so none is left out.
inline void run_on_every_member(Team& team, const std::function<void(int)>& body) {
  std::atomic<int> arrived{0};
  team.parallel_for(team.size(), [&](int64_t begin, int64_t end, int member) {
    ASSERT_EQ(end - begin, 1);
    arrived.fetch_add(1);
    while (arrived.load() < team.size()) std::this_thread::yield();
    body(member);
  });
}

// Sums 1/i by tasks of fixed extent, then over the tasks in order.
inline double sum_by_tasks(Team& team, int64_t tasks) {
  constexpr int64_t kTermsPerTask = 50;
  std::vector<double> partial(static_cast<size_t>(tasks));
  team.parallel_for(tasks, [&](int64_t begin, int64_t end, int) {
    for (int64_t task = begin; task < end; ++task) {
      double sum = 0;
      for (int64_t i = task * kTermsPerTask; i < (task + 1) * kTermsPerTask; ++i) sum += 1.0 / (1.0 + i);
      partial[static_cast<size_t>(task)] = sum;
    }
  });
  double sum = 0;
  for (const double term : partial) sum += term;
  return sum;
}

}  // namespace neo
