#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "exec/dependencies.h"
#include "runtime/scheduler.h"
#include "runtime/thread_pool.h"

namespace neo {
namespace {

ThreadPoolOptions options_of(int capacity, int64_t spin_us) {
  ThreadPoolOptions options;
  options.capacity = capacity;
  options.spin_us = spin_us;
  return options;
}

// Waits are of earlier items, each of up to four.
Dependencies random_order(uint64_t seed, uint32_t items, uint32_t reach) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint32_t>> after(items);
  Dependencies order;
  order.waits.assign(items, 0);
  for (uint32_t i = 0; i < items; ++i) {
    for (uint64_t k = random() % 5; k > 0 && i > 0; --k) {
      const uint32_t before = i - 1 - static_cast<uint32_t>(random() % std::min(i, reach));
      if (!after[before].empty() && after[before].back() == i) continue;
      after[before].push_back(i);
      ++order.waits[i];
    }
    order.is_small.push_back(random() % 3 == 0);
    order.needs_caller.push_back(random() % 7 == 0);
  }
  order.first.push_back(0);
  for (const auto& successors : after) {
    order.successors.insert(order.successors.end(), successors.begin(), successors.end());
    order.first.push_back(static_cast<uint32_t>(order.successors.size()));
  }
  std::vector<double> times;
  for (uint32_t i = 0; i < items; ++i) times.push_back(static_cast<double>(random() % 100));
  order.levels_us = levels_of(order, times);
  return order;
}

// Records when each item ran, and fails where one comes too early, twice or on the wrong thread.
struct Recorder {
  const Dependencies& order;
  std::vector<std::vector<uint32_t>> before;
  std::vector<std::atomic<int>> runs;
  std::vector<int> results;  // written by each item, read by its successors
  std::atomic<int> faults{0};
  std::atomic<uint64_t> executors{0};
  std::thread::id caller = std::this_thread::get_id();
  int fails_at = -1;  // executor 0 throws there, others stop
  int work = 0;

  explicit Recorder(const Dependencies& all)
      : order(all), before(all.waits.size()), runs(all.waits.size()), results(all.waits.size(), 0) {
    for (uint32_t i = 0; i < before.size(); ++i) {
      for (const uint32_t after : order.after(i)) before[after].push_back(i);
    }
  }

  bool run(uint32_t item, int executor) {
    if (static_cast<int>(item) == fails_at) {
      if (executor == 0) throw std::runtime_error("the item fails");
      return false;
    }
    executors.fetch_or(uint64_t{1} << executor);
    if ((executor == 0) != (std::this_thread::get_id() == caller)) faults.fetch_add(1);
    if (order.needs_caller[item] && executor != 0) faults.fetch_add(1);
    for (const uint32_t i : before[item]) {
      if (runs[i].load(std::memory_order_relaxed) != 1 || results[i] != static_cast<int>(i) + 1) faults.fetch_add(1);
    }
    for (volatile int i = 0; i < work;) i = i + 1;
    results[item] = static_cast<int>(item) + 1;
    if (runs[item].fetch_add(1, std::memory_order_relaxed) != 0) faults.fetch_add(1);
    return true;
  }

