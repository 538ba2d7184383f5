#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "select/elimination.h"
#include "select/problem.h"

namespace neo::select {
namespace {

using Neighbours = std::vector<std::vector<int>>;  // each sorted

Neighbours neighbours_of(size_t count, const std::vector<std::pair<int, int>>& pairs) {
  Neighbours neighbours(count);
  for (const auto& [u, v] : pairs) {
    neighbours[at(u)].push_back(v);
    neighbours[at(v)].push_back(u);
  }
  for (auto& near : neighbours) {
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
  }
  return neighbours;
}

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

// A variable at an end of the part that `start` lies in: the last of a walk by levels, twice.
int far_end(const Neighbours& neighbours, int start) {
  for (int walk = 0; walk < 2; ++walk) {
    std::vector<char> seen(neighbours.size(), 0);
    seen[at(start)] = 1;
    std::vector<int> level{start}, last;
    while (!level.empty()) {
      last = std::exchange(level, {});
      for (const int v : last) {
        for (const int a : neighbours[at(v)]) {
          if (!std::exchange(seen[at(a)], 1)) level.push_back(a);
        }
      }
    }
    start = *std::min_element(last.begin(), last.end(), [&](int a, int b) {
      return std::make_pair(neighbours[at(a)].size(), a) < std::make_pair(neighbours[at(b)].size(), b);
    });
  }
  return start;
}

}  // namespace

std::vector<int> depth_first(const std::vector<int>& eliminated, const std::vector<std::vector<int>>& scopes,
                             int count) {
  std::vector<int> position(at(count), -1);
  for (size_t i = 0; i < eliminated.size(); ++i) position[at(eliminated[i])] = static_cast<int>(i);
  std::vector<std::vector<int>> joined(eliminated.size());
  std::vector<int> waiting;
  for (size_t i = 0; i < eliminated.size(); ++i) {
    int next = -1;
    for (const int v : scopes[i]) {
      const int p = position[at(v)];
      if (p >= 0 && (next < 0 || p < next)) next = p;
    }
    (next < 0 ? waiting : joined[at(next)]).push_back(static_cast<int>(i));
  }
  std::vector<int> order;
  while (!waiting.empty()) {
    const int i = waiting.back();
    waiting.pop_back();
    order.push_back(eliminated[at(i)]);
    waiting.insert(waiting.end(), joined[at(i)].begin(), joined[at(i)].end());
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<int> linear_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs) {
  enum class Place : char { Outside, Boundary, Done };
  struct Waiting {
    int v;
    int age;  // when it came to the boundary
  };
  const Neighbours neighbours = neighbours_of(sizes.size(), pairs);
  std::vector<Place> places(sizes.size(), Place::Outside);
  std::vector<double> bits;
  for (const int n : sizes) bits.push_back(std::log2(n) + 1e-3);
  std::vector<int> order;
  // How far the boundary grows when a variable leaves it.
  const auto growth = [&](int v) {
    double sum = -bits[at(v)];
    for (const int a : neighbours[at(v)]) {
      if (places[at(a)] == Place::Outside) sum += bits[at(a)];
    }
    return sum;
  };
  for (size_t first = 0; first < sizes.size(); ++first) {
    if (places[first] != Place::Outside) continue;
    std::vector<Waiting> boundary{{far_end(neighbours, static_cast<int>(first)), 0}};
    for (int age = 1; !boundary.empty(); ++age) {
      const auto next = std::min_element(boundary.begin(), boundary.end(), [&](const Waiting& a, const Waiting& b) {
        return std::make_pair(growth(a.v), a.age) < std::make_pair(growth(b.v), b.age);
      });
      const int v = next->v;
      boundary.erase(next);
      places[at(v)] = Place::Done;
      order.push_back(v);
      for (const int a : neighbours[at(v)]) {
        if (std::exchange(places[at(a)], std::max(places[at(a)], Place::Boundary)) == Place::Outside) {
          boundary.push_back({a, age});
        }
      }
    }
  }
  return order;
}

Order greedy_order(const std::vector<int>& sizes, const std::vector<std::pair<int, int>>& pairs, double limit,
                   Rule rule, const std::vector<char>& allowed) {
  const int count = static_cast<int>(sizes.size());
  Neighbours neighbours = neighbours_of(sizes.size(), pairs);
  struct Key {
    double first;
    double cells;
    int v;
    auto operator<=>(const Key&) const = default;
  };
  const auto key_of = [&](int v) {
    const double cells = weight(sizes, neighbours, v);
    // A table that is too large is not taken: its exact place does not matter.
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
  std::vector<std::vector<int>> scopes;
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
    scopes.push_back(around);
  }
  order.eliminated = depth_first(order.eliminated, scopes, count);
  for (int v = 0; v < count; ++v) {
    if (!gone[at(v)]) order.rest.push_back(v);
  }
  return order;
}

}  // namespace neo::select
