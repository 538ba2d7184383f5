#include "runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/float_mode.h"
#include "base/knobs.h"
#include "base/topology.h"
#include "runtime/cpu_mask.h"
#include "runtime/futex.h"
#include "runtime/phased_run.h"

namespace neo {
namespace {

// Parts of a member's share that it takes one by one; of what it has not taken others take over the half at the end, so
// that tasks which go on where the one before ended mostly do.
constexpr int64_t kChunksPerMember = 16;

enum SlotState : uint32_t {
  kIdle,     // nothing to do; the worker polls
  kAsleep,   // nothing to do; the worker sleeps on the slot
  kPosted,   // the team has work; the worker has not begun, and the team may still take the work back
  kRunning,  // the worker is at work
  kAwaited,  // the worker is at work and the team sleeps on the slot
  kStopped,  // the worker must end
};

// Which task this thread is in, if any.
struct InTask {
  const Team* team = nullptr;
  int member = 0;
};
constinit thread_local InTask in_task;

// All but those that a thread's own code raises and those of profilers.
sigset_t signals_for_other_threads() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&signals, signal);
  }
  return signals;
}

}  // namespace

// Who gives a worker work.
class Employer {
 public:
  // Runs a member's part of the work at hand.
  virtual void work_as(int member) = 0;
  // The caller's: the bits of a result must not depend on which thread computes it.
  virtual uint64_t wanted_float_mode() const = 0;
  virtual int64_t spin_us() const = 0;

 protected:
  ~Employer() = default;
};

