// What it costs to spread one step over a team, on steps of several sizes, and what threads burn when nothing runs: the
// pool beside OpenMP. `python -m benchmarks.pool` builds and runs it; the wait policy of OpenMP is the environment's.
// Usage: fork_join [threads]

#include <omp.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/thread_pool.h"

namespace {

int rounds = 15;  // of which the best counts
constexpr double kRoundUs = 20000;

std::atomic<int> members_arrived{0};

// About `loops` nanoseconds of arithmetic that the compiler keeps.
void compute(int loops) {
  uint64_t x = 1;
  for (int i = 0; i < loops; ++i) {
    x = x * 6364136223846793005u + 1;
    __asm__ volatile("" : "+r"(x));
  }
}

// Least time per run over the rounds, in microseconds.
template <class F>
double time_us(F&& run) {
  const auto round_us = [&](int runs) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) run();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    return elapsed.count() / runs;
  };
  const int runs = static_cast<int>(std::clamp(kRoundUs / round_us(20), 20.0, 2000.0));
  double least = 1e30;
  for (int round = 0; round < rounds; ++round) least = std::min(least, round_us(runs));
  return least;
}

// Processor time of all threads of this process.
double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Burn {
  double first_ms = 0;      // processor time in the first 50 ms after a run
  double idle_percent = 0;  // of one core, in the 200 ms after these
};

// Medians over five runs.
template <class F>
Burn burn_after(F&& run) {
  constexpr int kTrials = 5;
  double first[kTrials];
  double idle[kTrials];
  for (int i = 0; i < kTrials; ++i) {
    for (int j = 0; j < 100; ++j) run();
    const double ended = cpu_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double later = cpu_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    first[i] = later - ended;
    idle[i] = (cpu_ms() - later) / 200 * 100;
  }
  std::sort(first, first + kTrials);
  std::sort(idle, idle + kTrials);
  return {first[kTrials / 2], idle[kTrials / 2]};
}

struct OurPool {
  neo::Team& team;

  int size() const { return team.size(); }

  template <class F>
  void for_each(int tasks, F&& f) const {
    team.parallel_for(tasks, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) f();
    });
  }
};

struct OpenMp {
  int threads;

  int size() const { return threads; }

  template <class F>
  void for_each(int tasks, F&& f) const {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < tasks; ++i) f();
  }
};

constexpr int kTasks = 16;
constexpr std::array kLoops = {100, 1000, 10000};

// The figures of one pool, in the order of the lines that main() prints.
template <class Pool>
std::vector<double> measure(const Pool& pool) {
  std::vector<double> figures;
  figures.push_back(time_us([&] { pool.for_each(pool.size(), [] { compute(0); }); }));
  // Every member waits for all others inside the step: the full round trip, none of it skipped.
  figures.push_back(time_us([&] {
    members_arrived = 0;
    pool.for_each(pool.size(), [&] {
      members_arrived.fetch_add(1);
      while (members_arrived.load() < pool.size()) {
      }
    });
  }));
  for (const int loops : kLoops) figures.push_back(time_us([&] { pool.for_each(kTasks, [&] { compute(loops); }); }));
  const Burn burn = burn_after([&] { pool.for_each(pool.size(), [] { compute(1000); }); });
  figures.push_back(burn.first_ms);
  figures.push_back(burn.idle_percent);
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (argc > 2) rounds = std::atoi(argv[2]);
  neo::ThreadPool& pool = neo::process_thread_pool();
  const std::unique_ptr<neo::Team> team = pool.lease(threads);
  omp_set_num_threads(team->size());
  std::printf("%d threads asked, %d in the team\n%-34s %10s %10s\n", threads, team->size(), "us per run (best round)",
              "neo", "OpenMP");
  std::vector<std::string> labels = {"empty tasks", "every member takes part"};
  for (const int loops : kLoops) {
    const double serial = time_us([&] {
      for (int i = 0; i < kTasks; ++i) compute(loops);
    });
    labels.push_back("16 tasks, " + std::to_string(std::lround(serial)) + " us on one thread");
  }
  labels.emplace_back("CPU ms in the 50 ms after a run");
  labels.emplace_back("% of a core, 50 to 250 ms after");
  // First, before OpenMP has threads that wait.
  const std::vector<double> ours = measure(OurPool{*team});
  const std::vector<double> theirs = measure(OpenMp{team->size()});
  for (size_t i = 0; i < labels.size(); ++i) {
    std::printf("%-34s %10.3f %10.3f\n", labels[i].c_str(), ours[i], theirs[i]);
  }
}
