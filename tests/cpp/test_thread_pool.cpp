#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/topology.h"
#include "runtime/thread_pool.h"
#include "team_tasks.h"

namespace neo {
namespace {

ThreadPoolOptions with_capacity(int capacity, int64_t spin_us = 50) {
  ThreadPoolOptions options;
  options.capacity = capacity;
  options.spin_us = spin_us;
  return options;
}

int64_t process_cpu_us() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000000 + time.tv_nsec / 1000;
}

int count_threads() {
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(entry);
    ++threads;
  }
  return threads;
}

std::vector<int> mask_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(ThreadPool, every_task_runs_exactly_once_for_any_count_and_team) {
  ThreadPool pool(with_capacity(2));
  for (const int threads : {1, 2, 3, 5, 8}) {
    const auto team = pool.lease(threads, Oversubscribe::Yes);
    ASSERT_EQ(team->size(), threads);
    for (const int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4099}) {
      std::vector<std::atomic<int>> times(static_cast<size_t>(count));
      std::atomic<bool> members_are_valid{true};
      team->parallel_for(count, [&](int64_t begin, int64_t end, int member) {
        if (member < 0 || member >= threads || begin >= end) members_are_valid = false;
        for (int64_t i = begin; i < end; ++i) times[static_cast<size_t>(i)].fetch_add(1);
      });
      EXPECT_TRUE(members_are_valid);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(times[static_cast<size_t>(i)].load(), 1) << "task " << i << " of " << count << ", " << threads;
      }
    }
  }
}

TEST(ThreadPool, counts_beyond_32_bits_are_handed_out_whole) {
  ThreadPool pool(with_capacity(2));
  const auto team = pool.lease(2);
  for (const int64_t count : {int64_t{UINT32_MAX} - 1, int64_t{UINT32_MAX} + 1, (int64_t{3} << 33) + 5}) {
    std::atomic<int64_t> done{0}, end_of_all{0};
    team->parallel_for(count, [&](int64_t begin, int64_t end, int) {
      done.fetch_add(end - begin);
      if (end == count) end_of_all.fetch_add(1);
    });
    EXPECT_EQ(done.load(), count);
    EXPECT_EQ(end_of_all.load(), 1);
  }
}

// The first task of the last member ends when all others are done, which those that are free must do, from the end of
// what it has left, half by half.
TEST(ThreadPool, what_a_busy_member_has_not_begun_is_taken_over_from_its_end) {
  ThreadPool pool(with_capacity(4));
  for (const int threads : {2, 3, 4}) {
    const auto team = pool.lease(threads);
    for (const int64_t count : {int64_t{threads}, int64_t{8} * threads, int64_t{1000}}) {
      const int64_t waits = count - count / threads;
      const bool is_chunk_of_one = count < 2 * 16 * threads;
      std::atomic<int64_t> others{0};
      team->parallel_for(count, [&](int64_t begin, int64_t end, int) {
        const bool has_it = begin <= waits && waits < end;
        if (!is_chunk_of_one || !has_it) others.fetch_add(end - begin);
        while (is_chunk_of_one && has_it && others.load() < count - 1) std::this_thread::yield();
      });
      EXPECT_EQ(others.load(), is_chunk_of_one ? count - 1 : count);
    }
  }
}

TEST(ThreadPool, a_single_task_runs_on_the_caller) {
  ThreadPool pool(with_capacity(2));
  const auto team = pool.lease(2);
  std::thread::id thread;
  int member = -1;
  team->parallel_for(1, [&](int64_t, int64_t, int who) {
    thread = std::this_thread::get_id();
    member = who;
  });
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(member, 0);
}

TEST(ThreadPool, members_are_distinct_threads_and_the_caller_is_member_0) {
  ThreadPool pool(with_capacity(4));
  const auto team = pool.lease(4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<int> members;
  std::thread::id thread_of_member_0;
  run_on_every_member(*team, [&](int member) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    members.insert(member);
    if (member == 0) thread_of_member_0 = std::this_thread::get_id();
  });
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_EQ(members, std::set<int>({0, 1, 2, 3}));
  EXPECT_EQ(thread_of_member_0, std::this_thread::get_id());
}