  template <class Policy>
  bool run_on(Scheduler<Policy>& scheduler, Executors& executors_of) {
    typename Scheduler<Policy>::Work all;
    all.order = &order;
    all.context = this;
    all.execute = [](void* self, uint32_t item, int executor) {
      return static_cast<Recorder*>(self)->run(item, executor);
    };
    all.wait = [](void*) {};
    return scheduler.run(all, executors_of);
  }
  bool is_complete() const {
    return faults.load() == 0 &&
           std::all_of(runs.begin(), runs.end(), [](const std::atomic<int>& times) { return times.load() == 1; });
  }
};

template <class Policy>
void check_every_item_runs_once_after_its_own() {
  for (const int64_t spin_us : {0, 50}) {
    ThreadPool pool(options_of(2, spin_us));
    for (const int executors : {1, 2, 3, 5, 8}) {
      const auto leased = pool.lease_executors(executors, 1, Oversubscribe::Yes);
      ASSERT_EQ(leased->size(), executors);
      Scheduler<Policy> scheduler(executors);
      for (uint64_t seed = 0; seed < 25; ++seed) {
        const Dependencies order = random_order(seed, 1 + static_cast<uint32_t>(seed * 13), 1 + seed % 30);
        Recorder recorder(order);
        recorder.work = static_cast<int>(seed % 4) * 500;
        ASSERT_TRUE(recorder.run_on(scheduler, *leased));
        ASSERT_TRUE(recorder.is_complete()) << executors << " executors, seed " << seed;
      }
    }
  }
}

TEST(Scheduler, every_item_runs_once_after_those_it_waits_for) {
  check_every_item_runs_once_after_its_own<CriticalPathFirst>();
  check_every_item_runs_once_after_its_own<FirstInFirstOut>();
}

TEST(Scheduler, nothing_to_run_returns_at_once) {
  ThreadPool pool(options_of(2, 50));
  const auto leased = pool.lease_executors(2, 1, Oversubscribe::Yes);
  Scheduler<CriticalPathFirst> scheduler(2);
  const Dependencies none = random_order(0, 0, 1);
  Recorder recorder(none);
  EXPECT_TRUE(recorder.run_on(scheduler, *leased));
}

// All executors are needed where each item waits until as many run.
TEST(Scheduler, independent_items_run_at_once) {
  constexpr int kExecutors = 4;
  ThreadPool pool(options_of(2, 50));
  const auto leased = pool.lease_executors(kExecutors, 1, Oversubscribe::Yes);
  Scheduler<CriticalPathFirst> scheduler(kExecutors);
  Dependencies order = random_order(0, 0, 1);
  order.waits.assign(kExecutors, 0);
  order.first.assign(kExecutors + 1, 0);
  order.is_small.assign(kExecutors, false);
  order.needs_caller.assign(kExecutors, false);
  order.levels_us.assign(kExecutors, 1);
  std::atomic<int> arrived{0};
  Scheduler<CriticalPathFirst>::Work work;
  work.order = &order;
  work.context = &arrived;
  work.execute = [](void* context, uint32_t, int) {
    auto& all = *static_cast<std::atomic<int>*>(context);
    all.fetch_add(1);
    while (all.load() < kExecutors) std::this_thread::yield();
    return true;
  };
  work.wait = [](void*) {};
  EXPECT_TRUE(scheduler.run(work, *leased));
}

TEST(Scheduler, an_error_of_the_caller_ends_all_and_the_next_run_is_whole) {
  ThreadPool pool(options_of(2, 50));
  const auto leased = pool.lease_executors(3, 1, Oversubscribe::Yes);
  Scheduler<CriticalPathFirst> scheduler(3);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Dependencies order = random_order(seed, 200, 20);
    const auto at = static_cast<size_t>(seed % 200);
    order.needs_caller[at] = seed % 2 == 0;
    Recorder recorder(order);
    recorder.fails_at = static_cast<int>(at);
    bool is_whole = false;
    try {
      is_whole = recorder.run_on(scheduler, *leased);
    } catch (const std::runtime_error&) {
    }
    EXPECT_FALSE(is_whole);
    EXPECT_EQ(recorder.faults.load(), 0);
    for (const auto& times : recorder.runs) EXPECT_LE(times.load(), 1);
    Recorder next(order);
    EXPECT_TRUE(next.run_on(scheduler, *leased));
    EXPECT_TRUE(next.is_complete());
  }
}

// The caller looks up now and then while others work.
TEST(Scheduler, a_caller_that_waits_may_end_the_run) {
  ThreadPool pool(options_of(2, 50));
  const auto leased = pool.lease_executors(2, 1, Oversubscribe::Yes);
  Scheduler<CriticalPathFirst> scheduler(2);
  Dependencies order = random_order(0, 0, 1);
  order.waits = {0, 0, 2};
  order.successors = {2, 2};
  order.first = {0, 1, 2, 2};
  order.is_small.assign(3, false);
  order.needs_caller = {true, false, false};
  order.levels_us = {2, 2, 1};
  struct Call {
    std::atomic<bool> has_begun{false}, is_over{false};
  } call;
  Scheduler<CriticalPathFirst>::Work work;
  work.order = &order;
  work.context = &call;
  work.execute = [](void* context, uint32_t item, int) {
    auto& [has_begun, is_over] = *static_cast<Call*>(context);
    if (item == 1) has_begun = true;
    const std::atomic<bool>& awaited = item == 1 ? is_over : has_begun;
    while (!awaited.load()) std::this_thread::yield();
    return true;
  };
  work.wait = [](void* context) {
    static_cast<Call*>(context)->is_over = true;
    throw std::runtime_error("the call was cancelled");
  };
  EXPECT_THROW(scheduler.run(work, *leased), std::runtime_error);
}

