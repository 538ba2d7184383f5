// Calls a saved network whose one input is a float32 image, over neo's thread pool or over OpenMP's: the same plan, the
// same kernels and the same division into tasks. For each line of standard input it calls for a while and prints the
// median milliseconds. `python -m benchmarks.pool_networks` builds and feeds it.
//
//   pool_networks neo|openmp THREADS module.neo N C H W

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"
#include "routines/routine.h"
#include "runtime/run.h"
#include "runtime/thread_pool.h"
#include "saved/saved.h"

namespace {

constexpr double kSliceSeconds = 0.3;
constexpr size_t kMinCalls = 5;

// The twin of a leased team: OpenMP's threads take the tasks in equal shares.
class OpenMpTeam final : public neo::Team {
 public:
  explicit OpenMpTeam(int threads) : threads_(threads) {}
  int size() const override { return threads_; }
  void run(int64_t count, Task task, void* context) override {
    const int64_t parts = std::min<int64_t>(threads_, count);
#pragma omp parallel for schedule(static, 1) num_threads(threads_)
    for (int64_t i = 0; i < parts; ++i) task(context, count * i / parts, count * (i + 1) / parts, static_cast<int>(i));
  }

 private:
  int threads_;
};

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc < 5) return 2;
  const int threads = std::atoi(argv[2]);
  const neo::SavedModule saved =
      neo::load_module(neo::map_file(argv[3]), argv[3], neo::standard_ops(), neo::standard_routines());
  neo::Dims dims;
  for (int i = 4; i < argc; ++i) dims.push_back(std::atoll(argv[i]));
  neo::Tensor x(neo::DType::Float32, dims);
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i * 7919 % 1000) * 0.002f - 1.0f;
  const std::vector<neo::HostValue> inputs = {neo::HostValue(x)};
  std::unique_ptr<neo::Team> team;
  if (std::string(argv[1]) == "neo") {
    team = neo::process_thread_pool().lease(threads);
  } else {
    team = std::make_unique<OpenMpTeam>(threads);
  }
  neo::OneExecutor executor(*team);
  neo::Run run(saved.plan, std::make_shared<neo::BindingCache>());
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<double> times;
    const auto begin = Clock::now();
    while (times.size() < kMinCalls || Clock::now() - begin < std::chrono::duration<double>(kSliceSeconds)) {
      const auto start = Clock::now();
      run.call(inputs, executor);
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    std::printf("%.4f\n", times[times.size() / 2]);
    std::fflush(stdout);
  }
}
