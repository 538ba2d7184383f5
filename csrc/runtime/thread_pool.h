#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/executors.h"

namespace neo {

class Worker;

struct ThreadPoolOptions {
  int capacity = 1;           // threads that can make progress at once, callers included
  int64_t spin_us = 50;       // how long an idle thread polls before it sleeps
  std::vector<int> cpus;      // ids of the CPUs that workers may run on; empty: those of the creating thread
  bool pins_workers = false;  // each worker on one CPU of its own: cpus[1], cpus[2], ...; cpus[0] is the caller's
};

// From the host's topology, NEO_SPIN_US and NEO_PIN.
ThreadPoolOptions host_thread_pool_options();

enum class Oversubscribe {
  No,   // at most as many threads as can make progress beside those already leased
  Yes,  // the number asked for, though they share cores
};

// Worker threads that calls lease for their duration: the pool of NeoCPU (USENIX ATC 2019, section 3.1.2). Each worker
// takes work from a slot that only its present team writes; forking and joining are atomic operations on that slot, on
// a cache line of its own. Threads start when first needed, sleep when idle, and take no signals that are meant for the
// process.
class ThreadPool {
 public:
  explicit ThreadPool(ThreadPoolOptions options);

  // Ends the threads. No team may be alive.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // A team of the calling thread and up to threads - 1 workers, given back when the team is destroyed. Fewer free
  // cores, or a system that refuses threads, make it smaller; threads above kMaxThreads count as that.
  // Any number of threads may lease at once. A team serves one run() at a time, and one pool outlives its teams.
  // Within a task, run() of any team is serial, on the member that calls it.
  std::unique_ptr<Team> lease(int threads, Oversubscribe oversubscribe = Oversubscribe::No);

  // `executors` of `threads` threads each, as lease() has them: where fewer cores are free there are fewer executors,
  // and where not even one has its threads, one of fewer. With pinned workers an executor's are next to each other in
  // ThreadPoolOptions::cpus.
  std::unique_ptr<Executors> lease_executors(int executors, int threads,
                                             Oversubscribe oversubscribe = Oversubscribe::No);

  static constexpr int kMaxThreads = 1024;

  int capacity() const { return options_.capacity; }
  int64_t spin_us() const { return options_.spin_us; }

  // Members of all live teams.
  int leased_threads() const { return leased_threads_.load(std::memory_order_relaxed); }

  // Worker threads that were started and have not ended.
  int started_workers() const;

 private:
  friend class LeasedTeam;
  friend class LeasedExecutors;
  friend class ProcessPool;

  // As many of the wanted workers as there may be beside the calling thread, which is counted too: 0, or what is left
  // after one is cut down to a multiple of `unit`.
  std::vector<Worker*> take_workers(size_t wanted, size_t unit, Oversubscribe oversubscribe);
  // Adds up to `count` new workers to the pool and to `started`; the mutex is held.
  void start_workers(size_t count, std::vector<Worker*>& started);

  // The members of a team: workers, and whoever leads it.
  void give_back(const std::vector<Worker*>& workers, int members);
  void stop();

  const ThreadPoolOptions options_;
  std::atomic<int> leased_threads_{0};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;  // all that were started
  std::vector<Worker*> free_;                     // the last given back is leased first: it may still be polling
  bool is_stopped_ = false;
};

// The one pool of this process, made at the first call. A child of fork() gets a fresh one; teams leased before
// the fork still work there, on the calling thread alone. At exit its idle threads end; teams leased later have one
// member.
ThreadPool& process_thread_pool();

}  // namespace neo