// One thread and the slot through which its team, or who leads a team through it, gives it work.
class Worker {
 public:
  // Throws std::system_error where the system refuses a thread.
  Worker(int index, const ThreadPoolOptions& options) : index_(index), mask_(mask_of(index, options)), all_(mask_) {
    sigset_t before;
    const sigset_t masked = signals_for_other_threads();
    pthread_sigmask(SIG_BLOCK, &masked, &before);
    try {
      thread_ = std::thread([this, index, spin_us = options.spin_us, mask = mask_] {
        char name[16];
        std::snprintf(name, sizeof name, "neo-worker-%d", index % 1000);
        pthread_setname_np(pthread_self(), name);
        mask.bind(pthread_self());
        work(spin_us);
      });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  int index() const { return index_; }

  // The CPU on which it last began work; -1: not known.
  int cpu() const { return cpu_.load(std::memory_order_relaxed); }

  // Whether its last work was done by others before it began.
  bool is_late() const { return is_late_; }

  // Takes it away from some CPUs, if there are others that it may use. For who leads it, before post().
  void keep_off(const CpuMask& cpus) {
    const CpuMask free = all_.without(cpus);
    cpu_.store(-1, std::memory_order_relaxed);
    // Somebody else may have bound the thread: then it stays so.
    if (free.is_empty() || free == mask_ || CpuMask::of(thread_.native_handle()) != mask_) return;
    mask_ = free;
    mask_.bind(thread_.native_handle());
  }

  // Called while nobody has the worker.
  void assign(Employer* employer, int member) {
    employer_ = employer;
    member_ = member;
  }

  // Hands out the employer's work; what was written before is visible to the worker.
  void post() {
    if (slot_.exchange(kPosted, std::memory_order_acq_rel) == kAsleep) wake_sleeper(slot_);
  }

  // Takes posted work back, or waits until the worker is done with it; what the worker wrote is visible then.
  void revoke_or_wait(int64_t spin_us) {
    uint32_t state = kPosted;
    is_late_ = slot_.compare_exchange_strong(state, kIdle, std::memory_order_acq_rel);
    if (is_late_) return;
    const auto is_done = [&] { return slot_.load(std::memory_order_acquire) < kPosted; };
    if (poll(spin_us, is_done)) return;
    state = kRunning;
    slot_.compare_exchange_strong(state, kAwaited, std::memory_order_acq_rel);
    while (!is_done()) sleep_while(slot_, kAwaited);
  }

  // Ends the thread; called while nobody has the worker.
  void stop() {
    if (slot_.exchange(kStopped, std::memory_order_acq_rel) == kAsleep) wake_sleeper(slot_);
    thread_.join();
  }

 private:
  static CpuMask mask_of(int index, const ThreadPoolOptions& options) {
    const std::vector<int>& cpus = options.cpus;
    if (cpus.empty()) return CpuMask::of(pthread_self());
    return options.pins_workers ? CpuMask({cpus[static_cast<size_t>(index + 1) % cpus.size()]}) : CpuMask(cpus);
  }

  void work(int64_t spin_us) noexcept;
  bool wait_for_work(int64_t spin_us);

  alignas(kSeparate) StateWord slot_{kIdle};
  std::atomic<int> cpu_{-1};
  Employer* employer_ = nullptr;  // written by assign, read after post
  int member_ = 0;
  const int index_;
  bool is_late_ = false;  // the leader's
  CpuMask mask_;          // where the thread is bound to
  const CpuMask all_;     // that it may be bound to
  std::thread thread_;
};

// Members that are on one CPU would take turns there while others idle. Systems mostly see to it, but some leave such
// threads together for as long as they live, those among them that keep a virtual machine on few CPUs.

// Before workers that are leased begin: takes those away that are where another one is.
void spread(const std::vector<Worker*>& workers) {
  if (workers.size() < 2) return;
  CpuMask all, taken;
  for (const Worker* worker : workers) all.add(worker->cpu());
  for (Worker* worker : workers) {
    const int cpu = worker->cpu();
    if (taken.has(cpu)) worker->keep_off(all);
    taken.add(cpu);
  }
}

// Before work is posted to the first of the workers: takes those away that are on the CPU of the calling thread, which
// leads them. One that was late may be waiting for that CPU.
void keep_off_leader(const std::vector<Worker*>& workers, size_t count) {
  const int leader = current_cpu();
  for (size_t i = 0; i < count; ++i) {
    if (workers[i]->is_late() || workers[i]->cpu() == leader) workers[i]->keep_off(CpuMask({leader}));
  }
}

class alignas(kSeparate) LeasedTeam final : public Team, public Employer {
 public:
  LeasedTeam(ThreadPool& pool, const std::vector<Worker*>& workers)
      : pool_(pool), workers_(workers), shares_(new Share[workers.size() + 1]), phased_(size()) {
    spread(workers_);
    for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->assign(this, static_cast<int>(i) + 1);
  }

  ~LeasedTeam() override { pool_.give_back(workers_, size()); }

  int size() const override { return static_cast<int>(workers_.size()) + 1; }

  // An exception from a task ends the process.
  void run(int64_t count, Task task, void* context) noexcept override {
    if (count <= 0) return;
    if (in_task.team != nullptr) {
      task(context, 0, count, in_task.team == this ? in_task.member : 0);
      return;
    }
    const int parts = static_cast<int>(std::min<int64_t>(count, size()));
    if (parts == 1) {
      in_task = {this, 0};
      task(context, 0, count, 0);
      in_task = {};
      return;
    }
    task_ = task;
    context_ = context;
    count_ = count;
    unit_ = (count - 1) / Range::kMax + 1;
    const int64_t units = (count - 1) / unit_ + 1;
    chunk_ = std::max<int64_t>(1, units / (parts * kChunksPerMember));
    for (int i = 0; i < parts; ++i) {
      shares_[i].left.store(Range::of(units * i / parts, units * (i + 1) / parts).bits, std::memory_order_relaxed);
    }
    work_together(parts);
  }

  // Members that share cores would wait for each other in every phase: they fork and join instead.
  void run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task,
                  void* context) noexcept override {
    const int parts = static_cast<int>(std::min<int64_t>(count, size()));
    if (in_task.team != nullptr || parts <= 1 || phases <= 1 || spin_us() <= 0) {
      Team::run_phases(phases, count, changes, task, context);
      return;
    }
    task_ = nullptr;
    phased_.start(phases, count, parts, changes, task, context);
    work_together(parts);
  }

  void work_as(int member) override {
    in_task = {this, member};
    if (task_ != nullptr)
      work_on_shares(member);
    else
      phased_.work_as(member);
    in_task = {};
  }

  uint64_t wanted_float_mode() const override { return float_mode_; }

  // Polling is for threads that have a core of their own.
  int64_t spin_us() const override { return pool_.leased_threads() > pool_.capacity() ? 0 : pool_.spin_us(); }

 private:
  // Units of tasks, in one word.
  struct Range {
    static constexpr uint32_t kMax = UINT32_MAX;
    uint64_t bits = 0;

    static Range of(int64_t begin, int64_t end) {
      return {static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end)};
    }
    int64_t begin() const { return static_cast<int64_t>(bits >> 32); }
    int64_t end() const { return static_cast<int64_t>(bits & kMax); }
    int64_t size() const { return end() - begin(); }
  };