template <class Policy>
std::vector<uint32_t> order_of(const Dependencies& order) {
  struct Log {
    std::vector<uint32_t> items;
  } log;
  SerialTeam team;
  OneExecutor executor(team);
  Scheduler<Policy> scheduler(1);
  typename Scheduler<Policy>::Work work;
  work.order = &order;
  work.context = &log;
  work.execute = [](void* context, uint32_t item, int) {
    static_cast<Log*>(context)->items.push_back(item);
    return true;
  };
  work.wait = [](void*) {};
  EXPECT_TRUE(scheduler.run(work, executor));
  return log.items;
}

TEST(Scheduler, policies_say_what_comes_first) {
  Dependencies order;
  order.waits = {0, 0, 0, 1, 1};
  order.first = {0, 1, 2, 2, 2, 2};
  order.successors = {3, 4};
  order.is_small.assign(5, false);
  order.needs_caller.assign(5, false);
  order.levels_us = {5, 30, 10, 1, 20};
  EXPECT_EQ(order_of<CriticalPathFirst>(order), (std::vector<uint32_t>{1, 4, 2, 0, 3}));
  EXPECT_EQ(order_of<FirstInFirstOut>(order), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  // What is small runs right after what it waited for.
  order.is_small[3] = true;
  EXPECT_EQ(order_of<FirstInFirstOut>(order), (std::vector<uint32_t>{0, 3, 1, 2, 4}));
}

TEST(Executors, leaders_run_teams_of_their_own) {
  ThreadPool pool(options_of(2, 50));
  const auto leased = pool.lease_executors(3, 2, Oversubscribe::Yes);
  ASSERT_EQ(leased->size(), 3);
  EXPECT_EQ(pool.leased_threads(), 6);
  struct Call {
    Executors& executors;
    std::atomic<int> tasks{0}, wrong{0};
    std::atomic<int> bodies{0};
  } call{*leased, {}, {}, {}};
  leased->begin(
      [](void* context, int executor) {
        auto& all = *static_cast<Call*>(context);
        all.bodies.fetch_add(1);
        // Each member waits for the other, so that both are there.
        std::atomic<int> arrived{0};
        all.executors.team(executor).parallel_for(2, [&](int64_t begin, int64_t end, int member) {
          all.tasks.fetch_add(static_cast<int>(end - begin));
          if (member != static_cast<int>(begin)) all.wrong.fetch_add(1);
          arrived.fetch_add(1);
          while (arrived.load() < 2) std::this_thread::yield();
        });
      },
      &call);
  leased->post(1);
  leased->post(2);
  while (call.bodies.load() < 2) std::this_thread::yield();
  leased->end();
  EXPECT_EQ(call.tasks.load(), 4);
  EXPECT_EQ(call.wrong.load(), 0);
}

TEST(Executors, fewer_free_cores_make_fewer_of_them) {
  ThreadPool pool(options_of(6, 50));
  const auto held = pool.lease(2);
  EXPECT_EQ(pool.leased_threads(), 2);
  {
    const auto leased = pool.lease_executors(4, 2);  // four of six threads are left
    EXPECT_EQ(leased->size(), 2);
    EXPECT_EQ(leased->team(0).size(), 2);
    EXPECT_EQ(leased->team(1).size(), 2);
    EXPECT_EQ(pool.leased_threads(), 6);
    EXPECT_EQ(pool.lease_executors(3, 1)->size(), 1);
  }
  EXPECT_EQ(pool.leased_threads(), 2);
  {
    const auto leased = pool.lease_executors(2, 3);  // one of three, and a thread that makes no whole one
    EXPECT_EQ(leased->size(), 1);
    EXPECT_EQ(leased->team(0).size(), 3);
    EXPECT_EQ(pool.leased_threads(), 5);
  }
  {
    const auto leased = pool.lease_executors(2, 5);
    EXPECT_EQ(leased->size(), 1);
    EXPECT_EQ(leased->team(0).size(), 4);
  }
  EXPECT_EQ(pool.leased_threads(), 2);
}

TEST(Executors, within_a_task_there_is_one_of_one_thread) {
  ThreadPool pool(options_of(4, 50));
  const auto team = pool.lease(2);
  std::atomic<int> executors{0}, threads{0};
  team->parallel_for(1, [&](int64_t, int64_t, int) {
    const auto leased = pool.lease_executors(2, 2);
    executors = leased->size();
    threads = leased->team(0).size();
  });
  EXPECT_EQ(executors.load(), 1);
  EXPECT_EQ(threads.load(), 1);
}

}  // namespace
}  // namespace neo
