#include "runtime/scheduler.h"

#include <algorithm>
#include <bit>

namespace neo {
namespace {

// Between two calls of Work::wait.
constexpr int64_t kWaitUs = 50'000;

}  // namespace

void CriticalPathFirst::start(const std::vector<double>& levels_us) {
  heap_.clear();
  levels_us_ = levels_us.data();
}

bool CriticalPathFirst::is_later(uint32_t a, uint32_t b) const {
  return levels_us_[a] != levels_us_[b] ? levels_us_[a] < levels_us_[b] : a > b;
}

void CriticalPathFirst::push(uint32_t item) {
  heap_.push_back(item);
  std::push_heap(heap_.begin(), heap_.end(), [this](uint32_t a, uint32_t b) { return is_later(a, b); });
}

uint32_t CriticalPathFirst::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), [this](uint32_t a, uint32_t b) { return is_later(a, b); });
  const uint32_t item = heap_.back();
  heap_.pop_back();
  return item;
}

bool CriticalPathFirst::is_before(const CriticalPathFirst& other) const {
  return is_later(other.heap_.front(), heap_.front());
}

void FirstInFirstOut::start(const std::vector<double>&) {
  items_.clear();
  next_ = 0;
}

template <class Policy>
Scheduler<Policy>::Scheduler(int executors)
    : executors_(executors),
      lanes_(new Lane[static_cast<size_t>(executors)]),
      idle_(new std::atomic<uint64_t>[(static_cast<size_t>(executors) + kBits - 1) / kBits]) {}

template <class Policy>
void Scheduler<Policy>::start(const Work& work, Executors& executors) {
  const Dependencies& order = *work.order;
  const size_t items = order.waits.size();
  if (items > capacity_) {
    waits_.reset(new std::atomic<int32_t>[items]);
    following_.reset(new uint32_t[items]);
    for (int e = 0; e < executors_; ++e) lanes_[e].triggered.reset(new uint32_t[items]);
    ready_.reserve(items);
    callers_.reserve(items);
    capacity_ = items;
  }
  work_ = work;
  teams_ = &executors;
  ready_.start(order.levels_us);
  callers_.start(order.levels_us);
  for (size_t i = 0; i < items; ++i) {
    waits_[i].store(order.waits[i], std::memory_order_relaxed);
    if (order.waits[i] == 0) (order.needs_caller[i] ? callers_ : ready_).push(static_cast<uint32_t>(i));
  }
  for (int e = 0; e < executors_; ++e) {
    Lane& lane = lanes_[e];
    lane.next.store(kNothing, std::memory_order_relaxed);
    lane.end.store(0, std::memory_order_relaxed);
    lane.begin = 0;
    lane.is_posted = e == 0 || e >= executors.size();
  }
  for (size_t w = 0; w * kBits < static_cast<size_t>(executors_); ++w) idle_[w].store(0, std::memory_order_relaxed);
  left_.store(items, std::memory_order_relaxed);
  requests_.store(0, std::memory_order_relaxed);
  is_stopped_.store(false, std::memory_order_relaxed);
}

template <class Policy>
bool Scheduler<Policy>::run(const Work& work, Executors& executors) {
  if (work.order->waits.empty()) return true;
  start(work, executors);
  executors.begin([](void* self, int executor) { static_cast<Scheduler*>(self)->work_as(executor); }, this);
  try {
    work_as(0);
  } catch (...) {
    stop();
    executors.end();
    throw;
  }
  // Who hands out may tell a leader to come, which end() must know of.
  while (requests_.load() != 0) pause_briefly();
  executors.end();
  return !is_stopped_.load(std::memory_order_relaxed);
}

template <class Policy>
void Scheduler<Policy>::work_as(int executor) {
  set_idle(executor);
  request(executor);
  for (uint32_t item = take(executor); item != kEnded; item = take(executor)) {
    run_from(executor, item);
  }
}

// The next item of an executor, for which it waits; kEnded where there is none any more.
template <class Policy>
uint32_t Scheduler<Policy>::take(int executor) {
  StateWord& next = lanes_[executor].next;
  uint32_t word = kNothing;
  const auto has_word = [&] { return (word = next.load(std::memory_order_acquire)) < kAsleep; };
  while (!is_stopped_.load()) {
    if (poll(teams_->spin_us(), has_word)) {
      if (word == kEnded) return kEnded;
      next.store(kNothing, std::memory_order_relaxed);
      return is_stopped_.load() ? static_cast<uint32_t>(kEnded) : word;
    }
    uint32_t nothing = kNothing;
    if (next.compare_exchange_strong(nothing, kAsleep, std::memory_order_acq_rel)) {
      sleep_while(next, kAsleep, executor == 0 ? kWaitUs : 0);
      uint32_t asleep = kAsleep;
      next.compare_exchange_strong(asleep, kNothing, std::memory_order_acq_rel);
    }
    if (executor == 0) work_.wait(work_.context);
  }
  return kEnded;
}

