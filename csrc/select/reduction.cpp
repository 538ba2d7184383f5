#include "select/reduction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "select/problem.h"

namespace neo::select {
namespace {

// How a pair's plane is walked: for choice i of one end and j of the other.
struct View {
  const double* values;
  int count;  // choices of the other end
  int own;    // from a choice of this end to the next
  int others;

  double operator()(int i, int j) const { return values[i * own + j * others]; }
};

View view(const Reduction::Pair& pair, const std::vector<Reduction::Variable>& variables, int v, int plane) {
  const int rows = variables[at(pair.u)].size, columns = variables[at(pair.v)].size;
  const double* values = pair.values.data() + at(plane) * at(rows) * at(columns);
  return pair.u == v ? View{values, columns, columns, 1} : View{values, rows, 1, columns};
}

// Planes x rows x columns with the last two exchanged.
std::vector<double> transposed(const std::vector<double>& values, int planes, int rows, int columns) {
  std::vector<double> out(values.size());
  for (int k = 0; k < planes; ++k)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        out[at((k * columns + j) * rows + i)] = values[at((k * rows + i) * columns + j)];
      }
  return out;
}

}  // namespace

Reduction::Reduction(Problem problem)
    : planes_(problem.planes), constant_(at(problem.planes), 0.0), limits_(std::move(problem.limits)) {
  const int count = problem.count();
  variables_.resize(at(count));
  for (int v = 0; v < count; ++v) {
    Variable& variable = variables_[at(v)];
    variable.size = problem.size(v);
    variable.unary = std::move(problem.unary[at(v)]);
    variable.alive.resize(at(variable.size));
    for (int i = 0; i < variable.size; ++i) variable.alive[at(i)] = i;
    sizes_.push_back(variable.size);
  }
  for (int k = 0; k + 1 < planes_; ++k) limited_.push_back(k);
  pairs_.reserve(problem.pairs.size());
  for (auto& pair : problem.pairs) {
    const int index = static_cast<int>(pairs_.size());
    variables_[at(pair.u)].pairs.push_back(index);
    variables_[at(pair.v)].pairs.push_back(index);
    pairs_.push_back({true, pair.u, pair.v, pair.planes, std::move(pair.values)});
  }
  queued_.assign(at(count), 0);
}

bool Reduction::run() {
  return drop_forbidden() && drop_beyond_limits() && tighten();
}

std::vector<int> Reduction::restore(const std::vector<int>& choice) const {
  std::vector<int> whole(variables_.size(), 0);
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].left) whole[v] = variables_[v].alive[at(choice[v])];
  }
  for (auto it = decided_.rbegin(); it != decided_.rend(); ++it) {
    whole[at(it->v)] = it->choice[it->by < 0 ? 0 : at(whole[at(it->by)])];
  }
  return whole;
}

void Reduction::note(int kind, int a, int b, int c) {
  steps_.insert(steps_.end(), {kind, a, b, c});
}

void Reduction::push(int v) {
  if (queued_[at(v)]) return;
  queued_[at(v)] = 1;
  queue_.push_back(v);
}

bool Reduction::drop_forbidden() {
  const int count = static_cast<int>(variables_.size());
  for (int v = 0; v < count; ++v) {
    const Variable& variable = variables_[at(v)];
    std::vector<char> stays(at(variable.size), 1);
    for (int i = 0; i < variable.size; ++i) {
      if (variable.unary[at(i)] < kInfinity) continue;
      stays[at(i)] = 0;
      note(kDrop, v, variable.alive[at(i)], -1);
    }
    if (!keep(v, stays)) return false;
  }
  return true;
}

bool Reduction::drop_beyond_limits() {
  for (int k = planes_ - 1; k > 0; --k) {
    const double given = limits_[at(k - 1)];
    const double limit = given + rounding_of(given) - constant_[at(k)];
    double least = 0, most = 0;
    for (const Pair& pair : pairs_) {
      if (!pair.left || pair.planes == 1) continue;
      const size_t cells = pair.values.size() / at(pair.planes);
      const auto from = pair.values.begin() + static_cast<std::ptrdiff_t>(at(k) * cells);
      const auto [low, high] = std::minmax_element(from, from + static_cast<std::ptrdiff_t>(cells));
      least += *low;
      most += *high;
    }
    for (const Variable& variable : variables_) {
      if (!variable.left) continue;
      least += *std::min_element(&variable.unary[at(k * variable.size)], &variable.unary[0] + (k + 1) * variable.size);
    }
    const double slack = limit - least, rounding = rounding_of(limit);
    if (slack < 0) {
      exceeded_ = limited_[at(k - 1)];
      return false;
    }
    for (int v = 0; v < static_cast<int>(variables_.size()); ++v) {
      const Variable& variable = variables_[at(v)];
      if (!variable.left) continue;
      const double* used = &variable.unary[at(k * variable.size)];
      const double low = *std::min_element(used, used + variable.size);
      std::vector<char> stays(at(variable.size), 1);
      for (int i = 0; i < variable.size; ++i) {
        if (used[i] - low <= slack + rounding) continue;
        stays[at(i)] = 0;
        note(kBeyond, v, variable.alive[at(i)], limited_[at(k - 1)]);
      }
      if (!keep(v, stays)) return false;
    }
    for (const Variable& variable : variables_) {
      if (!variable.left) continue;
      most += *std::max_element(&variable.unary[at(k * variable.size)], &variable.unary[0] + (k + 1) * variable.size);
    }
    if (most <= limit - rounding) forget(k);
  }
  return true;
}