TEST(ThreadPool, what_a_task_writes_is_seen_after_run) {
  ThreadPool pool(with_capacity(4));
  const auto team = pool.lease(4);
  std::vector<int64_t> data(256, 0);
  for (int round = 0; round < 2000; ++round) {
    team->parallel_for(256, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) data[static_cast<size_t>(255 - i)] += i;
    });
  }
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(data[static_cast<size_t>(255 - i)], 2000 * i);
}

TEST(ThreadPool, leases_share_the_capacity_and_return_it) {
  ThreadPool pool(with_capacity(4));
  auto first = pool.lease(3);
  EXPECT_EQ(first->size(), 3);
  auto second = pool.lease(8);
  EXPECT_EQ(second->size(), 1);
  EXPECT_EQ(pool.leased_threads(), 4);
  first.reset();
  EXPECT_EQ(pool.leased_threads(), 1);
  auto third = pool.lease(8);
  EXPECT_EQ(third->size(), 3);
  EXPECT_EQ(pool.started_workers(), 2);
  second.reset();
  third.reset();
  EXPECT_EQ(pool.leased_threads(), 0);
  EXPECT_EQ(pool.lease(100)->size(), 4);
  EXPECT_EQ(pool.lease(0)->size(), 1);
  EXPECT_EQ(pool.lease(-3)->size(), 1);
}

TEST(ThreadPool, explicit_request_is_met_beyond_the_capacity) {
  ThreadPool pool(with_capacity(2));
  const auto first = pool.lease(2);
  const auto second = pool.lease(5, Oversubscribe::Yes);
  EXPECT_EQ(second->size(), 5);
  std::atomic<int> members{0};
  run_on_every_member(*second, [&](int) { members.fetch_add(1); });
  EXPECT_EQ(members.load(), 5);
  EXPECT_EQ(pool.lease(2)->size(), 1);
}