  struct alignas(kSeparate) Share {
    std::atomic<uint64_t> left{0};  // a Range: what nobody has taken

    // Up to `most` units from its begin, or half of them from its end; empty where none are left.
    Range take(int64_t most) {
      return cut([&](Range left) { return left.begin() + std::min(most, left.size()); }, true);
    }
    Range take_half() {
      return cut([](Range left) { return left.begin() + left.size() / 2; }, false);
    }

   private:
    template <class Cut>
    Range cut(Cut&& place, bool takes_first) {
      Range now{left.load(std::memory_order_relaxed)};
      while (now.size() > 0) {
        const Range first = Range::of(now.begin(), place(now)), second = Range::of(first.end(), now.end());
        const Range& kept = takes_first ? second : first;
        if (left.compare_exchange_weak(now.bits, kept.bits, std::memory_order_relaxed)) {
          return takes_first ? first : second;
        }
      }
      return {};
    }
  };

  void work_together(int parts) {
    parts_ = parts;
    float_mode_ = float_mode();
    keep_off_leader(workers_, static_cast<size_t>(parts_) - 1);
    for (int i = 1; i < parts_; ++i) workers_[static_cast<size_t>(i) - 1]->post();
    work_as(0);
    for (int i = 1; i < parts_; ++i) workers_[static_cast<size_t>(i) - 1]->revoke_or_wait(spin_us());
  }

  // Does the member's own share, then takes over what is left of others' until there is nothing.
  void work_on_shares(int member) {
    Share& own = shares_[member];
    for (int i = 0; i < parts_;) {
      for (Range taken = own.take(chunk_); taken.size() > 0; taken = own.take(chunk_)) {
        task_(context_, taken.begin() * unit_, std::min(taken.end() * unit_, count_), member);
      }
      const Range taken = shares_[(member + i) % parts_].take_half();
      if (taken.size() == 0) {
        ++i;
      } else {
        own.left.store(taken.bits, std::memory_order_relaxed);
        i = 1;
      }
    }
  }

  ThreadPool& pool_;
  const std::vector<Worker*> workers_;
  const std::unique_ptr<Share[]> shares_;

  // The run in progress: written before the workers' slots are posted, constant until all are idle again.
  Task task_ = nullptr;  // null: phases
  void* context_ = nullptr;
  int parts_ = 0;
  int64_t count_ = 0, unit_ = 1, chunk_ = 0;  // tasks; of a unit; units that a member takes from its share
  uint64_t float_mode_ = 0;

  PhasedRun phased_;
};

class LeasedExecutors final : public Executors, public Employer {
 public:
  // The workers in the order of the executors' members, without the first, which is the calling thread.
  LeasedExecutors(ThreadPool& pool, const std::vector<Worker*>& workers, size_t threads) : pool_(pool) {
    spread(workers);
    for (size_t begin = 0; begin <= workers.size(); begin += threads) {
      if (begin > 0) leaders_.push_back(workers[begin - 1]);
      const size_t end = std::min(begin + threads - 1, workers.size());
      const std::vector<Worker*> members(workers.begin() + static_cast<std::ptrdiff_t>(begin),
                                         workers.begin() + static_cast<std::ptrdiff_t>(end));
      teams_.push_back(std::make_unique<LeasedTeam>(pool, members));
    }
    for (size_t i = 0; i < leaders_.size(); ++i) leaders_[i]->assign(this, static_cast<int>(i) + 1);
  }

  ~LeasedExecutors() { pool_.give_back(leaders_, 0); }

  int size() const override { return static_cast<int>(teams_.size()); }
  Team& team(int executor) override { return *teams_[static_cast<size_t>(executor)]; }
  int64_t spin_us() const override { return teams_.front()->spin_us(); }

