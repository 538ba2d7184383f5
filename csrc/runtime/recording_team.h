#pragma once

#include <deque>
#include <vector>

#include "exec/executors.h"

namespace neo {

// One stretch of time in which a member of a team was at work.
struct TeamSpan {
  int member = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Another team, with a record of when each member works. Tasks go to the same members in the same ranges, as far as the
// other team fixes that.
class RecordingTeam final : public Team {
 public:
  // The team's members are those from `first` on of all threads of a call.
  explicit RecordingTeam(Team& team, int first = 0);
  int size() const override { return team_.size(); }
  void run(int64_t count, Task task, void* context) override;
  void run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task, void* context) override;

  // Adds what was recorded; pauses below a microsecond are left out.
  void take_spans(std::vector<TeamSpan>& spans);

 private:
  struct alignas(64) Member {
    std::vector<TeamSpan> spans;
  };
  struct Call;
  void record(int member, int64_t start_ns, int64_t end_ns);

  Team& team_;
  const int first_;
  std::vector<Member> members_;
};

// The same of several.
class RecordingExecutors final : public Executors {
 public:
  explicit RecordingExecutors(Executors& executors);
  int size() const override { return executors_.size(); }
  Team& team(int executor) override { return teams_[static_cast<size_t>(executor)]; }
  int64_t spin_us() const override { return executors_.spin_us(); }
  void begin(Body body, void* context) override { executors_.begin(body, context); }
  void post(int executor) override { executors_.post(executor); }
  void end() override { executors_.end(); }

  // The recorded spans, in order of start.
  std::vector<TeamSpan> take_spans();

 private:
  Executors& executors_;
  std::deque<RecordingTeam> teams_;
};

}  // namespace neo
