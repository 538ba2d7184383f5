#include "runtime/limited_team.h"

#include <algorithm>

namespace neo {
namespace {

constexpr int64_t kParts = 64;  // of a member's range

struct Call {
  Budget& budget;
  Team::Task task;
  Team::PhaseTask phase_task;
  void* context;
};

// f(begin, end) over parts of a range, as long as there is time.
template <class F>
void in_parts(Budget& budget, int64_t begin, int64_t end, F&& f) {
  const int64_t part = std::max<int64_t>((end - begin) / kParts, 1);
  for (int64_t at = begin; at < end && !budget.is_over(); at = std::min(at + part, end))
    f(at, std::min(at + part, end));
}

}  // namespace

void LimitedTeam::run(int64_t count, Task task, void* context) {
  Call call{budget_, task, nullptr, context};
  team_.run(
      count,
      [](void* of, int64_t begin, int64_t end, int member) {
        const Call& c = *static_cast<const Call*>(of);
        in_parts(c.budget, begin, end, [&](int64_t b, int64_t e) { c.task(c.context, b, e, member); });
      },
      &call);
}

void LimitedTeam::run_phases(int64_t phases, int64_t count, ShareChanges changes, PhaseTask task, void* context) {
  Call call{budget_, nullptr, task, context};
  team_.run_phases(
      phases, count, changes,
      [](void* of, int64_t phase, int64_t begin, int64_t end, int member) {
        const Call& c = *static_cast<const Call*>(of);
        in_parts(c.budget, begin, end, [&](int64_t b, int64_t e) { c.phase_task(c.context, phase, b, e, member); });
      },
      &call);
}

}  // namespace neo