  void begin(Body body, void* context) override {
    body_ = body;
    context_ = context;
    float_mode_ = float_mode();
    keep_off_leader(leaders_, leaders_.size());
  }
  void post(int executor) override { leaders_[static_cast<size_t>(executor) - 1]->post(); }
  void end() override {
    for (Worker* leader : leaders_) leader->revoke_or_wait(spin_us());
  }

  void work_as(int member) override { body_(context_, member); }
  uint64_t wanted_float_mode() const override { return float_mode_; }

 private:
  ThreadPool& pool_;
  std::vector<std::unique_ptr<LeasedTeam>> teams_;
  std::vector<Worker*> leaders_;  // of all but the first
  Body body_ = nullptr;
  void* context_ = nullptr;
  uint64_t float_mode_ = 0;
};

bool Worker::wait_for_work(int64_t spin_us) {
  for (;;) {
    const auto has_word = [&] { return slot_.load(std::memory_order_relaxed) > kAsleep; };
    if (!poll(spin_us, has_word)) {
      uint32_t state = kIdle;
      if (slot_.compare_exchange_strong(state, kAsleep, std::memory_order_acq_rel)) {
        do {
          sleep_while(slot_, kAsleep);
        } while (slot_.load(std::memory_order_relaxed) == kAsleep);
      }
    }
    uint32_t state = kPosted;
    if (slot_.compare_exchange_strong(state, kRunning, std::memory_order_acq_rel)) return true;
    if (state == kStopped) return false;
  }
}

// A worker that woke too late for short work polls too, or it would be late for all that follows.
void Worker::work(int64_t spin_us) noexcept {
  uint64_t mode = float_mode();
  while (wait_for_work(spin_us)) {
    if (employer_->wanted_float_mode() != mode) set_float_mode(mode = employer_->wanted_float_mode());
    spin_us = employer_->spin_us();
    if (const int cpu = current_cpu(); cpu != cpu_.load(std::memory_order_relaxed)) {
      cpu_.store(cpu, std::memory_order_relaxed);
    }
    employer_->work_as(member_);
    if (slot_.exchange(kIdle, std::memory_order_acq_rel) == kAwaited) wake_sleeper(slot_);
  }
}

ThreadPoolOptions host_thread_pool_options() {
  const Topology& topology = host_topology();
  const std::string pin = knob_string(Knob::Pin);
  const bool is_subset = static_cast<int>(topology.cpus.size()) < topology.online_cpus;
  return {topology.usable_cpus(), knob_int(Knob::SpinUs), topology.placement(),
          pin == "on" || (pin == "auto" && is_subset)};
}

ThreadPool::ThreadPool(ThreadPoolOptions options) : options_(std::move(options)) {
  NEO_ASSERT(options_.capacity >= 1 && options_.spin_us >= 0, "for a thread pool. Got capacity ", options_.capacity,
             ", spin_us ", options_.spin_us);
}

ThreadPool::~ThreadPool() {
  stop();
}

std::vector<Worker*> ThreadPool::take_workers(size_t wanted, size_t unit, Oversubscribe oversubscribe) {
  std::vector<Worker*> taken;
  taken.reserve(wanted);
  const std::lock_guard lock(mutex_);
  const int members = leased_threads() + 1;
  if (oversubscribe == Oversubscribe::No) {
    wanted = std::min(wanted, static_cast<size_t>(std::max(options_.capacity - members, 0)));
  }
  if (in_task.team != nullptr || is_stopped_) wanted = 0;
  const auto whole = [&](size_t workers) { return workers < unit ? workers : (workers + 1) / unit * unit - 1; };
  wanted = whole(wanted);
  while (taken.size() < wanted && !free_.empty()) {
    taken.push_back(free_.back());
    free_.pop_back();
  }
  if (taken.size() < wanted) start_workers(wanted - taken.size(), taken);
  for (wanted = whole(taken.size()); taken.size() > wanted; taken.pop_back()) free_.push_back(taken.back());
  leased_threads_.store(members + static_cast<int>(taken.size()), std::memory_order_relaxed);
  return taken;
}

