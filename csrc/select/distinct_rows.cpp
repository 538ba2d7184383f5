#include "select/distinct_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "select/problem.h"

namespace neo::select {
namespace {

// Numbers keys in the order in which they come first; nothing where all differ.
template <class Key>
Rows numbered(size_t count, const std::function<Key(size_t)>& key) {
  std::map<Key, int> numbers;
  Rows rows;
  for (size_t i = 0; i < count; ++i)
    rows.push_back(numbers.emplace(key(i), static_cast<int>(numbers.size())).first->second);
  return numbers.size() == count ? Rows() : rows;
}

// The first choice of each row.
std::vector<size_t> firsts(const Rows& rows, size_t choices) {
  std::vector<size_t> first;
  for (size_t i = 0; i < choices; ++i) {
    if (rows.empty() || rows[i] == static_cast<int>(first.size())) first.push_back(i);
  }
  return first;
}

// A table that an elimination would join, without its elements.
struct Scope {
  std::vector<int> variables;
  std::vector<Rows> rows;
};

}  // namespace

std::vector<size_t> sums_of(const std::vector<size_t>& outer, const std::vector<size_t>& inner) {
  std::vector<size_t> sums;
  sums.reserve(outer.size() * inner.size());
  for (const size_t offset : outer)
    for (const size_t place : inner) sums.push_back(offset + place);
  return sums;
}

int row_count(const Rows& rows, int choices) {
  return rows.empty() ? choices : *std::max_element(rows.begin(), rows.end()) + 1;
}

Rows refined(const Rows& a, const Rows& b) {
  if (a.empty() || b.empty()) return {};
  if (a == b) return a;
  return numbered<std::pair<int, int>>(a.size(), [&](size_t i) { return std::pair(a[i], b[i]); });
}

FoldedFactor fold(Factor factor, const std::vector<int>& sizes) {
  std::vector<Rows> rows(factor.scope.size());
  if (factor.scope.size() != 2) return {std::move(factor), std::move(rows)};
  const size_t height = at(sizes[at(factor.scope[0])]), width = at(sizes[at(factor.scope[1])]);
  const std::vector<double>& values = factor.values;
  rows[0] = numbered<std::vector<double>>(height, [&](size_t i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    return std::vector<double>(from, from + static_cast<std::ptrdiff_t>(width));
  });
  rows[1] = numbered<std::vector<double>>(width, [&](size_t j) {
    std::vector<double> column;
    for (size_t i = 0; i < height; ++i) column.push_back(values[i * width + j]);
    return column;
  });
  if (rows[0].empty() && rows[1].empty()) return {std::move(factor), std::move(rows)};
  std::vector<double> kept;
  const std::vector<size_t> columns = firsts(rows[1], width);
  for (const size_t i : firsts(rows[0], height))
    for (const size_t j : columns) kept.push_back(values[i * width + j]);
  return {{std::move(factor.scope), std::move(kept)}, std::move(rows)};
}

RowPlaces places_of(const FoldedFactor& folded, const std::vector<int>& scope, const std::vector<Rows>& rows,
                    const std::vector<int>& counts) {
  RowPlaces places;
  for (const int v : scope) places.emplace_back(at(counts[at(v)]), 0);
  const std::vector<int>& own = folded.factor.scope;
  size_t stride = 1;
  for (size_t i = own.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(std::find(scope.begin(), scope.end(), own[i]) - scope.begin());
    const Rows& to = rows[axis];
    const Rows& from = folded.rows[i];
    const size_t count = at(counts[at(own[i])]), choices = to.empty() ? count : to.size();
    for (size_t c = 0; c < choices; ++c)
      places[axis][to.empty() ? c : at(to[c])] = stride * (from.empty() ? c : at(from[c]));
    stride *= at(row_count(from, static_cast<int>(choices)));
  }
  return places;
}

bool has_rows(const FoldedFactor& folded, const std::vector<int>& scope, const std::vector<Rows>& rows) {
  for (size_t i = 0; i < folded.rows.size(); ++i) {
    const auto axis = std::find(scope.begin(), scope.end(), folded.factor.scope[i]) - scope.begin();
    if (folded.rows[i] != rows[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

Factor unfolded(FoldedFactor folded, const std::vector<int>& scope, const std::vector<Rows>& rows,
                const std::vector<int>& counts) {
  if (has_rows(folded, scope, rows)) return std::move(folded.factor);
  const RowPlaces places = places_of(folded, scope, rows, counts);
  std::vector<size_t> offsets{0};
  for (const int v : folded.factor.scope) {
    const auto axis = std::find(scope.begin(), scope.end(), v) - scope.begin();
    offsets = sums_of(offsets, places[static_cast<size_t>(axis)]);
  }
  Factor made{std::move(folded.factor.scope), std::vector<double>(offsets.size())};
  for (size_t i = 0; i < offsets.size(); ++i) made.values[i] = folded.factor.values[offsets[i]];
  return made;
}

Order distinct_order(const std::vector<int>& sizes, const std::vector<FoldedFactor>& factors, double largest,
                     double most, Rule rule) {
  // Beside the pairs that become neighbours the table counts little, but more than nothing.
  constexpr double kTableShare = 1e-4;
  std::vector<Scope> scopes;
  std::vector<std::vector<size_t>> around(sizes.size());  // scopes by variable
  const auto add = [&](Scope scope) {
    for (const int v : scope.variables) around[at(v)].push_back(scopes.size());
    scopes.push_back(std::move(scope));
  };
  for (const FoldedFactor& factor : factors) add({factor.factor.scope, factor.rows});

  const auto joined = [&](int v) {
    std::map<int, Rows> rows;
    for (const size_t s : around[at(v)]) {
      for (size_t i = 0; i < scopes[s].variables.size(); ++i) {
        const auto [found, is_new] = rows.try_emplace(scopes[s].variables[i], scopes[s].rows[i]);
        if (!is_new) found->second = refined(found->second, scopes[s].rows[i]);
      }
    }
    rows.erase(v);
    return rows;
  };
  const auto cells_with = [&](int v, const std::map<int, Rows>& rows) {
    double cells = sizes[at(v)];
    for (const auto& [w, own] : rows) cells *= row_count(own, sizes[at(w)]);
    return cells;
  };
  const auto are_neighbours = [&](int a, int b) {
    return std::any_of(around[at(a)].begin(), around[at(a)].end(), [&](size_t s) {
      const std::vector<int>& variables = scopes[s].variables;
      return std::find(variables.begin(), variables.end(), b) != variables.end();
    });
  };
  // Cells of the table that a variable is minimised in, and what it counts by the rule.
  const auto priced = [&](int v) {
    const std::map<int, Rows> rows = joined(v);
    const double own = cells_with(v, rows);
    if (rule == Rule::Weight) return std::pair(own, own);
    double fill = 0;
    for (auto a = rows.begin(); a != rows.end(); ++a) {
      for (auto b = std::next(a); b != rows.end(); ++b) {
        const auto count = [&](const auto& axis) {
          return static_cast<double>(row_count(axis.second, sizes[at(axis.first)]));
        };
        if (!are_neighbours(a->first, b->first)) fill += count(*a) * count(*b);
      }
    }
    return std::pair(own, fill + kTableShare * own);
  };
  using Key = std::pair<double, int>;
  std::vector<double> cells, prices;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> heap;
  for (int v = 0; v < static_cast<int>(sizes.size()); ++v) {
    const auto [own, price] = priced(v);
    cells.push_back(own);
    prices.push_back(price);
    heap.emplace(price, v);
  }
  Order order;
  std::vector<std::vector<int>> neighbours;
  std::vector<char> is_gone(sizes.size(), 0);
  while (!heap.empty()) {
    const auto [price, v] = heap.top();
    heap.pop();
    if (is_gone[at(v)] || price != prices[at(v)]) continue;
    const double size = cells[at(v)];
    if (size > largest || order.cells + size > most) break;
    is_gone[at(v)] = 1;
    order.eliminated.push_back(v);
    order.cells += size;
    Scope left;
    for (auto& [w, rows] : joined(v)) {
      left.variables.push_back(w);
      left.rows.push_back(rows);
    }
    for (const size_t s : std::exchange(around[at(v)], {})) {
      for (const int w : scopes[s].variables) {
        if (w != v) around[at(w)].erase(std::find(around[at(w)].begin(), around[at(w)].end(), s));
      }
    }
    neighbours.push_back(left.variables);
    add(std::move(left));
    for (const int w : neighbours.back()) {
      std::tie(cells[at(w)], prices[at(w)]) = priced(w);
      heap.emplace(prices[at(w)], w);
    }
  }
  order.eliminated = depth_first(order.eliminated, neighbours, static_cast<int>(sizes.size()));
  for (int v = 0; v < static_cast<int>(sizes.size()); ++v) {
    if (!is_gone[at(v)]) order.rest.push_back(v);
  }
  return order;
}

}  // namespace neo::select
