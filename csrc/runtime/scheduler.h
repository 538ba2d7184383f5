#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/executors.h"
#include "exec/plan.h"
#include "runtime/futex.h"

namespace neo {

// The items that wait for an executor, the one with the longest way to the end first: Graphi (section 4.3).
class CriticalPathFirst {
 public:
  void reserve(size_t items) { heap_.reserve(items); }
  void start(const std::vector<double>& levels_us);
  size_t size() const { return heap_.size(); }
  void push(uint32_t item);
  uint32_t pop();
  // Whether its next item goes before another policy's next; neither is empty.
  bool is_before(const CriticalPathFirst& other) const;

 private:
  bool is_later(uint32_t a, uint32_t b) const;

  std::vector<uint32_t> heap_;
  const double* levels_us_ = nullptr;
};

// The one that has waited longest first.
class FirstInFirstOut {
 public:
  void reserve(size_t items) { items_.reserve(items); }
  void start(const std::vector<double>&);
  size_t size() const { return items_.size() - next_; }
  void push(uint32_t item) { items_.push_back(item); }
  uint32_t pop() { return items_[next_++]; }
  bool is_before(const FirstInFirstOut&) const { return true; }

 private:
  std::vector<uint32_t> items_;
  size_t next_ = 0;
};

// Runs the items of a region on several executors, each item after all that it waits for. There is no thread that only
// schedules: whoever completes an item hands out what waits, unless another thread is at it, which then does it once
// more. Running takes no lock and no memory.
template <class Policy>
class Scheduler {
 public:
  explicit Scheduler(int executors);
  int executors() const { return executors_; }

  struct Work {
    const Dependencies* order = nullptr;
    void* context = nullptr;
    // Runs an item; false: nothing more is to be run. May throw on executor 0 only.
    bool (*execute)(void* context, uint32_t item, int executor) = nullptr;
    // Called on executor 0 now and then while it has nothing to do; may throw.
    void (*wait)(void* context) = nullptr;
  };
  // Returns on the calling thread, which leads executor 0, when all items were run, or when it was told to run no more;
  // false then. Exceptions go through once no executor runs any more.
  bool run(const Work& work, Executors& executors);

 private:
  static constexpr size_t kBits = 64;
  // Values of Lane::next beside the numbers of items.
  enum Word : uint32_t { kNothing = UINT32_MAX, kAsleep = UINT32_MAX - 1, kEnded = UINT32_MAX - 2 };

  // The queue and state of one executor.
  struct alignas(kSeparate) Lane {
    StateWord next{kNothing};               // the item that it is to run: a buffer of one operation
    std::unique_ptr<uint32_t[]> triggered;  // items that became ready after its own, in order; each comes once
    std::atomic<size_t> end{0};             // of these; written by the executor
    size_t begin = 0;                       // of those that were not looked at; the scheduling thread's
    bool is_posted = false;                 // its leader was told to come; the scheduling thread's
  };

  void start(const Work& work, Executors& executors);
  void work_as(int executor);
  uint32_t take(int executor);
  void run_from(int executor, uint32_t item);
  bool trigger(int executor, uint32_t item, uint32_t& own);
  void set_idle(int executor);
  bool is_idle(int executor) const;
  int find_idle() const;
  void give(int executor, Policy& from);
  void request(int executor);
  void hand_out(int executor);
  void stop();

  const int executors_;
  size_t capacity_ = 0;  // items that there is room for
  std::unique_ptr<Lane[]> lanes_;
  std::unique_ptr<std::atomic<int32_t>[]> waits_;  // by item: how many it still waits for
  std::unique_ptr<uint32_t[]> following_;          // by item that its executor runs itself: the next such one
  std::unique_ptr<std::atomic<uint64_t>[]> idle_;  // a bit for each executor without work
  Policy ready_, callers_;                         // that any executor may run, and the caller's alone
  Work work_;
  Executors* teams_ = nullptr;
  alignas(kSeparate) std::atomic<size_t> left_{0};   // items that were not run
  alignas(kSeparate) std::atomic<int> requests_{0};  // for handing out; above 0 somebody does
  std::atomic<bool> is_stopped_{false};
};

extern template class Scheduler<CriticalPathFirst>;
extern template class Scheduler<FirstInFirstOut>;

}  // namespace neo