void Reduction::forget(int k) {
  note(kForget, limited_[at(k - 1)], 0, 0);
  const auto erase = [k](std::vector<double>& values, int planes) {
    const auto cells = static_cast<std::ptrdiff_t>(values.size()) / planes;
    values.erase(values.begin() + k * cells, values.begin() + (k + 1) * cells);
  };
  for (Variable& variable : variables_) {
    if (variable.left) erase(variable.unary, planes_);
  }
  for (Pair& pair : pairs_) {
    if (!pair.left || pair.planes == 1) continue;
    erase(pair.values, pair.planes);
    --pair.planes;
  }
  erase(constant_, planes_);
  limited_.erase(limited_.begin() + k - 1);
  limits_.erase(limits_.begin() + k - 1);
  --planes_;
}

bool Reduction::tighten() {
  for (int v = 0; v < static_cast<int>(variables_.size()); ++v) push(v);
  while (head_ < queue_.size()) {
    const int v = queue_[head_++];
    queued_[at(v)] = 0;
    const Variable& variable = variables_[at(v)];
    if (!variable.left) continue;
    const int before = variable.size;
    if (!drop_unsupported(v)) return false;
    if (variable.size > 1) drop_dominated(v);
    drop_flat_pairs(v);
    if (variable.size == 1) {
      if (!fold(v)) return false;
    } else if (const auto found = decider(v)) {
      for (const int p : variable.pairs) push(other(pairs_[at(p)], v));
      absorb(v, found->first, found->second);
    } else if (variable.size < before) {
      for (const int p : variable.pairs) push(other(pairs_[at(p)], v));
      push(v);
    }
  }
  return true;
}

bool Reduction::keep(int v, const std::vector<char>& stays) {
  Variable& variable = variables_[at(v)];
  const auto left = static_cast<int>(std::count(stays.begin(), stays.end(), 1));
  if (left == 0) {
    empty_ = v;
    return false;
  }
  if (left == variable.size) return true;
  std::vector<int> kept;
  for (int i = 0; i < variable.size; ++i) {
    if (stays[at(i)]) kept.push_back(i);
  }
  for (const int p : variable.pairs) {
    Pair& pair = pairs_[at(p)];
    const int rows = variables_[at(pair.u)].size, columns = variables_[at(pair.v)].size;
    double* to = pair.values.data();
    for (int k = 0; k < pair.planes; ++k) {
      const double* from = pair.values.data() + at(k) * at(rows) * at(columns);
      if (pair.u == v) {
        for (const int i : kept) to = std::copy(from + i * columns, from + (i + 1) * columns, to);
      } else {
        for (int i = 0; i < rows; ++i)
          for (const int j : kept) *to++ = from[i * columns + j];
      }
    }
    pair.values.resize(static_cast<size_t>(to - pair.values.data()));
  }
  double* to = variable.unary.data();
  for (int k = 0; k < planes_; ++k)
    for (const int i : kept) *to++ = variable.unary[at(k * variable.size + i)];
  variable.unary.resize(static_cast<size_t>(to - variable.unary.data()));
  for (int i = 0; i < left; ++i) variable.alive[at(i)] = variable.alive[at(kept[at(i)])];
  variable.alive.resize(at(left));
  variable.size = left;
  return true;
}

