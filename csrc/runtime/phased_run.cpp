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

// The share of a phase's time below which ranges change: data that a member has not read before is far from it.
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

int64_t end_by_speed(int64_t count, int parts, int i, int64_t begin, double share) {
  const auto wanted = static_cast<int64_t>(std::llround(static_cast<double>(count) * share));
  return i + 1 == parts ? count : std::clamp(wanted, begin + 1, count - (parts - 1 - i));
}

PhasedRun::PhasedRun(int members) : shares_(new Share[static_cast<size_t>(members)]) {}

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
    for (int i = 0; i < parts_; ++i) {
      Share& share = shares_[i];
      share.speed = static_cast<double>((share.end - share.begin) * share.measured) / static_cast<double>(share.ticks);
    }
    const double mean = all_speeds() / parts_;
    for (int i = 0; i < parts_; ++i) shares_[i].speed /= mean;
  }
  for (int i = 0; i < parts_; ++i) shares_[i].ticks = shares_[i].measured = 0;
}

double PhasedRun::all_speeds() const {
  double all = 0;
  for (int i = 0; i < parts_; ++i) all += shares_[i].speed;
  return all;
}

// To the ranges that suit the members' speeds, where a phase is expected to take less time with them.
void PhasedRun::change_shares() {
  const double all = all_speeds();
  double sum = 0, now = 0, then = 0;
  int64_t begin = 0;
  for (int i = 0; i < parts_; ++i) {
    Share& share = shares_[i];
    sum += share.speed;
    share.wanted = end_by_speed(count_, parts_, i, begin, sum / all);
    now = std::max(now, static_cast<double>(share.end - share.begin) / share.speed);
    then = std::max(then, static_cast<double>(share.wanted - begin) / share.speed);
    begin = share.wanted;
  }
  if (then > kWorthwhile * now) return;
  for (int i = 0; i < parts_; ++i) {
    shares_[i].begin = i > 0 ? shares_[i - 1].wanted : 0;
    shares_[i].end = shares_[i].wanted;
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