// Runs an item, and after it what it triggers of little work.
template <class Policy>
void Scheduler<Policy>::run_from(int executor, uint32_t item) {
  following_[item] = kNothing;
  for (uint32_t own = item; own != kNothing;) {
    const uint32_t now = own;
    own = following_[now];
    if (!work_.execute(work_.context, now, executor)) return stop();
    const bool has_others = trigger(executor, now, own);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      for (int e = 0; e < executors_; ++e) {
        if (lanes_[e].next.exchange(kEnded, std::memory_order_acq_rel) == kAsleep) wake_sleeper(lanes_[e].next);
      }
      return;
    }
    if (has_others && own != kNothing) request(executor);
  }
  set_idle(executor);
  request(executor);
}

// Triggers items that waited for this one alone, small ones before `own`; returns whether there are others.
template <class Policy>
bool Scheduler<Policy>::trigger(int executor, uint32_t item, uint32_t& own) {
  const Dependencies& order = *work_.order;
  Lane& lane = lanes_[executor];
  const size_t before = lane.end.load(std::memory_order_relaxed);
  size_t end = before;
  for (const uint32_t after : order.after(item)) {
    if (waits_[after].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (order.is_small[after] && (executor == 0 || !order.needs_caller[after])) {
      following_[after] = own;
      own = after;
    } else {
      lane.triggered[end++] = after;
    }
  }
  if (end != before) lane.end.store(end, std::memory_order_release);
  return end != before;
}

template <class Policy>
void Scheduler<Policy>::set_idle(int executor) {
  const auto e = static_cast<size_t>(executor);
  idle_[e / kBits].fetch_or(uint64_t{1} << e % kBits, std::memory_order_acq_rel);
}

template <class Policy>
bool Scheduler<Policy>::is_idle(int executor) const {
  const auto e = static_cast<size_t>(executor);
  return (idle_[e / kBits].load(std::memory_order_acquire) >> e % kBits & 1) != 0;
}

// The first executor without work; -1: none.
template <class Policy>
int Scheduler<Policy>::find_idle() const {
  for (size_t w = 0; w * kBits < static_cast<size_t>(executors_); ++w) {
    const uint64_t idle = idle_[w].load(std::memory_order_acquire);
    if (idle != 0) return static_cast<int>(w * kBits) + std::countr_zero(idle);
  }
  return -1;
}

template <class Policy>
void Scheduler<Policy>::give(int executor, Policy& from) {
  const auto e = static_cast<size_t>(executor);
  idle_[e / kBits].fetch_and(~(uint64_t{1} << e % kBits), std::memory_order_acq_rel);
  StateWord& next = lanes_[executor].next;
  if (next.exchange(from.pop(), std::memory_order_acq_rel) == kAsleep) wake_sleeper(next);
}

// Hands out what waits, or has the thread do so that is at it.
template <class Policy>
void Scheduler<Policy>::request(int executor) {
  if (requests_.fetch_add(1) != 0) return;
  for (int seen = 1; seen != 0;) {
    hand_out(executor);
    seen = requests_.fetch_sub(seen) - seen;  // those that came meanwhile
  }
}

template <class Policy>
void Scheduler<Policy>::hand_out(int executor) {
  const Dependencies& order = *work_.order;
  for (int e = 0; e < executors_; ++e) {
    Lane& lane = lanes_[e];
    for (const size_t end = lane.end.load(std::memory_order_acquire); lane.begin < end; ++lane.begin) {
      const uint32_t item = lane.triggered[lane.begin];
      (order.needs_caller[item] ? callers_ : ready_).push(item);
    }
  }
  if (is_stopped_.load()) return;
  if (callers_.size() > 0 && is_idle(0) && (ready_.size() == 0 || callers_.is_before(ready_))) give(0, callers_);
  // The executor at hand has what it just wrote in its own caches.
  if (ready_.size() > 0 && is_idle(executor)) give(executor, ready_);
  for (int e = 0; ready_.size() > 0 && (e = find_idle()) >= 0;) give(e, ready_);
  if (callers_.size() > 0 && is_idle(0)) give(0, callers_);
  // A leader that is told to come takes an item when it is there.
  size_t wanted = ready_.size();
  for (int e = 1; wanted > 0 && e < executors_; ++e) {
    if (lanes_[e].is_posted) continue;
    lanes_[e].is_posted = true;
    teams_->post(e);
    --wanted;
  }
}

// Has all executors end after what they run.
template <class Policy>
void Scheduler<Policy>::stop() {
  is_stopped_.store(true);
  for (int e = 0; e < executors_; ++e) {
    if (lanes_[e].next.exchange(kEnded, std::memory_order_acq_rel) == kAsleep) wake_sleeper(lanes_[e].next);
  }
  // Nobody hands out any more once those at it are done.
  while (requests_.load() != 0) pause_briefly();
}

template class Scheduler<CriticalPathFirst>;
template class Scheduler<FirstInFirstOut>;

}  // namespace neo
