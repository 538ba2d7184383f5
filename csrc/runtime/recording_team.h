#pragma once

#include <vector>

#include "exec/team.h"

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
  explicit RecordingTeam(Team& team);
  int size() const override { return team_.size(); }
  void run(int64_t count, Task task, void* context) override;
  void run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task, void* context) override;

  // What was recorded, in order of start; pauses below a microsecond are left out.
  std::vector<TeamSpan> take_spans();

 private:
  struct alignas(64) Member {
    std::vector<TeamSpan> spans;
  };
  struct Call;
  static void record(Member& member, int index, int64_t start_ns, int64_t end_ns);

  Team& team_;
  std::vector<Member> members_;
};

}  // namespace neo
