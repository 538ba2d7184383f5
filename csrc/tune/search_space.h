#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/space.h"
#include "tune/measure.h"

namespace neo {

// The schedules of one routine for one workload of a problem: where a tuner looks further than its candidates.
struct SearchSpace {
  std::string workload;      // the text
  Candidate like;            // one of the problem's
  std::vector<size_t> list;  // the problem's trials that are points of it
  std::vector<int> nodes;    // variables that could be given a point
  double weight = 0;         // as a trial's
  Space space;
};

// Without their spaces, which take time to make; `trials` are the problem's.
std::vector<SearchSpace> list_search_spaces(const SelectionProblem& problem, const std::vector<Trial>& trials);

// The trial of one schedule; no choice of the problem is that yet.
Trial trial_of(const SearchSpace& search, const Schedule& schedule, const Target& target, const OpRegistry& ops);

// Gives the schedule to every node that could have it, as its last choice.
void offer_trial(SelectionProblem& problem, const SearchSpace& search, Trial& trial);

// The schedule in a candidate's text; none where it is no candidate of this routine.
std::optional<Schedule> schedule_in(const std::string& text, const Routine& routine);

}  // namespace neo
