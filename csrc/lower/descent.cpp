#include "lower/descent.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "routines/space.h"

namespace neo {
namespace {

// A routine whose best is behind the best of all by more than this is not looked into.
constexpr double kCompetes = 1.25;
// A step must promise this much, and all of them together this much: less is the model's noise.
constexpr double kStep = 0.99;
constexpr double kWorthwhile = 0.97;
constexpr int kMostSteps = 6;

}  // namespace

std::vector<Candidate> descend(const std::vector<const Candidate*>& candidates, const CostTrees& trees,
                               const Target& target, const OpRegistry& ops) {
  double best_us = std::numeric_limits<double>::infinity();
  // Candidates of another error are another choice: limits may forbid the more exact or the faster one.
  std::map<std::pair<const Routine*, double>, const Candidate*> starts;
  for (const Candidate* c : candidates) {
    best_us = std::min(best_us, c->cost.time_us);
    const Candidate*& start = starts[{c->routine, c->cost.error}];
    if (!start || c->cost.time_us < start->cost.time_us) start = c;
  }
  std::vector<Candidate> found;
  for (const auto& [key, start] : starts) {
    if (start->cost.time_us > kCompetes * best_us || !trees.time_us(*start, target)) continue;
    const Space space = start->routine->space(*start->workload, target);
    std::set<Schedule> seen = {start->schedule};
    Candidate here = *start;
    for (int step = 0; step < kMostSteps; ++step) {
      std::optional<Candidate> next;
      for (const Schedule& schedule : space.neighbours(here.schedule)) {
        if (!seen.insert(schedule).second) continue;
        Candidate c = here.routine->candidate(*here.workload, target, ops, schedule);
        if (c.cost.error != here.cost.error) continue;
        c.routine = here.routine;
        c.workload = here.workload;
        c.cost.time_us = trees.time_us(c, target).value_or(std::numeric_limits<double>::infinity());
        if (!next || c.cost.time_us < next->cost.time_us) next = std::move(c);
      }
      if (!next || next->cost.time_us > kStep * here.cost.time_us) break;
      here = *std::move(next);
    }
    if (here.cost.time_us <= kWorthwhile * start->cost.time_us) found.push_back(std::move(here));
  }
  return found;
}

}  // namespace neo
