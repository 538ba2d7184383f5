#include "select/solve.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "select/collapse.h"

namespace neo::select {
namespace {

Solution failed(Obstacle obstacle, int which = -1) {
  Solution solution;
  solution.obstacle = obstacle;
  solution.which = which;
  return solution;
}

Solution solve_alone(const Problem& problem, const SolveOptions& options) {
  Core core;
  for (int v = 0; v < problem.count(); ++v) {
    core.sizes.push_back(problem.size(v));
    core.costs.push_back({{v}, problem.unary[at(v)]});
  }
  for (const Problem::Pair& pair : problem.pairs) core.costs.push_back({{pair.u, pair.v}, pair.values});
  const auto accept = [](const std::vector<int>&) { return true; };
  Outcome outcome = search_core(core, accept, options.work, options.deadline, nullptr);
  if (!outcome.found) return failed(outcome.complete ? Obstacle::Pairs : Obstacle::Effort);
  Solution solution;
  solution.choice = std::move(outcome.choice);
  solution.bound = outcome.bound;
  solution.proven = outcome.complete;
  solution.method = "branch and bound";
  return solution;
}

// A solution of a problem whose limits are heeded, or are met anyway; nothing where no choice was found, which `proven`
// says is for good.
std::optional<Solution> search(const Problem& problem, const Collapse& collapse, const SolveOptions& options,
                               bool& proven) {
  Solution solution;
  Core core{collapse.sizes(), collapse.factors()[0], {}, collapse.reduction().limits()};
  for (size_t k = 0; k < core.limits.size(); ++k) {
    core.usage.push_back(collapse.factors()[k + 1]);
    core.limits[k] -= collapse.constant()[k + 1];
  }
  const auto accept = [&](const std::vector<int>& choice) {
    if (core.usage.empty()) return true;
    const std::vector<int> whole = collapse.complete(choice);
    return !whole.empty() && problem.is_within_limits(whole);
  };
  SearchProof* const proof = options.certify ? &solution.certificate.search : nullptr;
  const Outcome outcome = search_core(core, accept, options.work, options.deadline, proof);
  proven = outcome.complete;
  if (!outcome.found) return std::nullopt;
  solution.choice = collapse.complete(outcome.choice);
  solution.bound = outcome.bound + collapse.constant()[0];
  solution.proven = outcome.complete;
  solution.method = core.usage.empty() ? "elimination, branch and bound" : "elimination, prices, branch and bound";
  solution.certificate.limited = collapse.reduction().limited();
  solution.certificate.searched = collapse.core();
  return solution;
}

// The solution of a collapse and a search within the limits; nothing where they find no choice.
std::optional<Solution> find(const Problem& problem, const SolveOptions& options, bool& proven) {
  const bool is_limited = problem.planes > 1;
  proven = true;
  // Limits of nothing forbid choices and leave a problem without limits.
  const bool forbids =
      is_limited && std::all_of(problem.limits.begin(), problem.limits.end(), [](double limit) { return limit == 0; });
  // The best choice of all may meet the limits.
  for (const bool heeds_limits : {false, true}) {
    if (heeds_limits ? !is_limited : forbids) continue;
    const Collapse collapse(heeds_limits ? problem : problem.without_limits(), options.work);
    if (!collapse.allowed()) return std::nullopt;
    std::optional<Solution> solution;
    if (collapse.sizes().empty()) {
      std::vector<int> choice = collapse.complete({});
      if (!problem.is_within_limits(choice)) {
        if (heeds_limits) return std::nullopt;
        continue;
      }
      solution.emplace();
      solution->choice = std::move(choice);
      solution->proven = true;
      solution->method = collapse.eliminated() > 0 ? "elimination" : "reduction";
    } else if (is_limited && !heeds_limits) {
      continue;
    } else {
      solution = search(problem, collapse, options, proven);
      if (!solution) return std::nullopt;
    }
    if (options.certify) {
      solution->certificate.steps = collapse.steps();
      solution->certificate.uses_limits = heeds_limits;
    }
    return solution;
  }
  return std::nullopt;
}

// Which limit cannot be met, and what could be reached, for a problem of which nothing was found.
Solution explain(const Problem& problem, const SolveOptions& options, bool proven) {
  for (int k = 0; k + 1 < problem.planes; ++k) {
    const Problem usage = problem.of_usage(k);
    const Solution least = solve(usage, options);
    if (least.obstacle != Obstacle::None) return least;
    const double limit = problem.limits[at(k)], total = usage.value(least.choice, 0);
    const double bound = least.proven ? total : std::min(least.bound, total);
    if (!(bound > limit + rounding_of(limit))) continue;
    Solution solution = failed(Obstacle::Limit, k);
    solution.smallest = bound;
    solution.smallest_proven = least.proven;
    return solution;
  }
  return failed(proven ? Obstacle::Limits : Obstacle::LimitsEffort);
}

}  // namespace

Solution solve(const Problem& problem, const SolveOptions& options) {
  if (options.search_alone) return solve_alone(problem, options);
  bool proven = true;
  if (std::optional<Solution> found = find(problem, options, proven)) return *std::move(found);
  SolveOptions plain = options;
  plain.certify = false;
  if (problem.planes > 1) return explain(problem, plain, proven);
  if (!proven) return failed(Obstacle::Effort);
  const Collapse collapse(problem, options.work);
  const int empty = collapse.reduction().empty();
  return !collapse.allowed() && empty >= 0 ? failed(Obstacle::Variable, empty) : failed(Obstacle::Pairs);
}

}  // namespace neo::select
