#pragma once

#include "base/budget.h"
#include "exec/team.h"

namespace neo {

// Another team, whose tasks are left out once a budget is over: then nothing may be read of what the step wrote. Ranges
// are cut into parts so that a team of few members looks at the budget often.
class LimitedTeam final : public Team {
 public:
  LimitedTeam(Team& team, Budget& budget) : team_(team), budget_(budget) {}
  int size() const override { return team_.size(); }
  void run(int64_t count, Task task, void* context) override;
  void run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task, void* context) override;

 private:
  Team& team_;
  Budget& budget_;
};

}  // namespace neo
