// What it costs to spread one step over a team: the pool beside OpenMP, on steps of several sizes.
// Build with -fopenmp; run with OMP_NUM_THREADS unset. Usage: fork_join [threads]

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/thread_pool.h"

namespace {

constexpr int kRounds = 15;
constexpr int kRunsPerRound = 2000;

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
  double least = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRunsPerRound; ++i) run();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    least = std::min(least, elapsed.count() / kRunsPerRound);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  neo::ThreadPool& pool = neo::process_thread_pool();
  const std::unique_ptr<neo::Team> team = pool.lease(threads);
  omp_set_num_threads(team->size());
  std::printf("%d threads asked, %d in the team\n%-34s %10s %10s\n", threads, team->size(), "us per run (best round)",
              "neo", "OpenMP");

  const double empty = time_us([&] { team->parallel_for(team->size(), [](int64_t, int64_t, int) {}); });
  const double empty_omp = time_us([&] {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < team->size(); ++i) compute(0);
  });
  std::printf("%-34s %10.3f %10.3f\n", "empty tasks", empty, empty_omp);

  // Every member waits for all others inside the step: the full round trip, none of it skipped.
  const double meet = time_us([&] {
    members_arrived = 0;
    team->parallel_for(team->size(), [&](int64_t, int64_t, int) {
      members_arrived.fetch_add(1);
      while (members_arrived.load() < team->size()) {
      }
    });
  });
  const double meet_omp = time_us([&] {
    members_arrived = 0;
#pragma omp parallel
    {
      members_arrived.fetch_add(1);
      while (members_arrived.load() < team->size()) {
      }
    }
  });
  std::printf("%-34s %10.3f %10.3f\n", "every member takes part", meet, meet_omp);

  for (const int loops : {100, 1000, 10000}) {
    constexpr int kTasks = 16;
    const double serial = time_us([&] {
      for (int i = 0; i < kTasks; ++i) compute(loops);
    });
    const double ours = time_us([&] {
      team->parallel_for(kTasks, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) compute(loops);
      });
    });
    const double theirs = time_us([&] {
#pragma omp parallel for schedule(static)
      for (int i = 0; i < kTasks; ++i) compute(loops);
    });
    char label[64];
    std::snprintf(label, sizeof label, "16 tasks, %.2f us on one thread", serial);
    std::printf("%-34s %10.3f %10.3f\n", label, ours, theirs);
  }
}
