#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "exec/team.h"
#include "runtime/spin.h"

namespace neo {

// Cuts `count` tasks into a range for each member, in order, so that all take as long: `speeds` are tasks per time, and
// ends[i] becomes the end of the i-th range. Every member has a task at least; count >= speeds.size().
void share_by_speed(int64_t count, std::span<const double> speeds, std::span<int64_t> ends);

// What the members of a team do of Team::run_phases(): each its own range of every phase, and those of members that are
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
  };

  void take(int share, int64_t phase, int member);
  void help_others(int64_t phase, int member, bool is_impatient);
  void measure_speeds();
  void change_shares();

  const std::unique_ptr<Share[]> shares_;
  const std::unique_ptr<double[]> speeds_;  // of members, to their mean; what was measured last
  const std::unique_ptr<int64_t[]> ends_;   // workspace of change_shares()
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
