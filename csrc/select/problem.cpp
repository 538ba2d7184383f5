#include "select/problem.h"

#include <algorithm>
#include <cmath>

namespace neo::select {

void Sum::add(double x) {
  const double next = total_ + x;
  lost_ += std::abs(total_) >= std::abs(x) ? (total_ - next) + x : (x - next) + total_;
  total_ = next;
}

double Problem::value(const std::vector<int>& choice, int plane) const {
  Sum sum;
  for (int v = 0; v < count(); ++v) sum.add(unary[at(v)][at(plane * size(v) + choice[at(v)])]);
  for (const Pair& pair : pairs) {
    if (plane >= pair.planes) continue;
    const size_t rows = at(size(pair.u)), columns = at(size(pair.v));
    sum.add(pair.values[(at(plane) * rows + at(choice[at(pair.u)])) * columns + at(choice[at(pair.v)])]);
  }
  return sum.value();
}

bool Problem::is_within_limits(const std::vector<int>& choice) const {
  for (int k = 1; k < planes; ++k) {
    const double limit = limits[at(k - 1)];
    if (!(value(choice, k) <= limit + rounding_of(limit))) return false;
  }
  return true;
}

Problem Problem::without_limits() const {
  Problem costs;
  for (int v = 0; v < count(); ++v) costs.unary.emplace_back(unary[at(v)].begin(), unary[at(v)].begin() + size(v));
  for (const Pair& pair : pairs) {
    const auto cells = static_cast<std::ptrdiff_t>(pair.values.size()) / pair.planes;
    costs.pairs.push_back({pair.u, pair.v, 1, {pair.values.begin(), pair.values.begin() + cells}});
  }
  return costs;
}

Problem Problem::of_usage(int resource) const {
  Problem usage = without_limits();
  const auto replace = [&](std::vector<double>& costs, const std::vector<double>& values, int given) {
    for (size_t i = 0; i < costs.size(); ++i) {
      if (costs[i] < kInfinity) costs[i] = resource + 1 < given ? values[at(resource + 1) * costs.size() + i] : 0.0;
    }
  };
  for (size_t v = 0; v < unary.size(); ++v) replace(usage.unary[v], unary[v], planes);
  for (size_t p = 0; p < pairs.size(); ++p) replace(usage.pairs[p].values, pairs[p].values, pairs[p].planes);
  return usage;
}

double rounding_of(double limit) {
  return kLimitTolerance * std::max(1.0, std::abs(limit));
}

double* WorkLimits::find(std::string_view name) {
  const struct {
    std::string_view name;
    double* member;
  } members[] = {
      {"largest", &largest},
      {"most", &most},
      {"small", &small},
      {"enough", &enough},
      {"distinct", &distinct},
      {"distinct_largest", &distinct_largest},
      {"distinct_most", &distinct_most},
      {"table", &table},
      {"quick_table", &quick_table},
      {"quick_gap", &quick_gap},
      {"tables", &tables},
      {"first_width", &first_width},
      {"last_width", &last_width},
      {"last_width_limited", &last_width_limited},
      {"last_width_timed", &last_width_timed},
  };
  for (const auto& member : members) {
    if (member.name == name) return member.member;
  }
  return nullptr;
}

}  // namespace neo::select
