#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "select/elimination.h"
#include "select/problem.h"

namespace neo::select {
namespace {

using Neighbours = std::vector<std::vector<int>>;  // each sorted

bool insert(std::vector<int>& sorted, int v) {
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), v);
  if (place != sorted.end() && *place == v) return false;
  sorted.insert(place, v);
  return true;
}

double weight(const std::vector<int>& sizes, const Neighbours& neighbours, int v) {
  double cells = sizes[at(v)];
  for (const int a : neighbours[at(v)]) cells *= sizes[at(a)];
  return cells;
}

double fill(const std::vector<int>& sizes, const Neighbours& neighbours, int v) {
  double cells = 0;
  const auto& around = neighbours[at(v)];
  for (size_t i = 0; i < around.size(); ++i) {
    const auto& near = neighbours[at(around[i])];
    for (size_t j = i + 1; j < around.size(); ++j) {
      if (std::binary_search(near.begin(), near.end(), around[j])) continue;
      cells += static_cast<double>(sizes[at(around[i])]) * sizes[at(around[j])];
    }
  }
  return cells;
}

}  // namespace

Order greedy_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs, double limit,
                   Rule rule, const std::vector<char>& allowed) {
  const int count = static_cast<int>(sizes.size());
  Neighbours neighbours(at(count));
  for (const auto& [u, v] : pairs) {
    neighbours[at(u)].push_back(v);
    neighbours[at(v)].push_back(u);
  }
  for (auto& near : neighbours) {
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
  }
  struct Key {
    double first;
    double cells;
    int v;
    auto operator<=>(const Key&) const = default;
  };
  const auto key_of = [&](int v) {
    const double cells = weight(sizes, neighbours, v);
    // What is too large is not taken: its exact place does not matter.
    return Key{rule == Rule::Fill && cells <= limit ? fill(sizes, neighbours, v) : cells, cells, v};
  };
  std::vector<Key> keys;
  std::vector<char> waiting(allowed);
  std::priority_queue<Key, std::vector<Key>, std::greater<>> heap;
  for (int v = 0; v < count; ++v) {
    keys.push_back(key_of(v));
    if (waiting[at(v)]) heap.push(keys.back());
  }
  Order order;
  std::vector<char> gone(at(count), 0);
  while (!heap.empty()) {
    const Key key = heap.top();
    heap.pop();
    const int v = key.v;
    if (!waiting[at(v)] || key != keys[at(v)] || key.cells > limit) continue;
    waiting[at(v)] = 0;
    gone[at(v)] = 1;
    order.eliminated.push_back(v);
    order.cells += key.cells;
    const std::vector<int> around = std::move(neighbours[at(v)]);
    std::vector<int> changed = around;
    for (const int a : around) {
      auto& near = neighbours[at(a)];
      near.erase(std::lower_bound(near.begin(), near.end(), v));
      for (const int b : around) {
        if (b != a) insert(near, b);
      }
    }
    if (rule == Rule::Fill) {
      for (const int a : around) changed.insert(changed.end(), neighbours[at(a)].begin(), neighbours[at(a)].end());
      std::sort(changed.begin(), changed.end());
      changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    }
    for (const int a : changed) {
      if (!waiting[at(a)]) continue;
      const Key now = key_of(a);
      if (now == keys[at(a)]) continue;
      keys[at(a)] = now;
      heap.push(now);
    }
  }
  for (int v = 0; v < count; ++v) {
    if (!gone[at(v)]) order.rest.push_back(v);
  }
  return order;
}

}  // namespace neo::select