TEST(ThreadPool, reduction_by_tasks_has_the_same_bits_for_any_team) {
  ThreadPool pool(with_capacity(2));
  SerialTeam serial;
  for (const int64_t tasks : {1, 2, 7, 100, 1001}) {
    const double expected = sum_by_tasks(serial, tasks);
    for (const int threads : {1, 2, 5, 8}) {
      const auto team = pool.lease(threads, Oversubscribe::Yes);
      for (int repeat = 0; repeat < 20; ++repeat) {
        const double sum = sum_by_tasks(*team, tasks);
        ASSERT_EQ(std::memcmp(&sum, &expected, sizeof sum), 0) << tasks << " tasks, " << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, workers_round_as_the_caller_does) {
  ThreadPool pool(with_capacity(3));
  const auto team = pool.lease(3);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    std::set<float> thirds;
    std::mutex mutex;
    run_on_every_member(*team, [&](int) {
      volatile float one = 1.0f, three = 3.0f;
      const float third = one / three;
      const std::lock_guard lock(mutex);
      thirds.insert(third);
    });
    EXPECT_EQ(thirds.size(), 1u) << "rounding mode " << mode;
  }
  std::fesetround(FE_TONEAREST);
}

TEST(ThreadPool, concurrent_calls_are_right_and_do_not_oversubscribe) {
  constexpr int kCapacity = 4, kCallers = 8, kCallsPerCaller = 150;
  ThreadPool pool(with_capacity(kCapacity));
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 40);
  std::atomic<int> workers_busy{0}, most_busy{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::minstd_rand random(static_cast<unsigned>(caller + 1));
      for (int call = 0; call < kCallsPerCaller; ++call) {
        const auto team = pool.lease(static_cast<int>(random() % 6));
        for (int run = 0; run < 3; ++run) {
          if (sum_by_tasks(*team, 40) != expected) wrong.fetch_add(1);
        }
        team->parallel_for(team->size(), [&](int64_t, int64_t, int member) {
          if (member == 0) return;
          const int busy = workers_busy.fetch_add(1) + 1;
          int most = most_busy.load();
          while (busy > most && !most_busy.compare_exchange_weak(most, busy)) {
          }
          workers_busy.fetch_sub(1);
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LT(most_busy.load(), kCapacity);
  EXPECT_LT(pool.started_workers(), kCapacity);
  EXPECT_EQ(pool.leased_threads(), 0);
}

TEST(ThreadPool, concurrent_oversubscribed_calls_are_right) {
  ThreadPool pool(with_capacity(2));
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 40);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int call = 0; call < 30; ++call) {
        const auto team = pool.lease(2 + caller, Oversubscribe::Yes);
        for (int run = 0; run < 5; ++run) {
          if (sum_by_tasks(*team, 40) != expected) wrong.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, team_may_move_to_another_thread_between_runs) {
  ThreadPool pool(with_capacity(3));
  auto team = pool.lease(3);
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 64);
  EXPECT_EQ(sum_by_tasks(*team, 64), expected);
  std::thread other([&, team = std::move(team)] { EXPECT_EQ(sum_by_tasks(*team, 64), expected); });
  other.join();
  EXPECT_EQ(pool.leased_threads(), 0);
}

TEST(ThreadPool, run_within_a_task_is_serial_on_the_same_member) {
  ThreadPool pool(with_capacity(4));
  const auto team = pool.lease(4);
  std::atomic<int> inner_tasks{0}, elsewhere{0};
  run_on_every_member(*team, [&](int member) {
    const std::thread::id thread = std::this_thread::get_id();
    team->parallel_for(10, [&](int64_t begin, int64_t end, int inner_member) {
      inner_tasks.fetch_add(static_cast<int>(end - begin));
      if (inner_member != member || std::this_thread::get_id() != thread) elsewhere.fetch_add(1);
    });
    if (pool.lease(4, Oversubscribe::Yes)->size() != 1) elsewhere.fetch_add(1);
  });
  EXPECT_EQ(inner_tasks.load(), 40);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST(ThreadPool, idle_threads_use_no_cpu_time) {
  constexpr int64_t kIdleUs = 300000;
  ThreadPool pool(with_capacity(4));
  for (const bool keeps_lease : {false, true}) {
    auto team = pool.lease(4);
    run_on_every_member(*team, [](int) {});
    if (!keeps_lease) team.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int64_t before = process_cpu_us();
    std::this_thread::sleep_for(std::chrono::microseconds(kIdleUs));
    EXPECT_LT(process_cpu_us() - before, kIdleUs / 100) << (keeps_lease ? "leased" : "free");
  }
}

TEST(ThreadPool, threads_without_a_core_of_their_own_do_not_poll) {
  constexpr int64_t kIdleUs = 100000;
  ThreadPool pool(with_capacity(1, 20 * kIdleUs));
  const auto team = pool.lease(3, Oversubscribe::Yes);
  run_on_every_member(*team, [](int) {});
  const int64_t before = process_cpu_us();
  std::this_thread::sleep_for(std::chrono::microseconds(kIdleUs));
  EXPECT_LT(process_cpu_us() - before, kIdleUs / 10);
}

TEST(ThreadPool, sleeping_workers_wake_for_work) {
  for (const int64_t spin_us : {0, 1}) {
    ThreadPool pool(with_capacity(3, spin_us));
    const auto team = pool.lease(3);
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> members{0};
      run_on_every_member(*team, [&](int) { members.fetch_add(1); });
      EXPECT_EQ(members.load(), 3);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST(ThreadPool, destruction_ends_the_threads) {
  const int before = count_threads();
  {
    ThreadPool pool(with_capacity(2));
    pool.lease(6, Oversubscribe::Yes);
    EXPECT_EQ(pool.started_workers(), 5);
    EXPECT_EQ(count_threads(), before + 5);
  }
  // A joined thread leaves /proc a moment later.
  for (int tries = 0; tries < 1000 && count_threads() > before; ++tries) std::this_thread::yield();
  EXPECT_EQ(count_threads(), before);
}

TEST(ThreadPool, affinity_of_the_caller_stays_and_workers_do_not_inherit_it) {
  const std::vector<int> before = mask_of_this_thread();
  std::thread caller([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before[0], &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ThreadPoolOptions options = with_capacity(3);
    options.cpus = before;
    ThreadPool pool(options);
    const auto team = pool.lease(3);
    run_on_every_member(*team, [&](int member) {
      if (member == 0) {
        EXPECT_EQ(mask_of_this_thread(), std::vector<int>{before[0]});
        return;
      }
      // A worker may have been taken away from the caller's CPU.
      std::vector<int> own = mask_of_this_thread();
      if (own != before) own.insert(own.begin(), before[0]);
      EXPECT_EQ(own, before);
    });
    EXPECT_EQ(mask_of_this_thread(), std::vector<int>{before[0]});
  });
  caller.join();
  EXPECT_EQ(mask_of_this_thread(), before);
}

TEST(ThreadPool, a_late_worker_leaves_the_cpu_of_its_leader) {
  const std::vector<int> all = mask_of_this_thread();
  if (all.size() < 2) GTEST_SKIP() << "one CPU";
  std::thread caller([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all[1], &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ThreadPoolOptions options = with_capacity(2, 0);
    options.cpus = all;
    ThreadPool pool(options);
    const auto team = pool.lease(2);
    std::vector<int> expected = all, seen;
    expected.erase(expected.begin() + 1);
    // Work that the leader does before a sleeping worker wakes.
    for (int tries = 0; tries < 1000 && seen != expected; ++tries) {
      for (int i = 0; i < 10; ++i) team->parallel_for(2, [](int64_t, int64_t, int) {});
      run_on_every_member(*team, [&](int member) {
        if (member == 1) seen = mask_of_this_thread();
      });
    }
    EXPECT_EQ(seen, expected);
  });
  caller.join();
}

TEST(ThreadPool, a_worker_that_somebody_else_bound_stays_where_it_is) {
  const std::vector<int> all = mask_of_this_thread();
  if (all.size() < 2) GTEST_SKIP() << "one CPU";
  ThreadPoolOptions options = with_capacity(2, 0);
  options.cpus = all;
  ThreadPool pool(options);
  const auto team = pool.lease(2);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(all[1], &one);
  run_on_every_member(*team, [&](int member) {
    if (member == 1) sched_setaffinity(0, sizeof one, &one);
  });
  for (int tries = 0; tries < 100; ++tries) team->parallel_for(2, [](int64_t, int64_t, int) {});
  run_on_every_member(*team, [&](int member) {
    if (member == 1) {
      EXPECT_EQ(mask_of_this_thread(), std::vector<int>{all[1]});
    }
  });
}

TEST(ThreadPool, pinned_workers_leave_the_first_cpu_to_the_caller) {
  const std::vector<int> before = mask_of_this_thread();
  ThreadPoolOptions options = with_capacity(static_cast<int>(before.size()));
  options.cpus = before;
  options.pins_workers = true;
  ThreadPool pool(options);
  const auto team = pool.lease(static_cast<int>(before.size()));
  std::mutex mutex;
  std::set<int> taken;
  run_on_every_member(*team, [&](int member) {
    const std::vector<int> mask = mask_of_this_thread();
    if (member == 0) {
      EXPECT_EQ(mask, before);
      return;
    }
    EXPECT_EQ(mask.size(), 1u);
    const std::lock_guard lock(mutex);
    taken.insert(mask[0]);
  });
  EXPECT_EQ(taken.size(), before.size() - 1);
  EXPECT_EQ(taken.count(before[0]), 0u);
}

TEST(ThreadPool, workers_leave_signals_to_other_threads) {
  ThreadPool pool(with_capacity(2));
  const auto team = pool.lease(2);
  std::atomic<int> blocked{-1}, fault_blocked{-1};
  run_on_every_member(*team, [&](int member) {
    if (member == 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) + sigismember(&mask, SIGTERM);
    fault_blocked = sigismember(&mask, SIGSEGV);
  });
  EXPECT_EQ(blocked.load(), 2);
  EXPECT_EQ(fault_blocked.load(), 0);
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

TEST(ThreadPool, impossible_options_are_refused) {
  EXPECT_THROW(ThreadPool(with_capacity(0)), Error);
  EXPECT_THROW(ThreadPool(with_capacity(1, -1)), Error);
}

// Runs phases in which every task reads what all tasks of the phase before wrote, and says whether all was there once.
void check_phases(Team& team, int64_t phases, int64_t count, int busy_task = -1, ShareChanges changes = {}) {
  std::vector<int64_t> written(static_cast<size_t>(count), 0);
  std::vector<int64_t> before(static_cast<size_t>(count), 0);
  std::atomic<int64_t> calls{0}, wrong{0};
  const auto task = [&](int64_t phase, int64_t begin, int64_t end, int member) {
    calls.fetch_add(end - begin);
    if (member < 0 || member >= team.size()) wrong.fetch_add(1);
    const auto& from = phase % 2 ? written : before;
    auto& to = phase % 2 ? before : written;
    for (int64_t i = begin; i < end; ++i) {
      for (const int64_t value : from) {
        if (value != phase) wrong.fetch_add(1);
      }
      if (i == busy_task && phase % 7 == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      to[static_cast<size_t>(i)] = phase + 1;
    }
  };
  team.parallel_phases(phases, count, task, changes);
  EXPECT_EQ(calls.load(), phases * count);
  EXPECT_EQ(wrong.load(), 0);
  for (const int64_t value : phases % 2 ? written : before) EXPECT_EQ(value, phases);
}

TEST(ThreadPoolPhases, BeginWhenThePhaseBeforeIsDone) {
  ThreadPool pool(with_capacity(4));
  for (const int threads : {1, 2, 3, 4}) {
    const auto team = pool.lease(threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 64}) {
      for (const int64_t phases : {0, 1, 2, 3, 50}) {
        check_phases(*team, phases, count);
        check_phases(*team, phases, count, -1, {1, 1});
      }
    }
  }
}

TEST(ThreadPoolPhases, MembersThatAreLateAreHelped) {
  ThreadPool pool(with_capacity(4));
  const auto team = pool.lease(4);
  for (const int busy : {0, 1, 5}) {
    check_phases(*team, 30, 6, busy);
    check_phases(*team, 30, 24, busy, {2, 3});
  }
}

TEST(ThreadPoolPhases, MembersThatShareCoresForkAndJoin) {
  ThreadPool pool(with_capacity(1));
  const auto team = pool.lease(3, Oversubscribe::Yes);
  check_phases(*team, 20, 5);
}

TEST(ThreadPoolPhases, FollowAndPrecedeOtherWork) {
  ThreadPool pool(with_capacity(3, 5));
  const auto team = pool.lease(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    team->parallel_for(100, [&](int64_t begin, int64_t end, int) { sum.fetch_add(end - begin); });
    EXPECT_EQ(sum.load(), 100);
    check_phases(*team, 3 + round % 5, 3);
    if (round % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the workers fall asleep
  }
}

TEST(ThreadPoolPhases, AreSerialWithinATask) {
  ThreadPool pool(with_capacity(2));
  const auto team = pool.lease(2);
  team->parallel_for(2, [&](int64_t, int64_t, int) { check_phases(*team, 4, 3); });
}

}  // namespace
}  // namespace neo
