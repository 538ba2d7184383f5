#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "exec/team.h"
#include "runtime/spin.h"

namespace neo {

// The end of the i-th of `parts` ranges of `count` tasks, which begins at `begin`, and all take as long: `share` is
// the part of all members' speed that those up to the i-th have. Every range has a task; count >= parts.
int64_t end_by_speed(int64_t count, int parts, int i, int64_t begin, double share);

// The members' work in Team::run_phases(): each runs its own range of every phase, and the ranges of members that are
// not there. How long they take is measured; where ranges may change, members that are slower get fewer tasks.
class PhasedRun {
 public:
  explicit PhasedRun(int members);

  // Called while no member is at work. parts <= members, <= count.
  void start(int64_t phases, int64_t count, int parts, ShareChanges changes, Team::PhaseTask task, void* context);

  // Returns when all phases are done.
  void work_as(int member);

 private:
  struct alignas(kSeparate) Share {
    std::atomic<int64_t> next{0};  // the first phase that nobody has taken
    std::atomic<bool> is_attended{false};
    int64_t begin = 0, end = 0;
    int64_t ticks = 0;     // of the member since the ranges last could change
    int64_t measured = 0;  // phases
    double speed = 1;      // of the member to the mean of all, as measured last
    int64_t wanted = 0;    // the end that suits the speeds
  };

  void take(int share, int64_t phase, int member);
  void help_others(int64_t phase, int member, bool is_impatient);
  void measure_speeds();
  double all_speeds() const;
  void change_shares();

  const std::unique_ptr<Share[]> shares_;
  Team::PhaseTask task_ = nullptr;
  void* context_ = nullptr;
  int64_t phases_ = 0, count_ = 0;
  int parts_ = 0;
  bool is_measured_ = false;  // ranges may change
  ShareChanges changes_;

  alignas(kSeparate) std::atomic<int64_t> done_{0};  // shares of all phases
  std::atomic<int> arrived_{0};                      // shares of a phase after which ranges may change
};

}  // namespace neo
