#include "select/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "select/dive.h"
#include "select/elimination.h"
#include "select/levels.h"
#include "select/windows.h"

namespace neo::select {
namespace {

constexpr int kMessageRounds = 8;
constexpr double kWidening = 8;  // from one search to the next

class CoreSearch {
 public:
  CoreSearch(const Core& core, const std::function<bool(const std::vector<int>&)>& accept, const WorkLimits& limits,
             Deadline deadline, SearchProof* proof)
      : accept_(accept), limits_(limits), deadline_(deadline), proof_(proof) {
    place(core);
  }

  Outcome run();

 private:
  void place(const Core& core);
  bool offer(const std::vector<int>& choice);
  bool is_closed() const;
  MiniBuckets tables(std::vector<Factor> factors) const {
    return {core_.sizes, std::move(factors), limits_.table, limits_.tables};
  }
  void note(const MiniBuckets& tables, Relaxation relaxation);
  bool relax();
  bool relax_usage(const std::vector<Factor>& shifted, const std::vector<Shift>& shifts);
  void improve(const MiniBuckets& tables);
  void search();

  const std::function<bool(const std::vector<int>&)>& accept_;
  const WorkLimits& limits_;
  Deadline deadline_;
  SearchProof* proof_;
  std::vector<int> order_;
  Core core_;  // in the order of the search
  std::vector<Objective> objectives_;
  Outcome best_;  // its choice in the order of the search
};

void CoreSearch::place(const Core& core) {
  std::vector<std::pair<int, int>> pairs;
  const auto join = [&](const std::vector<Factor>& factors) {
    for (const Factor& factor : factors) {
      for (size_t i = 0; i < factor.scope.size(); ++i)
        for (size_t j = i + 1; j < factor.scope.size(); ++j) pairs.emplace_back(factor.scope[i], factor.scope[j]);
    }
  };
  join(core.costs);
  for (const auto& factors : core.usage) join(factors);
  order_ = linear_order(core.sizes, pairs);
  std::vector<int> position(order_.size());
  for (size_t p = 0; p < order_.size(); ++p) {
    position[at(order_[p])] = static_cast<int>(p);
    core_.sizes.push_back(core.sizes[at(order_[p])]);
  }
  core_.costs = merged(relabelled(core.costs, position, core.sizes));
  for (const auto& factors : core.usage) core_.usage.push_back(merged(relabelled(factors, position, core.sizes)));
  core_.limits = core.limits;
}

bool CoreSearch::offer(const std::vector<int>& choice) {
  if (choice.size() != order_.size()) return false;
  const double cost = value_of(core_.costs, choice, core_.sizes);
  if (!(cost < kInfinity)) return false;
  std::vector<int> own(choice.size());
  for (size_t p = 0; p < choice.size(); ++p) own[at(order_[p])] = choice[p];
  if (!accept_(own)) return false;
  if (!best_.found || cost < best_.value) {
    best_.found = true;
    best_.choice = std::move(own);
    best_.value = cost;
  }
  return true;
}

bool CoreSearch::is_closed() const {
  return best_.found && best_.value - best_.bound <= kSearchTolerance * std::max(1.0, std::abs(best_.value));
}

void CoreSearch::note(const MiniBuckets& tables, Relaxation relaxation) {
  if (proof_ == nullptr) return;
  relaxation.splits = tables.splits();
  proof_->relaxations.push_back(std::move(relaxation));
}

// Makes the bounds. False where they show that nothing is allowed.
bool CoreSearch::relax() {
  MiniBuckets plain = tables(core_.costs);
  std::vector<Factor> shifted = core_.costs;
  std::vector<Shift> shifts;
  if (!plain.is_exact()) {
    Messages messages = pass_messages(core_.sizes, core_.costs, kMessageRounds, deadline_);
    shifted = std::move(messages.factors);
    shifts = std::move(messages.shifts);
    plain = tables(shifted);
  }
  best_.bound = plain.bound();
  if (!(best_.bound < kInfinity)) return false;
  offer(plain.decode());
  if (!plain.is_exact() && core_.usage.empty()) improve(plain);
  note(plain, {{}, -1, shifts, {}});
  objectives_.push_back({std::move(plain)});
  return core_.usage.empty() || relax_usage(shifted, shifts);
}

// Finds a choice and makes it better. With limits a better one may exceed them: then it is not looked for.
void CoreSearch::improve(const MiniBuckets& tables) {
  std::vector<int> choice = tables.decode();
  if (choice.empty()) choice = dive(core_.sizes, core_.costs, tables);
  if (!choice.empty()) offer(improved(core_.sizes, core_.costs, std::move(choice), limits_.table, deadline_));
}

bool CoreSearch::relax_usage(const std::vector<Factor>& shifted, const std::vector<Shift>& shifts) {
  const Core moved{core_.sizes, shifted, core_.usage, core_.limits};
  const Priced priced = price_resources(moved, limits_, deadline_);
  for (const auto& choice : priced.choices) offer(choice);
  if (!best_.found && core_.usage.size() > 1) {
    const Priced wanted = price_violations(core_, limits_, deadline_);
    if (wanted.bound > kSearchTolerance) return false;
    for (const auto& choice : wanted.choices) offer(choice);
  }
  best_.bound = std::max(best_.bound, priced.bound);
  std::vector<Factor> factors = shifted;
  add_priced(factors, core_, priced.prices);
  objectives_.push_back({tables(std::move(factors)), kInfinity, -dot(priced.prices, core_.limits)});
  note(objectives_.back().tables, {priced.prices, -1, shifts, {}});
  for (size_t k = 0; k < core_.usage.size(); ++k) {
    const double limit = core_.limits[k];
    factors = forbidden_of(core_.costs);
    factors.insert(factors.end(), core_.usage[k].begin(), core_.usage[k].end());
    // Ten roundings more than a limit has: bounds are sums in another order.
    objectives_.push_back({tables(std::move(factors)), limit + 10 * rounding_of(limit), 0, true});
    note(objectives_.back().tables, {{}, static_cast<int>(k), {}, {}});
    offer(objectives_.back().tables.decode());
  }
  return true;
}

void CoreSearch::search() {
  best_.complete = is_closed();
  if (best_.complete) return;
  std::vector<std::vector<int>> scopes;
  for (const Factor& factor : core_.costs) scopes.push_back(factor.scope);
  for (const auto& factors : core_.usage)
    for (const Factor& factor : factors) scopes.push_back(factor.scope);
  Levels levels(core_.sizes, scopes, std::move(objectives_));
  const bool is_timed = deadline_ != Deadline::max(), is_limited = !core_.usage.empty();
  const double last = is_timed     ? limits_.last_width_timed
                      : is_limited ? limits_.last_width_limited
                                   : limits_.last_width;
  for (double width = limits_.first_width;; width = std::min(width * kWidening, last)) {
    const Deadline until = width > limits_.first_width ? deadline_ : Deadline::max();
    const Levels::Found found = levels.run(best_.value, static_cast<size_t>(width), until);
    for (const auto& choice : found.choices) {
      if (offer(choice)) break;
    }
    best_.bound = std::max(best_.bound, std::min(found.floor, best_.value));
    best_.complete = !found.dropped || is_closed();
    if (best_.complete || width >= last || is_over(deadline_)) return;
  }
}

Outcome CoreSearch::run() {
  if (proof_ != nullptr) proof_->order = order_;
  if (!relax()) {
    best_ = {};
    best_.complete = true;
    return best_;
  }
  search();
  best_.bound = best_.complete ? best_.value : std::min(best_.bound, best_.value);
  return best_;
}

}  // namespace

Outcome search_core(const Core& core, const std::function<bool(const std::vector<int>&)>& accept,
                    const WorkLimits& limits, Deadline deadline, SearchProof* proof) {
  // Small tables take little time and memory, and prove the best choice of most problems.
  WorkLimits quick = limits;
  quick.table = std::min(limits.table, limits.quick_table);
  Outcome first = CoreSearch(core, accept, quick, deadline, proof).run();
  if (first.complete || quick.table == limits.table || is_over(deadline)) return first;
  const bool asks_more = proof != nullptr || !core.usage.empty() || deadline != Deadline::max();
  if (!asks_more && first.found && first.value - first.bound <= limits.quick_gap * std::abs(first.value)) return first;
  if (proof != nullptr) *proof = {};
  Outcome second = CoreSearch(core, accept, limits, deadline, proof).run();
  if (first.found && !(second.value <= first.value)) {
    second.found = true;
    second.choice = std::move(first.choice);
    second.value = first.value;
  }
  return second;
}

}  // namespace neo::select