std::unique_ptr<Team> ThreadPool::lease(int threads, Oversubscribe oversubscribe) {
  const auto wanted = static_cast<size_t>(std::clamp(threads, 1, kMaxThreads) - 1);
  const std::vector<Worker*> taken = take_workers(wanted, 1, oversubscribe);
  try {
    return std::make_unique<LeasedTeam>(*this, taken);
  } catch (...) {
    give_back(taken, static_cast<int>(taken.size()) + 1);
    throw;
  }
}

std::unique_ptr<Executors> ThreadPool::lease_executors(int executors, int threads, Oversubscribe oversubscribe) {
  const auto unit = static_cast<size_t>(std::clamp(threads, 1, kMaxThreads));
  const size_t count = std::clamp<size_t>(static_cast<size_t>(std::max(executors, 1)), 1, kMaxThreads / unit);
  std::vector<Worker*> taken = take_workers(count * unit - 1, unit, oversubscribe);
  if (options_.pins_workers) {
    std::sort(taken.begin(), taken.end(), [](const Worker* a, const Worker* b) { return a->index() < b->index(); });
  }
  return std::make_unique<LeasedExecutors>(*this, taken, unit);
}

void ThreadPool::start_workers(size_t count, std::vector<Worker*>& started) {
  workers_.reserve(workers_.size() + count);
  free_.reserve(workers_.size() + count);
  try {
    for (size_t i = 0; i < count; ++i) {
      workers_.push_back(std::make_unique<Worker>(static_cast<int>(workers_.size()), options_));
      started.push_back(workers_.back().get());
    }
  } catch (const std::system_error&) {
    // The system refuses another thread: there are fewer.
  }
}

int ThreadPool::started_workers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(workers_.size());
}

void ThreadPool::give_back(const std::vector<Worker*>& workers, int members) {
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), workers.rbegin(), workers.rend());
  leased_threads_.fetch_sub(members, std::memory_order_relaxed);
}

void ThreadPool::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (Worker* worker : free_) worker->stop();
  std::erase_if(workers_, [&](const std::unique_ptr<Worker>& worker) {
    return std::find(free_.begin(), free_.end(), worker.get()) != free_.end();
  });
  free_.clear();
}

// Keeps the process's pool across fork and exit. The pool itself is never destroyed: at exit other threads may
// still hold teams, and in a child of fork its threads do not exist.
class ProcessPool {
 public:
  static ThreadPool& get() {
    ThreadPool* pool = pool_.load(std::memory_order_acquire);
    return pool != nullptr ? *pool : make();
  }

 private:
  static ThreadPool& make() {
    ThreadPoolOptions options = host_thread_pool_options();
    const std::lock_guard lock(mutex_);
    if (pool_.load(std::memory_order_relaxed) == nullptr) {
      static const bool is_registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
      NEO_CHECK(is_registered, Memory, "threads",
                "the system must register a fork handler. Got a refusal, expected memory for it");
      static const AtExit at_exit;
      pool_.store(new ThreadPool(std::move(options)), std::memory_order_release);
    }
    return *pool_.load(std::memory_order_relaxed);
  }

  static void before_fork() {
    mutex_.lock();
    if (ThreadPool* pool = pool_.load(std::memory_order_relaxed)) pool->mutex_.lock();
  }

  static void after_fork_in_parent() {
    if (ThreadPool* pool = pool_.load(std::memory_order_relaxed)) pool->mutex_.unlock();
    mutex_.unlock();
  }

  static void after_fork_in_child() {
    if (ThreadPool* pool = pool_.exchange(nullptr, std::memory_order_relaxed)) {
      pool->mutex_.unlock();
      abandoned_ = new Abandoned{pool, abandoned_};
    }
    mutex_.unlock();
  }

  // Pools of the processes that this one was forked from: teams may still refer to them.
  struct Abandoned {
    ThreadPool* pool;
    const Abandoned* next;
  };

  struct AtExit {
    ~AtExit() {
      if (ThreadPool* pool = pool_.load(std::memory_order_acquire)) pool->stop();
    }
  };

  static inline std::mutex mutex_;
  static inline std::atomic<ThreadPool*> pool_{nullptr};
  static inline const Abandoned* abandoned_ = nullptr;
};

ThreadPool& process_thread_pool() {
  return ProcessPool::get();
}

}  // namespace neo
