#include "select/collapse.h"

#include <algorithm>
#include <utility>

#include "select/distinct_rows.h"
#include "select/problem.h"

namespace neo::select {
namespace {

Factor plane_of(const Reduction::Pair& pair, int plane, int p, int q, size_t rows, size_t columns) {
  const double* from = pair.values.data() + at(plane) * rows * columns;
  if (p < q) return {{p, q}, {from, from + rows * columns}};
  Factor turned{{q, p}, std::vector<double>(rows * columns)};
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) turned.values[j * rows + i] = from[i * columns + j];
  return turned;
}

}  // namespace

Collapse::Collapse(Problem problem, const WorkLimits& limits) : reduction_(std::move(problem)) {
  allowed_ = reduction_.run();
  steps_ = reduction_.steps();
  constant_ = reduction_.constant();
  if (!allowed_) return;
  eliminate(limits);
  allowed_ = constant_[0] < kInfinity;
}

void Collapse::eliminate(const WorkLimits& limits) {
  const auto& variables = reduction_.variables();
  const int planes = reduction_.planes();
  std::vector<int> number(variables.size(), -1), sizes;
  // Only what uses the same of everything whatever is chosen may be decided by cost alone.
  std::vector<char> by_cost;
  for (size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v].left) continue;
    number[v] = static_cast<int>(left_.size());
    left_.push_back(static_cast<int>(v));
    sizes.push_back(variables[v].size);
    const auto& unary = variables[v].unary;
    bool same = true;
    for (int k = 1; k < planes; ++k) {
      const auto from = unary.begin() + k * variables[v].size;
      same = same && std::equal(from + 1, from + variables[v].size, from);
    }
    by_cost.push_back(same);
  }
  std::vector<std::pair<int, int>> pairs;
  for (const auto& pair : reduction_.pairs()) {
    if (!pair.left) continue;
    pairs.emplace_back(number[at(pair.u)], number[at(pair.v)]);
    if (pair.planes > 1) by_cost[at(pairs.back().first)] = by_cost[at(pairs.back().second)] = 0;
  }
  const auto fits = [&](const Order& order) { return order.rest.empty() && order.cells <= limits.most; };
  order_ = greedy_order(sizes, pairs, limits.largest, Rule::Weight, by_cost);
  if (!order_.rest.empty() || order_.cells > limits.enough) {
    Order other = greedy_order(sizes, pairs, limits.largest, Rule::Fill, by_cost);
    if (std::make_pair(other.rest.size(), other.cells) < std::make_pair(order_.rest.size(), order_.cells)) {
      order_ = std::move(other);
    }
  }
  const bool shares_rows = use_distinct_rows(sizes, number, limits, by_cost);
  if (!shares_rows && !fits(order_)) order_ = greedy_order(sizes, pairs, limits.small, Rule::Weight, by_cost);

  position_.resize(left_.size());
  std::vector<int> ordered;
  for (const int v : order_.eliminated) ordered.push_back(v);
  for (const int v : order_.rest) ordered.push_back(v);
  std::vector<int> placed_sizes;
  for (size_t p = 0; p < ordered.size(); ++p) {
    position_[at(ordered[p])] = static_cast<int>(p);
    placed_sizes.push_back(sizes[at(ordered[p])]);
  }
  const int count = static_cast<int>(order_.eliminated.size());
  for (const int v : order_.eliminated) steps_.insert(steps_.end(), {kEliminate, left_[at(v)], 0, 0});
  for (const int v : order_.rest) {
    core_.push_back(left_[at(v)]);
    sizes_.push_back(sizes[at(v)]);
  }

  std::vector<Factor> costs;
  factors_.resize(at(planes));
  for (size_t i = 0; i < left_.size(); ++i) {
    const auto& variable = variables[at(left_[i])];
    const int p = position_[i];
    for (int k = 0; k < planes; ++k) {
      const auto from = variable.unary.begin() + k * variable.size;
      if (k == 0) {
        costs.push_back({{p}, {from, from + variable.size}});
      } else if (p < count) {
        constant_[at(k)] += *from;
      } else {
        factors_[at(k)].push_back({{p - count}, {from, from + variable.size}});
      }
    }
  }
  for (const auto& pair : reduction_.pairs()) {
    if (!pair.left) continue;
    const int p = position_[at(number[at(pair.u)])], q = position_[at(number[at(pair.v)])];
    const size_t rows = at(variables[at(pair.u)].size), columns = at(variables[at(pair.v)].size);
    costs.push_back(plane_of(pair, 0, p, q, rows, columns));
    for (int k = 1; k < pair.planes; ++k) {
      factors_[at(k)].push_back(plane_of(pair, k, p - count, q - count, rows, columns));
    }
  }
  std::vector<FoldedFactor> folded;
  for (Factor& factor : shares_rows ? costs : std::vector<Factor>())
    folded.push_back(fold(std::move(factor), placed_sizes));
  elimination_ = shares_rows ? std::make_unique<Elimination>(std::move(placed_sizes), count, std::move(folded))
                             : std::make_unique<Elimination>(std::move(placed_sizes), count, std::move(costs));
  constant_[0] += elimination_->constant();
  for (Factor factor : elimination_->rest()) {
    for (int& v : factor.scope) v -= count;
    factors_[0].push_back(std::move(factor));
  }
}

// Takes the order of tables whose equal rows are one where others are large and these are smaller.
bool Collapse::use_distinct_rows(const std::vector<int>& sizes, const std::vector<int>& number,
                                 const WorkLimits& limits, const std::vector<char>& by_cost) {
  const bool fits = order_.rest.empty() && order_.cells <= limits.most;
  const bool is_small = fits && order_.cells <= limits.distinct;
  if (is_small || std::find(by_cost.begin(), by_cost.end(), 0) != by_cost.end()) return false;
  const auto& variables = reduction_.variables();
  std::vector<FoldedFactor> factors;
  for (const auto& pair : reduction_.pairs()) {
    if (!pair.left) continue;
    const size_t rows = at(variables[at(pair.u)].size), columns = at(variables[at(pair.v)].size);
    factors.push_back(fold(plane_of(pair, 0, number[at(pair.u)], number[at(pair.v)], rows, columns), sizes));
  }
  const auto order_by = [&](Rule rule) {
    return distinct_order(sizes, factors, limits.distinct_largest, limits.distinct_most, rule);
  };
  Order order = order_by(Rule::Weight);
  if (!order.rest.empty() || order.cells > limits.distinct) {
    Order other = order_by(Rule::Fill);
    if (std::make_pair(other.rest.size(), other.cells) < std::make_pair(order.rest.size(), order.cells))
      order = std::move(other);
  }
  if (!order.rest.empty() || (fits && order.cells >= order_.cells)) return false;
  order_ = std::move(order);
  return true;
}

std::vector<int> Collapse::complete(const std::vector<int>& core_choice) const {
  std::vector<int> choice(order_.eliminated.size(), 0);
  choice.insert(choice.end(), core_choice.begin(), core_choice.end());
  if (!elimination_->decode(choice)) return {};
  std::vector<int> by_variable(reduction_.variables().size(), 0);
  for (size_t i = 0; i < left_.size(); ++i) by_variable[at(left_[i])] = choice[at(position_[i])];
  return reduction_.restore(by_variable);
}

}  // namespace neo::select
