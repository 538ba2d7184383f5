#include "routines/space.h"

#include <algorithm>

#include "base/check.h"

namespace neo {

Space::Space() : Space(std::vector<Parameter>{}) {}

Space::Space(std::vector<Parameter> parameters, const Constraint& allows) : parameters_(std::move(parameters)) {
  int64_t grid = 1;
  for (const Parameter& p : parameters_) {
    NEO_ASSERT(!p.values.empty(), "parameter ", p.name, " has no values");
    grid *= static_cast<int64_t>(p.values.size());
  }
  std::vector<int64_t> values;
  for (const Parameter& p : parameters_) values.push_back(p.values.front());
  std::vector<size_t> at(parameters_.size());
  for (int64_t code = 0; code < grid; ++code) {
    if (!allows || allows(values)) codes_.push_back(code);
    // Counts as values() reads: the last parameter first.
    for (size_t i = parameters_.size(); i-- > 0;) {
      at[i] = at[i] + 1 < parameters_[i].values.size() ? at[i] + 1 : 0;
      values[i] = parameters_[i].values[at[i]];
      if (at[i] > 0) break;
    }
  }
}

std::optional<int64_t> Space::point_of(int64_t code) const {
  const auto it = std::lower_bound(codes_.begin(), codes_.end(), code);
  if (it == codes_.end() || *it != code) return std::nullopt;
  return it - codes_.begin();
}

Schedule Space::at(int64_t point) const {
  const std::vector<int64_t> all = values(point);
  Schedule schedule;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != 0) schedule[parameters_[i].name] = all[i];
  }
  return schedule;
}

std::vector<int64_t> Space::values(int64_t point) const {
  NEO_ASSERT(point >= 0 && point < size(), "there is no point ", point, " among ", size());
  int64_t code = codes_[static_cast<size_t>(point)];
  std::vector<int64_t> all(parameters_.size());
  for (size_t i = parameters_.size(); i-- > 0;) {
    const auto count = static_cast<int64_t>(parameters_[i].values.size());
    all[i] = parameters_[i].values[static_cast<size_t>(code % count)];
    code /= count;
  }
  return all;
}

std::optional<int64_t> Space::find(const Schedule& schedule) const {
  int64_t code = 0;
  size_t used = 0;
  for (const Parameter& p : parameters_) {
    const int64_t value = value_of(schedule, p.name);
    used += schedule.count(p.name);
    const auto it = std::find(p.values.begin(), p.values.end(), value);
    if (it == p.values.end()) return std::nullopt;
    code = code * static_cast<int64_t>(p.values.size()) + (it - p.values.begin());
  }
  if (used != schedule.size()) return std::nullopt;
  return point_of(code);
}

int64_t Space::mutate(int64_t point, std::mt19937_64& random) const {
  std::vector<int64_t> neighbours;
  int64_t radix = 1;
  const int64_t code = codes_[static_cast<size_t>(point)];
  for (size_t i = parameters_.size(); i-- > 0;) {
    const auto count = static_cast<int64_t>(parameters_[i].values.size());
    const int64_t here = code / radix % count;
    for (int64_t v = 0; v < count; ++v) {
      if (v == here) continue;
      if (const auto next = point_of(code + (v - here) * radix)) neighbours.push_back(*next);
    }
    radix *= count;
  }
  if (neighbours.empty()) return point;
  return neighbours[std::uniform_int_distribution<size_t>(0, neighbours.size() - 1)(random)];
}

std::vector<int64_t> part_sizes(int64_t units, int64_t most, int64_t automatic) {
  std::vector<int64_t> sizes = {0};
  for (int64_t parts = 1; parts <= std::min(units, most); parts += std::max<int64_t>(1, parts / 3)) {
    const int64_t size = (units + parts - 1) / parts;
    if (size != automatic && std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

int64_t value_of(const Schedule& schedule, std::string_view name) {
  const auto it = schedule.find(name);
  return it == schedule.end() ? 0 : it->second;
}

}  // namespace neo
