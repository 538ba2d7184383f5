#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/topology.h"
#include "runtime/thread_pool.h"
#include "team_tasks.h"

namespace neo {
namespace {

// ThreadSanitizer cannot follow threads that a child of fork starts.
#if defined(__SANITIZE_THREAD__)
constexpr int kThreadsInChild = 1;
#else
constexpr int kThreadsInChild = 3;
#endif

// AddressSanitizer's allocator does not survive a fork while another thread allocates.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kForksBetweenCalls = true;
#else
constexpr bool kForksBetweenCalls = false;
#endif

// The exit status of a child that runs body and leaves by `leave`: std::exit counts its cleanup too.
template <class F>
int status_of_child(F&& body, void (*leave)(int) = std::exit) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    leave(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(ProcessThreadPool, is_one_and_fits_the_host) {
  ThreadPool& pool = process_thread_pool();
  EXPECT_EQ(&pool, &process_thread_pool());
  EXPECT_EQ(pool.capacity(), host_topology().usable_cpus());
  EXPECT_LE(pool.lease(1000)->size(), pool.capacity());
}

TEST(ProcessThreadPool, options_come_from_the_knobs) {
  setenv("NEO_SPIN_US", "7", 1);
  setenv("NEO_PIN", "on", 1);
  const ThreadPoolOptions options = host_thread_pool_options();
  EXPECT_EQ(options.spin_us, 7);
  EXPECT_TRUE(options.pins_workers);
  EXPECT_EQ(options.cpus, host_topology().placement());
  unsetenv("NEO_PIN");
  EXPECT_FALSE(host_thread_pool_options().pins_workers);
  setenv("NEO_SPIN_US", "soon", 1);
  EXPECT_THROW(host_thread_pool_options(), Error);
  unsetenv("NEO_SPIN_US");
}

// A team whose threads have all started: a fork while one starts could leave a sanitizer's allocator locked in the
// child.
auto lease_started() {
  auto team = process_thread_pool().lease(3, Oversubscribe::Yes);
  run_on_every_member(*team, [](int) {});
  return team;
}

TEST(ProcessThreadPool, child_of_fork_has_a_fresh_pool) {
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 64);
  const auto team = lease_started();
  EXPECT_EQ(sum_by_tasks(*team, 64), expected);
  const int status = status_of_child([&] {
    ThreadPool& pool = process_thread_pool();
    const bool is_fresh = pool.started_workers() == 0 && pool.leased_threads() == 0;
    const auto own = pool.lease(kThreadsInChild, Oversubscribe::Yes);
    std::atomic<int> members{0};
    run_on_every_member(*own, [&](int) { members.fetch_add(1); });
    return is_fresh && own->size() == kThreadsInChild && members == kThreadsInChild &&
           sum_by_tasks(*own, 64) == expected;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum_by_tasks(*team, 64), expected);
}

TEST(ProcessThreadPool, team_from_before_fork_still_works_in_the_child) {
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 64);
  auto team = lease_started();
  EXPECT_EQ(sum_by_tasks(*team, 64), expected);
  const int status = status_of_child([&] {
    const bool is_right = sum_by_tasks(*team, 64) == expected;
    team.reset();
    return is_right && process_thread_pool().leased_threads() == 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(ProcessThreadPool, fork_is_safe_while_other_threads_call) {
  SerialTeam serial;
  const double expected = sum_by_tasks(serial, 64);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  std::mutex between_calls;
  const auto hold_calls = [&] {
    return kForksBetweenCalls ? std::unique_lock(between_calls) : std::unique_lock<std::mutex>();
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!ends) {
        const auto held = hold_calls();
        if (sum_by_tasks(*process_thread_pool().lease(3, Oversubscribe::Yes), 64) != expected) wrong.fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const auto body = [&] {
      return sum_by_tasks(*process_thread_pool().lease(kThreadsInChild, Oversubscribe::Yes), 64) == expected;
    };
    // At exit, what the vanished callers held would count as leaked.
    const auto held = hold_calls();
    const int status = status_of_child(body, _exit);
    EXPECT_EQ(status, 0);
  }
  ends = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ProcessThreadPool, exit_is_clean_while_a_team_is_held) {
  const int status = status_of_child([] {
    ThreadPool& pool = process_thread_pool();
    pool.lease(kThreadsInChild, Oversubscribe::Yes);
    static Team* const held = pool.lease(kThreadsInChild, Oversubscribe::Yes).release();
    return sum_by_tasks(*held, 8) > 0;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace neo
