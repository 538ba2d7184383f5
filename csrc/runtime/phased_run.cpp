#include "runtime/phased_run.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <chrono>
#endif

namespace neo {
namespace {

// How often a member looks for the end of a phase before it takes over what others have not begun, and before it lets
// the system run another thread.
constexpr int kPatientLooks = 1000;
constexpr int kLooksBetweenHelp = 8;

// Of the time of a phase, below which ranges change: what a member has not read before is far from it.
constexpr double kWorthwhile = 0.95;

// A clock of all cores, in any unit.
int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__rdtsc());
#elif defined(__aarch64__)
  int64_t now;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
  return static_cast<int64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace

void share_by_speed(int64_t count, std::span<const double> speeds, std::span<int64_t> ends) {
  double all = 0, sum = 0;
  for (const double speed : speeds) all += speed;
  const auto parts = static_cast<int64_t>(speeds.size());
  int64_t begin = 0;
  for (int64_t i = 0; i < parts; ++i) {
    sum += speeds[static_cast<size_t>(i)];
    const auto wanted = static_cast<int64_t>(std::llround(static_cast<double>(count) * sum / all));
    const int64_t most = count - (parts - 1 - i);
    ends[static_cast<size_t>(i)] = begin = i + 1 == parts ? count : std::clamp(wanted, begin + 1, most);
  }
}

PhasedRun::PhasedRun(int members)
    : shares_(new Share[static_cast<size_t>(members)]),
      speeds_(new double[static_cast<size_t>(members)]),
      ends_(new int64_t[static_cast<size_t>(members)]) {
  std::fill_n(speeds_.get(), members, 1.0);
}

void PhasedRun::start(int64_t phases, int64_t count, int parts, ShareChanges changes, Team::PhaseTask task,
                      void* context) {
  phases_ = phases;
  count_ = count;
  parts_ = parts;
  changes_ = changes;
  task_ = task;
  context_ = context;
  for (int i = 0; i < parts; ++i) {
    Share& share = shares_[i];
    share.next.store(0, std::memory_order_relaxed);
    share.is_attended.store(i == 0, std::memory_order_relaxed);
    share.begin = count * i / parts;
    share.end = count * (i + 1) / parts;
    share.ticks = 0;
    share.measured = 0;
  }
  is_measured_ = changes.every > 0 && count > parts;
  if (is_measured_) change_shares();
  arrived_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
}

// Runs a share of a phase that all before are done of, unless someone has taken it.
void PhasedRun::take(int index, int64_t phase, int member) {
  Share& share = shares_[index];
  int64_t next = phase;
  if (!share.next.compare_exchange_strong(next, phase + 1, std::memory_order_relaxed)) return;
  if (!is_measured_) {
    task_(context_, phase, share.begin, share.end, member);
  } else {
    const int64_t start = ticks();
    task_(context_, phase, share.begin, share.end, member);
    if (index == member) {
      share.ticks += ticks() - start;
      ++share.measured;
    }
    if (changes_.are_before(phase + 1)) {
      if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts_) return;
      arrived_.store(0, std::memory_order_relaxed);
      measure_speeds();
      change_shares();
      done_.fetch_add(parts_, std::memory_order_release);
      return;
    }
  }
  done_.fetch_add(1, std::memory_order_acq_rel);
}

// The speeds of all members since the last call, where all were there; 1 on average, as those not at work have.
void PhasedRun::measure_speeds() {
  const auto is_known = [](const Share& share) { return share.measured > 0 && share.ticks > 0; };
  if (std::all_of(shares_.get(), shares_.get() + parts_, is_known)) {
    double all = 0;
    for (int i = 0; i < parts_; ++i) {
      const Share& share = shares_[i];
      speeds_[i] = static_cast<double>((share.end - share.begin) * share.measured) / static_cast<double>(share.ticks);
      all += speeds_[i];
    }
    for (int i = 0; i < parts_; ++i) speeds_[i] *= parts_ / all;
  }
  for (int i = 0; i < parts_; ++i) shares_[i].ticks = shares_[i].measured = 0;
}

// To the ranges that suit the members' speeds, where a phase is expected to take less time with them.
void PhasedRun::change_shares() {
  const auto parts = static_cast<size_t>(parts_);
  share_by_speed(count_, {speeds_.get(), parts}, {ends_.get(), parts});
  double now = 0, then = 0;
  for (int i = 0; i < parts_; ++i) {
    now = std::max(now, static_cast<double>(shares_[i].end - shares_[i].begin) / speeds_[i]);
    then = std::max(then, static_cast<double>(ends_[i] - (i > 0 ? ends_[i - 1] : 0)) / speeds_[i]);
  }
  if (then > kWorthwhile * now) return;
  for (int i = 0; i < parts_; ++i) {
    shares_[i].begin = i > 0 ? ends_[i - 1] : 0;
    shares_[i].end = ends_[i];
  }
}

void PhasedRun::help_others(int64_t phase, int member, bool is_impatient) {
  for (int i = 0; i < parts_; ++i) {
    Share& share = shares_[i];
    if (share.next.load(std::memory_order_relaxed) != phase) continue;
    if (is_impatient) share.is_attended.store(false, std::memory_order_relaxed);
    if (!share.is_attended.load(std::memory_order_relaxed)) take(i, phase, member);
  }
}

void PhasedRun::work_as(int member) {
  int64_t phase = done_.load(std::memory_order_acquire) / parts_;
  while (phase < phases_) {
    shares_[member].is_attended.store(true, std::memory_order_relaxed);
    take(member, phase, member);
    const int64_t all_done = (phase + 1) * parts_;
    for (int looks = 1; done_.load(std::memory_order_acquire) < all_done; ++looks) {
      if (looks % kLooksBetweenHelp == 0) help_others(phase, member, looks >= kPatientLooks);
      if (looks >= kPatientLooks)
        sched_yield();
      else
        pause_briefly();
    }
    phase = done_.load(std::memory_order_acquire) / parts_;
  }
}

}  // namespace neo
