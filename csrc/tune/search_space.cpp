#include "tune/search_space.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/check.h"

namespace neo {

std::vector<SearchSpace> list_search_spaces(const SelectionProblem& problem, const std::vector<Trial>& trials) {
  std::vector<SearchSpace> found;
  std::map<std::pair<std::string, const Routine*>, size_t> index;
  for (size_t t = 0; t < trials.size(); ++t) {
    const Trial& trial = trials[t];
    if (!trial.candidate || trial.unmeasurable || trial.uses.empty()) continue;
    const auto [it, fresh] = index.try_emplace({trial.workload, trial.candidate->routine}, found.size());
    if (fresh) found.push_back({trial.workload, *trial.candidate, {}, {}, 0, {}});
    SearchSpace& search = found[it->second];
    search.list.push_back(t);
    for (const auto& [node, choice] : trial.uses) {
      if (std::find(search.nodes.begin(), search.nodes.end(), node) != search.nodes.end()) continue;
      search.nodes.push_back(node);
      search.weight += problem.nodes[static_cast<size_t>(node)].trips;
    }
  }
  return found;
}

Trial trial_of(const SearchSpace& search, const Schedule& schedule, const Target& target, const OpRegistry& ops) {
  Trial trial;
  Candidate c = search.like.routine->candidate(*search.like.workload, target, ops, schedule);
  c.routine = search.like.routine;
  c.workload = search.like.workload;
  trial.workload = search.workload;
  trial.candidate_text = trial_text(c);
  trial.routine = c.routine->name();
  trial.estimate_us = c.cost.time_us;
  trial.weight = search.weight;
  trial.packed_bytes = c.cost.packed_bytes;
  trial.candidate = std::move(c);
  return trial;
}

void offer_trial(SelectionProblem& problem, const SearchSpace& search, Trial& trial) {
  NEO_ASSERT(trial.uses.empty() && trial.candidate, "the trial is a choice already");
  for (const int node : search.nodes) {
    auto& choices = problem.nodes[static_cast<size_t>(node)].choices;
    // Each node has a group of its own.
    const auto own = std::find_if(choices.begin(), choices.end(), [&](const SelectionProblem::Choice& choice) {
      return choice.candidate && choice.candidate->routine == trial.candidate->routine &&
             choice.candidate->workload->text() == trial.workload;
    });
    NEO_ASSERT(own != choices.end());
    SelectionProblem::Choice choice{*trial.candidate, -1, trial.estimate_us};
    choice.candidate->workload = own->candidate->workload;
    trial.uses.emplace_back(node, static_cast<int>(choices.size()));
    choices.push_back(std::move(choice));
  }
}

std::optional<Schedule> schedule_in(const std::string& text, const Routine& routine) {
  const std::string name(routine.name());
  if (text.rfind(name, 0) != 0) return std::nullopt;
  size_t at = name.size();
  Schedule schedule;
  if (at < text.size() && text[at] == ' ') return schedule;
  if (at >= text.size() || text[at] != '{') return std::nullopt;
  const size_t end = text.find('}', ++at);
  if (end == std::string::npos) return std::nullopt;
  while (at < end) {
    const size_t equals = text.find('=', at);
    if (equals == std::string::npos || equals >= end) return std::nullopt;
    int64_t value = 0;
    const char* last = text.data() + end;
    const auto [next, error] = std::from_chars(text.data() + equals + 1, last, value);
    if (error != std::errc()) return std::nullopt;
    schedule[text.substr(at, equals - at)] = value;
    at = static_cast<size_t>(next - text.data());
    if (at < end && text[at++] != ' ') return std::nullopt;
  }
  return schedule;
}

}  // namespace neo
