#include "select/levels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace neo::select {
namespace {

constexpr size_t kChoicesGiven = 64;  // of those that reach the end of a run

// A part of an objective's bucket at every state: where the state's choices lie in its message.
struct Lookup {
  const MiniBuckets::Part* part;
  std::vector<size_t> cells;
};

template <class T>
std::vector<T> taken(const std::vector<T>& values, const std::vector<int>& places) {
  std::vector<T> out;
  out.reserve(places.size());
  for (const int place : places) out.push_back(values[at(place)]);
  return out;
}

std::vector<int> numbered(size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

Levels::Levels(std::vector<int> sizes, const std::vector<std::vector<int>>& scopes, std::vector<Objective> objectives)
    : sizes_(std::move(sizes)), objectives_(std::move(objectives)), needed_until_(numbered(sizes_.size())) {
  for (const Objective& objective : objectives_) limits_ += objective.is_limit ? 1 : 0;
  for (const auto& scope : scopes) {
    for (const int v : scope) needed_until_[at(v)] = std::min(needed_until_[at(v)], scope[0]);
  }
}

Levels::Found Levels::run(double value, size_t width, Deadline deadline) {
  Found found;
  const double beat = value < kInfinity ? value - kSearchTolerance * std::max(1.0, std::abs(value)) : kInfinity;
  bounds_.clear();
  for (const Objective& objective : objectives_) bounds_.push_back({objective.tables.bound()});
  columns_.assign(sizes_.size(), {});
  std::vector<Level> levels;
  for (int v = static_cast<int>(sizes_.size()); v-- > 0;) {
    levels.push_back(extend(v, beat));
    if (levels.back().values.empty()) return found;
    std::vector<int> chosen = undominated();
    const std::vector<double> rank = ranks();
    if (chosen.size() > width) {
      const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(width);
      std::nth_element(chosen.begin(), end, chosen.end(),
                       [&](int a, int b) { return std::make_pair(rank[at(a)], a) < std::make_pair(rank[at(b)], b); });
      found.floor = std::min(found.floor, rank[at(*end)]);
      found.dropped = true;
      chosen.erase(end, chosen.end());
      std::sort(chosen.begin(), chosen.end());
    }
    double least = kInfinity;
    for (const int state : chosen) least = std::min(least, rank[at(state)]);
    if (chosen.size() < rank.size()) {
      for (auto& bounds : bounds_) bounds = taken(bounds, chosen);
      for (auto& column : columns_) {
        if (!column.empty()) column = taken(column, chosen);
      }
      levels.back() = {taken(levels.back().parents, chosen), taken(levels.back().values, chosen)};
    }
    if (is_over(deadline)) return {{}, std::min(found.floor, least), true};
  }
  std::vector<int> ends = numbered(bounds_[0].size());
  std::sort(ends.begin(), ends.end(),
            [&](int a, int b) { return std::make_pair(bounds_[0][at(a)], a) < std::make_pair(bounds_[0][at(b)], b); });
  if (limits_ > 0 && ends.size() > kChoicesGiven) {
    found.dropped = true;
    found.floor = std::min(found.floor, bounds_[0][at(ends[0])]);
  }
  ends.resize(std::min(ends.size(), kChoicesGiven));
  for (const int end : ends) found.choices.push_back(trace(levels, end));
  return found;
}

Levels::Level Levels::extend(int v, double beat) {
  const size_t states = bounds_[0].size();
  std::vector<std::vector<Lookup>> lookups;
  for (const Objective& objective : objectives_) {
    auto& parts = lookups.emplace_back();
    for (const auto& part : objective.tables.parts()[at(v)]) {
      std::vector<size_t> cells(states, 0);
      for (size_t axis = 1; axis < part.joined.scope.size(); ++axis) {
        const int u = part.joined.scope[axis];
        for (size_t s = 0; s < states; ++s) cells[s] = cells[s] * at(sizes_[at(u)]) + at(columns_[at(u)][s]);
      }
      parts.push_back({&part, std::move(cells)});
    }
  }
  Level level;
  std::vector<std::vector<double>> kept(objectives_.size()), extended(objectives_.size());
  std::vector<char> fits;
  for (int i = 0; i < sizes_[at(v)]; ++i) {
    fits.assign(states, 1);
    for (size_t o = 0; o < objectives_.size(); ++o) {
      const Objective& objective = objectives_[o];
      std::vector<double>& total = extended[o] = bounds_[o];
      for (const Lookup& lookup : lookups[o]) {
        const std::vector<double>& message = lookup.part->message;
        const double* row = lookup.part->joined.values.data() + at(i) * message.size();
        for (size_t s = 0; s < states; ++s) total[s] += row[lookup.cells[s]] - message[lookup.cells[s]];
      }
      // Infinity less infinity is no number, which no comparison lets pass.
      for (size_t s = 0; s < states; ++s) {
        fits[s] &= objective.is_limit ? total[s] <= objective.most : total[s] < beat - objective.offset;
      }
    }
    for (size_t s = 0; s < states; ++s) {
      if (!fits[s]) continue;
      level.parents.push_back(static_cast<int>(s));
      level.values.push_back(i);
      for (size_t o = 0; o < kept.size(); ++o) kept[o].push_back(extended[o][s]);
    }
  }
  bounds_ = std::move(kept);
  for (size_t u = 0; u < columns_.size(); ++u) {
    if (columns_[u].empty()) continue;
    if (needed_until_[u] < v) {
      columns_[u] = taken(columns_[u], level.parents);
    } else {
      columns_[u].clear();
    }
  }
  if (needed_until_[at(v)] < v) columns_[at(v)] = level.values;
  return level;
}

std::vector<double> Levels::ranks() const {
  std::vector<double> rank = bounds_[0];
  for (size_t o = 1; o + limits_ < bounds_.size(); ++o) {
    for (size_t s = 0; s < rank.size(); ++s) rank[s] = std::max(rank[s], bounds_[o][s] + objectives_[o].offset);
  }
  return rank;
}

std::vector<int64_t> Levels::keys() const {
  std::vector<int64_t> key(bounds_[0].size(), 0);
  double room = 1;
  for (size_t u = 0; u < columns_.size(); ++u) {
    if (columns_[u].empty()) continue;
    if (room * sizes_[u] >= 0x1p62) {
      std::vector<int64_t> known = key;
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      for (int64_t& k : key) k = std::lower_bound(known.begin(), known.end(), k) - known.begin();
      room = static_cast<double>(known.size());
    }
    for (size_t s = 0; s < key.size(); ++s) key[s] = key[s] * sizes_[u] + columns_[u][s];
    room *= sizes_[u];
  }
  return key;
}

std::vector<int> Levels::undominated() const {
  const std::vector<int64_t> key = keys();
  const auto used = bounds_.end() - static_cast<std::ptrdiff_t>(limits_);
  std::vector<int> order = numbered(key.size());
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    if (key[at(a)] != key[at(b)]) return key[at(a)] < key[at(b)];
    if (bounds_[0][at(a)] != bounds_[0][at(b)]) return bounds_[0][at(a)] < bounds_[0][at(b)];
    for (auto usage = used; usage != bounds_.end(); ++usage) {
      if ((*usage)[at(a)] != (*usage)[at(b)]) return (*usage)[at(a)] < (*usage)[at(b)];
    }
    return a < b;
  });
  const auto uses_no_more = [&](int a, int b) {
    return std::all_of(used, bounds_.end(), [&](const auto& usage) { return usage[at(a)] <= usage[at(b)]; });
  };
  // A state is compared with some of those before it, which cost no more: comparing all would take their square.
  constexpr std::array kLags = {1, 2, 3, 4, 6, 8, 12, 16};
  std::vector<int> kept;
  size_t first = 0;  // of those that agree
  int thriftiest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int state = order[i];
    bool beaten = false;
    if (i == 0 || key[at(state)] != key[at(order[first])]) {
      first = i;
    } else if (limits_ == 1) {
      beaten = uses_no_more(thriftiest, state);
    } else {
      beaten = uses_no_more(order[first], state);
      for (const int lag : kLags) beaten = beaten || (i - first >= at(lag) && uses_no_more(order[i - at(lag)], state));
    }
    if (beaten) continue;
    thriftiest = state;
    kept.push_back(state);
  }
  return kept;
}

std::vector<int> Levels::trace(const std::vector<Level>& levels, int end) const {
  std::vector<int> choice(sizes_.size());
  for (size_t v = 0; v < levels.size(); ++v) {
    const Level& level = levels[levels.size() - 1 - v];
    choice[v] = level.values[at(end)];
    end = level.parents[at(end)];
  }
  return choice;
}

}  // namespace neo::select
