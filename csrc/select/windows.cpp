#include "select/windows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "select/levels.h"
#include "select/mini_buckets.h"

namespace neo::select {
namespace {

constexpr int kWindow = 32;  // variables
constexpr int kSweeps = 20;  // at most

class Windows {
 public:
  Windows(const std::vector<int>& sizes, const std::vector<Factor>& costs, std::vector<int> choice, double table)
      : sizes_(sizes), costs_(costs), choice_(std::move(choice)), table_(table), around_(sizes.size()) {
    for (size_t f = 0; f < costs.size(); ++f) {
      for (const int v : costs[f].scope) around_[at(v)].push_back(f);
    }
  }

  // Whether some of the variables, in increasing order, have better choices, which are taken.
  bool improve(const std::vector<int>& window);
  const std::vector<int>& choice() const { return choice_; }

 private:
  Factor held(const Factor& factor, const std::vector<int>& window) const;

  const std::vector<int>& sizes_;
  const std::vector<Factor>& costs_;
  std::vector<int> choice_;
  double table_;
  std::vector<std::vector<size_t>> around_;  // the factors of each variable
};

// A factor of the window's variables, numbered by their place in it, with all others held.
Factor Windows::held(const Factor& factor, const std::vector<int>& window) const {
  Factor out;
  std::vector<size_t> strides;
  size_t stride = 1, offset = 0;
  for (size_t axis = factor.scope.size(); axis-- > 0;) {
    const int v = factor.scope[axis];
    const auto place = std::lower_bound(window.begin(), window.end(), v);
    if (place != window.end() && *place == v) {
      out.scope.insert(out.scope.begin(), static_cast<int>(place - window.begin()));
      strides.insert(strides.begin(), stride);
    } else {
      offset += stride * at(choice_[at(v)]);
    }
    stride *= at(sizes_[at(v)]);
  }
  std::vector<int> index(out.scope.size(), 0);
  for (;;) {
    out.values.push_back(factor.values[offset]);
    size_t axis = index.size();
    for (;;) {
      if (axis == 0) return out;
      --axis;
      offset += strides[axis];
      if (++index[axis] < sizes_[at(window[at(out.scope[axis])])]) break;
      offset -= strides[axis] * at(std::exchange(index[axis], 0));
    }
  }
}

bool Windows::improve(const std::vector<int>& window) {
  std::vector<size_t> touched;
  std::vector<int> sizes, before;
  for (const int v : window) {
    touched.insert(touched.end(), around_[at(v)].begin(), around_[at(v)].end());
    sizes.push_back(sizes_[at(v)]);
    before.push_back(choice_[at(v)]);
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  std::vector<Factor> factors;
  for (const size_t f : touched) factors.push_back(held(costs_[f], window));
  const double cost = value_of(factors, before, sizes);
  const MiniBuckets tables(sizes, std::move(factors), table_, table_ * 64);
  if (!tables.is_exact() && window.size() > 1) {
    const auto middle = window.begin() + static_cast<std::ptrdiff_t>(window.size() / 2);
    const bool first = improve({window.begin(), middle}), second = improve({middle, window.end()});
    return first || second;
  }
  if (!(tables.bound() < cost - kSearchTolerance * std::max(1.0, std::abs(cost)))) return false;
  const std::vector<int> better = tables.decode();
  for (size_t i = 0; i < window.size(); ++i) choice_[at(window[i])] = better[i];
  return true;
}

}  // namespace

std::vector<int> improved(const std::vector<int>& sizes, const std::vector<Factor>& costs, std::vector<int> choice,
                          double table, Deadline deadline) {
  Windows windows(sizes, costs, std::move(choice), table);
  const int all = static_cast<int>(sizes.size());
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool is_better = false;
    for (int first = 0; first < all && !is_over(deadline); first += kWindow / 2) {
      std::vector<int> window(at(std::min(kWindow, all - first)));
      std::iota(window.begin(), window.end(), first);
      is_better |= windows.improve(window);
    }
    if (!is_better) break;
  }
  return windows.choice();
}

}  // namespace neo::select
