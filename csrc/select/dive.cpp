#include "select/dive.h"

#include <algorithm>
#include <utility>

namespace neo::select {
namespace {

constexpr int kFailures = 4096;

class Dive {
 public:
  Dive(const std::vector<int>& sizes, const std::vector<Factor>& costs, const MiniBuckets& tables)
      : sizes_(sizes), costs_(costs), tables_(tables), around_(sizes.size()), choice_(sizes.size(), 0) {
    for (const int size : sizes) alive_.emplace_back(at(size), 1);
    for (size_t f = 0; f < costs.size(); ++f) {
      for (const int v : costs[f].scope) around_[at(v)].push_back(f);
    }
  }

  std::vector<int> run();

 private:
  struct Decision {
    std::vector<int> options;  // of a variable, the best last
    size_t removed = 0;        // before it
  };

  void remove(int v, int i) {
    alive_[at(v)][at(i)] = 0;
    removed_.emplace_back(v, i);
  }
  void restore(size_t count);
  std::vector<int> options(size_t v);
  bool keep_supported(std::vector<size_t> waiting);
  bool decide(int v, int i);
  bool revise(const Factor& factor, std::vector<int>& changed);

  const std::vector<int>& sizes_;
  const std::vector<Factor>& costs_;
  const MiniBuckets& tables_;
  std::vector<std::vector<size_t>> around_;  // the factors of each variable
  std::vector<std::vector<char>> alive_;
  std::vector<std::pair<int, int>> removed_;
  std::vector<int> choice_;
};

void Dive::restore(size_t count) {
  for (; removed_.size() > count; removed_.pop_back())
    alive_[at(removed_.back().first)][at(removed_.back().second)] = 1;
}

// The choices left to v, by their bounds behind those of later variables, the least last.
std::vector<int> Dive::options(size_t v) {
  std::vector<std::pair<double, int>> ranked;
  for (int i = sizes_[v]; i-- > 0;) {
    if (!alive_[v][at(i)]) continue;
    choice_[v] = i;
    ranked.emplace_back(-tables_.bound_of(v, choice_), i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> options;
  for (const auto& [bound, i] : ranked) options.push_back(i);
  return options;
}

// Removes choices without an allowed combination in the factor. False where a variable has none left.
bool Dive::revise(const Factor& factor, std::vector<int>& changed) {
  const size_t rank = factor.scope.size();
  std::vector<std::vector<int>> left(rank);
  std::vector<std::vector<char>> supported(rank);
  std::vector<size_t> strides(rank, 1);
  size_t unsupported = 0, cell = 0;
  for (size_t axis = rank; axis-- > 0;) {
    const size_t v = at(factor.scope[axis]);
    if (axis + 1 < rank) strides[axis] = strides[axis + 1] * at(sizes_[at(factor.scope[axis + 1])]);
    for (int i = 0; i < sizes_[v]; ++i) {
      if (alive_[v][at(i)]) left[axis].push_back(i);
    }
    if (left[axis].empty()) return false;
    supported[axis].assign(left[axis].size(), 0);
    unsupported += left[axis].size();
    cell += strides[axis] * at(left[axis][0]);
  }
  std::vector<size_t> index(rank, 0);
  for (bool is_done = rank == 0; !is_done && unsupported > 0;) {
    if (factor.values[cell] < kInfinity) {
      for (size_t axis = 0; axis < rank; ++axis) unsupported -= std::exchange(supported[axis][index[axis]], 1) ? 0 : 1;
    }
    for (size_t axis = rank;;) {
      if (axis == 0) {
        is_done = true;
        break;
      }
      --axis;
      const std::vector<int>& choices = left[axis];
      const int before = choices[index[axis]];
      if (++index[axis] < choices.size()) {
        cell += strides[axis] * at(choices[index[axis]] - before);
        break;
      }
      index[axis] = 0;
      cell -= strides[axis] * at(before - choices[0]);
    }
  }
  if (unsupported == 0) return true;
  for (size_t axis = 0; axis < rank; ++axis) {
    bool is_changed = false, is_left = false;
    for (size_t i = 0; i < left[axis].size(); ++i) {
      is_left |= supported[axis][i] != 0;
      if (supported[axis][i]) continue;
      remove(factor.scope[axis], left[axis][i]);
      is_changed = true;
    }
    if (!is_left) return false;
    if (is_changed) changed.push_back(factor.scope[axis]);
  }
  return true;
}

// Revises factors, and those of the variables that lose choices by it, until nothing changes.
bool Dive::keep_supported(std::vector<size_t> waiting) {
  std::vector<char> waits(costs_.size(), 0);
  for (const size_t f : waiting) waits[f] = 1;
  for (size_t next = 0; next < waiting.size(); ++next) {
    const size_t f = waiting[next];
    waits[f] = 0;
    std::vector<int> changed;
    if (!revise(costs_[f], changed)) return false;
    for (const int v : changed) {
      for (const size_t g : around_[at(v)]) {
        if (g != f && !std::exchange(waits[g], 1)) waiting.push_back(g);
      }
    }
  }
  return true;
}

bool Dive::decide(int v, int i) {
  choice_[at(v)] = i;
  bool is_changed = false;
  for (int other = 0; other < sizes_[at(v)]; ++other) {
    if (other == i || !alive_[at(v)][at(other)]) continue;
    remove(v, other);
    is_changed = true;
  }
  return !is_changed || keep_supported(around_[at(v)]);
}

std::vector<int> Dive::run() {
  std::vector<size_t> all(costs_.size());
  for (size_t f = 0; f < all.size(); ++f) all[f] = f;
  if (!keep_supported(std::move(all))) return {};
  std::vector<Decision> decisions;
  const size_t count = sizes_.size();
  for (int failures = 0; failures < kFailures;) {
    if (decisions.size() == count) return choice_;
    const size_t v = count - 1 - decisions.size();
    decisions.push_back({options(v), removed_.size()});
    for (;;) {
      Decision& last = decisions.back();
      const int u = static_cast<int>(count - decisions.size());
      if (last.options.empty()) {
        decisions.pop_back();
        if (decisions.empty()) return {};
        restore(decisions.back().removed);
        continue;
      }
      const int i = last.options.back();
      last.options.pop_back();
      if (decide(u, i)) break;
      restore(last.removed);
      if (++failures >= kFailures) return {};
    }
  }
  return {};
}

}  // namespace

std::vector<int> dive(const std::vector<int>& sizes, const std::vector<Factor>& costs, const MiniBuckets& tables) {
  return Dive(sizes, costs, tables).run();
}

}  // namespace neo::select
