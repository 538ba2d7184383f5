#include "lower/simulate.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "exec/dependencies.h"

namespace neo {
namespace {

constexpr double kHandOverUs = 3;  // from the completion on one executor to a start on another
constexpr double kFirstUs = 20;    // until a leader that slept is there
constexpr double kTrips = 8;       // of a loop whose trips only running tells

double time_on(const Block& block, int threads, int estimated_at) {
  double sum = 0;
  for (const Region& region : block.regions) {
    for (const Item& item : region.items) sum += neo::time_on(item, threads, estimated_at);
  }
  return sum;
}

// List scheduling: whenever an executor is free, the waiting item that is first in `ready_order` starts.
double schedule_region(const Dependencies& order, std::span<const double> times, int executors,
                       ReadyOrder ready_order) {
  std::vector<double> levels = levels_of(order, {times.begin(), times.end()});
  double came = 0;  // items that became ready
  std::vector<int32_t> waits = order.waits;
  using Ready = std::pair<double, uint32_t>;
  std::priority_queue<Ready> ready, callers;
  const auto add = [&](uint32_t item) {
    if (ready_order == ReadyOrder::FirstInFirstOut) levels[item] = -(came++);
    (order.needs_caller[item] ? callers : ready).push({levels[item], item});
  };
  for (uint32_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) add(i);
  }
  struct Running {
    double end_us;
    int executor;
    uint32_t item;
    bool operator<(const Running& other) const { return end_us > other.end_us; }
  };
  std::priority_queue<Running> running;
  std::vector<bool> is_idle(static_cast<size_t>(executors), true), has_come(static_cast<size_t>(executors), false);
  has_come.front() = true;
  double now = 0;
  int last = 0;  // the executor that has just completed an item, which takes the next one without a delay
  const auto start = [&](int executor, std::priority_queue<Ready>& from) {
    const uint32_t item = from.top().second;
    from.pop();
    const auto e = static_cast<size_t>(executor);
    const double delay = executor == last ? 0 : has_come[e] ? kHandOverUs : kFirstUs;
    has_come[e] = true;
    is_idle[e] = false;
    running.push({now + delay + times[item], executor, item});
  };
  for (;;) {
    if (!callers.empty() && is_idle[0] && (ready.empty() || callers.top() > ready.top())) start(0, callers);
    if (!ready.empty() && is_idle[static_cast<size_t>(last)]) start(last, ready);
    for (int e = 0; e < executors && !ready.empty(); ++e) {
      if (is_idle[static_cast<size_t>(e)]) start(e, ready);
    }
    if (!callers.empty() && is_idle[0]) start(0, callers);
    if (running.empty()) return now;
    const Running done = running.top();
    running.pop();
    now = done.end_us;
    last = done.executor;
    is_idle[static_cast<size_t>(last)] = true;
    for (const uint32_t after : order.after(done.item)) {
      if (--waits[after] == 0) add(after);
    }
  }
}

}  // namespace

double time_on(const Item& item, int threads, int estimated_at) {
  if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    return std::max(time_on(*branch->then_block, threads, estimated_at),
                    time_on(*branch->else_block, threads, estimated_at));
  }
  if (const auto* loop = std::get_if<LoopItem>(&item.what)) return kTrips * time_on(*loop->body, threads, estimated_at);
  if (threads == estimated_at || estimated_at == 1 || item.alone_us <= 0) return item.estimate_us;
  // alone = fixed + shared, estimate = fixed + shared / estimated_at
  const double parts = estimated_at;
  const double shared = (item.alone_us - item.estimate_us) * parts / (parts - 1);
  return std::max(item.alone_us - shared + shared / threads, 0.0);
}

Makespan simulate(const Plan& plan, int executors, std::span<const double> times_us, ReadyOrder ready_order) {
  Makespan all;
  for (const Region& region : plan.root->regions) {
    const std::span<const double> times = times_us.first(region.items.size());
    times_us = times_us.subspan(times.size());
    const double work = std::accumulate(times.begin(), times.end(), 0.0);
    const Dependencies& order = region.dependencies;
    const std::vector<double> levels = levels_of(order, {times.begin(), times.end()});
    const double critical = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end());
    all.bound_us += std::max(critical, work / executors);
    const bool is_sequential = executors == 1 || !has_branches(order);
    all.time_us += is_sequential ? work : std::min(work, schedule_region(order, times, executors, ready_order));
  }
  return all;
}

Makespan simulate(const Plan& plan, const Configuration& configuration, int estimated_at) {
  std::vector<double> times;
  for (const Region& region : plan.root->regions) {
    for (const Item& item : region.items) times.push_back(time_on(item, configuration.threads, estimated_at));
  }
  return simulate(plan, configuration.executors, times, ReadyOrder::CriticalPathFirst);
}

}  // namespace neo