bool Reduction::drop_unsupported(int v) {
  const Variable& variable = variables_[at(v)];
  std::vector<char> stays(at(variable.size), 1);
  bool all = true;
  const auto drop = [&](int i) {
    stays[at(i)] = 0;
    all = false;
    note(kDrop, v, variable.alive[at(i)], -1);
  };
  for (int i = 0; i < variable.size; ++i) {
    if (!(variable.unary[at(i)] < kInfinity)) drop(i);
  }
  for (const int p : variable.pairs) {
    const View costs = view(pairs_[at(p)], variables_, v, 0);
    for (int i = 0; i < variable.size; ++i) {
      if (!stays[at(i)]) continue;
      bool supported = false;
      for (int j = 0; j < costs.count && !supported; ++j) supported = costs(i, j) < kInfinity;
      if (!supported) drop(i);
    }
  }
  return all || keep(v, stays);
}

bool Reduction::never_worse(int v, int b, int a) const {
  const Variable& variable = variables_[at(v)];
  for (int k = 0; k < planes_; ++k) {
    const double* unary = &variable.unary[at(k * variable.size)];
    double worse = unary[b] - unary[a];
    for (const int p : variable.pairs) {
      const Pair& pair = pairs_[at(p)];
      if (k >= pair.planes) continue;
      const View values = view(pair, variables_, v, k);
      double gap = -kInfinity;
      for (int j = 0; j < values.count; ++j) {
        const double mine = values(a, j);
        // Any choice is as good as one that is forbidden.
        if (mine < kInfinity) gap = std::max(gap, values(b, j) - mine);
      }
      worse += gap;
      if (worse == kInfinity) return false;
    }
    if (!(worse <= 0)) return false;
  }
  return true;
}

bool Reduction::drop_dominated(int v) {
  const Variable& variable = variables_[at(v)];
  std::vector<char> stays(at(variable.size), 1);
  bool all = true;
  // One at a time, so that of choices that dominate each other one stays.
  for (int a = variable.size - 1; a >= 0; --a) {
    for (int b = 0; b < variable.size; ++b) {
      if (b == a || !stays[at(b)] || !never_worse(v, b, a)) continue;
      stays[at(a)] = 0;
      all = false;
      note(kDrop, v, variable.alive[at(a)], variable.alive[at(b)]);
      break;
    }
  }
  return all || keep(v, stays);
}

void Reduction::drop_flat_pairs(int v) {
  const std::vector<int> pairs = variables_[at(v)].pairs;
  for (const int p : pairs) {
    const Pair& pair = pairs_[at(p)];
    const int ends[] = {v, other(pair, v)};
    for (const int end : ends) {
      bool flat = true;
      for (int k = 0; k < pair.planes && flat; ++k) {
        const View values = view(pair, variables_, end, k);
        for (int i = 0; i < variables_[at(end)].size && flat; ++i)
          for (int j = 1; j < values.count && flat; ++j) flat = values(i, j) == values(i, 0);
      }
      if (!flat) continue;
      Variable& variable = variables_[at(end)];
      for (int k = 0; k < pair.planes; ++k) {
        const View values = view(pair, variables_, end, k);
        for (int i = 0; i < variable.size; ++i) variable.unary[at(k * variable.size + i)] += values(i, 0);
      }
      note(kFlat, end, other(pair, end), 0);
      cut(p);
      push(end);
      break;
    }
  }
}

bool Reduction::fold(int v) {
  std::vector<int> stack{v};
  while (!stack.empty()) {
    const int one = stack.back();
    stack.pop_back();
    Variable& variable = variables_[at(one)];
    if (!variable.left) continue;
    note(kFix, one, variable.alive[0], 0);
    const std::vector<int> pairs = variable.pairs;
    for (const int p : pairs) {
      const Pair& pair = pairs_[at(p)];
      const int neighbour = other(pair, one);
      Variable& near = variables_[at(neighbour)];
      std::vector<char> stays(at(near.size), 1);
      bool all = true;
      for (int k = 0; k < pair.planes; ++k) {
        const View values = view(pair, variables_, one, k);
        for (int j = 0; j < near.size; ++j) {
          double& entry = near.unary[at(k * near.size + j)];
          entry += values(0, j);
          if (k > 0 || entry < kInfinity) continue;
          stays[at(j)] = 0;
          all = false;
        }
      }
      cut(p);
      push(neighbour);
      if (all) continue;
      for (int j = 0; j < near.size; ++j) {
        if (!stays[at(j)]) note(kDrop, neighbour, near.alive[at(j)], -1);
      }
      if (!keep(neighbour, stays)) return false;
      if (near.size == 1) stack.push_back(neighbour);
    }
    for (int k = 0; k < planes_; ++k) constant_[at(k)] += variable.unary[at(k)];
    variable.left = false;
    decided_.push_back({one, -1, {variable.alive[0]}});
  }
  return true;
}

