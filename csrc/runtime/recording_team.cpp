#include "runtime/recording_team.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace neo {
namespace {

constexpr int64_t kPauseNs = 1000;

}  // namespace

struct RecordingTeam::Call {
  RecordingTeam* self;
  Task task;
  PhaseTask phase_task;
  void* context;
};

RecordingTeam::RecordingTeam(Team& team, int first)
    : team_(team), first_(first), members_(static_cast<size_t>(team.size())) {}

void RecordingTeam::record(int member, int64_t start_ns, int64_t end_ns) {
  auto& spans = members_[static_cast<size_t>(member)].spans;
  if (!spans.empty() && start_ns - spans.back().end_ns < kPauseNs) {
    spans.back().end_ns = end_ns;
  } else {
    spans.push_back({first_ + member, start_ns, end_ns});
  }
}

void RecordingTeam::run(int64_t count, Task task, void* context) {
  Call call{this, task, nullptr, context};
  team_.run(
      count,
      [](void* of, int64_t begin, int64_t end, int member) {
        const Call& c = *static_cast<const Call*>(of);
        const int64_t start = steady_now_ns();
        c.task(c.context, begin, end, member);
        c.self->record(member, start, steady_now_ns());
      },
      &call);
}

void RecordingTeam::run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task, void* context) {
  Call call{this, nullptr, task, context};
  team_.run_phases(
      phases, count, changes,
      [](void* of, int64_t phase, int64_t begin, int64_t end, int member) {
        const Call& c = *static_cast<const Call*>(of);
        const int64_t start = steady_now_ns();
        c.phase_task(c.context, phase, begin, end, member);
        c.self->record(member, start, steady_now_ns());
      },
      &call);
}

void RecordingTeam::take_spans(std::vector<TeamSpan>& spans) {
  for (Member& m : members_) {
    spans.insert(spans.end(), m.spans.begin(), m.spans.end());
    m.spans.clear();
  }
}

RecordingExecutors::RecordingExecutors(Executors& executors) : executors_(executors) {
  int first = 0;
  for (int e = 0; e < executors.size(); ++e) {
    teams_.emplace_back(executors.team(e), first);
    first += executors.team(e).size();
  }
}

std::vector<TeamSpan> RecordingExecutors::take_spans() {
  std::vector<TeamSpan> all;
  for (RecordingTeam& team : teams_) team.take_spans(all);
  std::stable_sort(all.begin(), all.end(),
                   [](const TeamSpan& a, const TeamSpan& b) { return a.start_ns < b.start_ns; });
  return all;
}

}  // namespace neo