// A pair by which each choice of the neighbour allows one choice of v, and which. If v has more than two neighbours, v
// must decide the neighbour in turn: else the pairs that move could make elimination harder.
std::optional<std::pair<int, std::vector<int>>> Reduction::decider(int v) const {
  const Variable& variable = variables_[at(v)];
  const bool few = variable.pairs.size() <= 2;
  std::optional<std::pair<int, std::vector<int>>> best;
  int best_neighbour = 0;
  for (const int p : variable.pairs) {
    const Pair& pair = pairs_[at(p)];
    const int neighbour = other(pair, v);
    if (best && neighbour > best_neighbour) continue;
    const View costs = view(pair, variables_, v, 0);
    if (!few && costs.count != variable.size) continue;
    std::vector<int> chosen(at(costs.count), -1), times(at(variable.size), 0);
    bool one = true;
    for (int j = 0; j < costs.count && one; ++j) {
      for (int i = 0; i < variable.size && one; ++i) {
        if (!(costs(i, j) < kInfinity)) continue;
        one = chosen[at(j)] < 0;
        chosen[at(j)] = i;
        ++times[at(i)];
      }
      one = one && chosen[at(j)] >= 0;
    }
    if (!one || (!few && std::any_of(times.begin(), times.end(), [](int n) { return n != 1; }))) continue;
    best = {p, std::move(chosen)};
    best_neighbour = neighbour;
  }
  return best;
}

void Reduction::absorb(int v, int pair, const std::vector<int>& chosen) {
  Variable& variable = variables_[at(v)];
  const int by = other(pairs_[at(pair)], v);
  Variable& host = variables_[at(by)];
  std::vector<int> whole(at(sizes_[at(by)]), -1);
  for (int j = 0; j < host.size; ++j) whole[at(host.alive[at(j)])] = variable.alive[at(chosen[at(j)])];
  note(kFollow, v, by, static_cast<int>(whole.size()));
  steps_.insert(steps_.end(), whole.begin(), whole.end());
  for (int k = 0; k < planes_; ++k) {
    for (int j = 0; j < host.size; ++j) {
      host.unary[at(k * host.size + j)] += variable.unary[at(k * variable.size + chosen[at(j)])];
    }
  }
  for (int k = 0; k < pairs_[at(pair)].planes; ++k) {
    const View link = view(pairs_[at(pair)], variables_, v, k);
    for (int j = 0; j < host.size; ++j) host.unary[at(k * host.size + j)] += link(chosen[at(j)], j);
  }
  const std::vector<int> pairs = variable.pairs;
  for (const int p : pairs) {
    const int neighbour = other(pairs_[at(p)], v);
    if (neighbour != by) {
      const int planes = pairs_[at(p)].planes, columns = variables_[at(neighbour)].size;
      std::vector<double> moved;
      moved.reserve(at(planes) * at(host.size) * at(columns));
      for (int k = 0; k < planes; ++k) {
        const View values = view(pairs_[at(p)], variables_, v, k);
        for (int j = 0; j < host.size; ++j)
          for (int i = 0; i < columns; ++i) moved.push_back(values(chosen[at(j)], i));
      }
      add_pair(by, neighbour, planes, std::move(moved));
    }
    cut(p);
  }
  variable.left = false;
  decided_.push_back({v, by, std::move(whole)});
}

int Reduction::find_pair(int a, int b) const {
  if (variables_[at(b)].pairs.size() < variables_[at(a)].pairs.size()) std::swap(a, b);
  for (const int p : variables_[at(a)].pairs) {
    if (other(pairs_[at(p)], a) == b) return p;
  }
  return -1;
}

void Reduction::add_pair(int a, int b, int planes, std::vector<double> values) {
  if (a > b) {
    values = transposed(values, planes, variables_[at(a)].size, variables_[at(b)].size);
    std::swap(a, b);
  }
  const int found = find_pair(a, b);
  if (found < 0) {
    const int index = static_cast<int>(pairs_.size());
    variables_[at(a)].pairs.push_back(index);
    variables_[at(b)].pairs.push_back(index);
    pairs_.push_back({true, a, b, planes, std::move(values)});
    return;
  }
  Pair& pair = pairs_[at(found)];
  if (pair.planes < planes) {
    std::swap(pair.values, values);
    pair.planes = planes;
  }
  for (size_t i = 0; i < values.size(); ++i) pair.values[i] += values[i];
}

void Reduction::cut(int pair) {
  pairs_[at(pair)].left = false;
  pairs_[at(pair)].values = {};
  const int ends[] = {pairs_[at(pair)].u, pairs_[at(pair)].v};
  for (const int end : ends) {
    auto& list = variables_[at(end)].pairs;
    list.erase(std::find(list.begin(), list.end(), pair));
  }
}

}  // namespace neo::select
