#include <algorithm>
#include <cmath>
#include <utility>

#include "select/bounds.h"

namespace neo::select {
namespace {

// One axis of a factor.
struct Axis {
  size_t factor;
  int axis;
  size_t inner;  // cells from one choice to the next
  bool first;
  bool last;
};

class Sweeps {
 public:
  Sweeps(const std::vector<int>& sizes, std::vector<Factor> factors);

  void sweep(int v, bool forward);
  double bound() const;
  Messages finish();

 private:
  std::vector<double> minima(const Axis& axis, int size) const;
  void shift(const Axis& axis, const std::vector<double>& by);

  std::vector<std::vector<double>> unary_;
  std::vector<Factor> factors_;  // of two variables and more
  std::vector<std::vector<std::vector<double>>> given_;
  std::vector<std::vector<Axis>> touching_;
};

Sweeps::Sweeps(const std::vector<int>& sizes, std::vector<Factor> factors) : touching_(sizes.size()) {
  for (const int n : sizes) unary_.emplace_back(at(n), 0.0);
  for (Factor& factor : merged(std::move(factors))) {
    if (factor.scope.size() == 1) {
      for (size_t i = 0; i < factor.values.size(); ++i) unary_[at(factor.scope[0])][i] += factor.values[i];
      continue;
    }
    size_t inner = factor.values.size();
    auto& given = given_.emplace_back();
    for (size_t axis = 0; axis < factor.scope.size(); ++axis) {
      const int v = factor.scope[axis];
      inner /= at(sizes[at(v)]);
      given.emplace_back(at(sizes[at(v)]), 0.0);
      touching_[at(v)].push_back(
          {factors_.size(), static_cast<int>(axis), inner, axis == 0, axis + 1 == factor.scope.size()});
    }
    factors_.push_back(std::move(factor));
  }
}

std::vector<double> Sweeps::minima(const Axis& axis, int size) const {
  std::vector<double> low(at(size), kInfinity);
  const double* value = factors_[axis.factor].values.data();
  const double* const end = value + factors_[axis.factor].values.size();
  while (value < end) {
    for (double& least : low) {
      for (size_t i = 0; i < axis.inner; ++i) least = std::min(least, *value++);
    }
  }
  return low;
}

void Sweeps::shift(const Axis& axis, const std::vector<double>& by) {
  std::vector<double>& given = given_[axis.factor][at(axis.axis)];
  for (size_t i = 0; i < by.size(); ++i) given[i] += by[i];
  double* value = factors_[axis.factor].values.data();
  double* const end = value + factors_[axis.factor].values.size();
  while (value < end) {
    for (const double x : by) {
      for (size_t i = 0; i < axis.inner; ++i) *value++ += x;
    }
  }
}

void Sweeps::sweep(int v, bool forward) {
  std::vector<double>& total = unary_[at(v)];
  std::vector<const Axis*> onward;
  size_t behind = 0;
  for (const Axis& axis : touching_[at(v)]) {
    std::vector<double> low = minima(axis, static_cast<int>(total.size()));
    for (size_t i = 0; i < low.size(); ++i) {
      total[i] += low[i];
      low[i] = low[i] < kInfinity ? -low[i] : 0.0;
    }
    shift(axis, low);
    if (!(forward ? axis.last : axis.first)) onward.push_back(&axis);
    if (!(forward ? axis.first : axis.last)) ++behind;
  }
  if (onward.empty()) return;
  std::vector<double> share(total);
  for (size_t i = 0; i < share.size(); ++i) {
    share[i] /= static_cast<double>(std::max(onward.size(), behind));
    if (total[i] < kInfinity) total[i] -= static_cast<double>(onward.size()) * share[i];
  }
  for (const Axis* axis : onward) shift(*axis, share);
}

double Sweeps::bound() const {
  const auto least = [](const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); };
  double sum = 0;
  for (const Factor& factor : factors_) sum += least(factor.values);
  for (const auto& costs : unary_) sum += least(costs);
  return sum;
}

Messages Sweeps::finish() {
  Messages out;
  for (size_t f = 0; f < factors_.size(); ++f) {
    for (size_t axis = 0; axis < given_[f].size(); ++axis) {
      out.shifts.push_back({factors_[f].scope, static_cast<int>(axis), std::move(given_[f][axis])});
    }
  }
  for (size_t v = 0; v < unary_.size(); ++v) out.factors.push_back({{static_cast<int>(v)}, std::move(unary_[v])});
  std::move(factors_.begin(), factors_.end(), std::back_inserter(out.factors));
  return out;
}

}  // namespace

Messages pass_messages(const std::vector<int>& sizes, std::vector<Factor> factors, int rounds, Deadline deadline) {
  constexpr int kRoundsPerLook = 4;
  Sweeps sweeps(sizes, std::move(factors));
  const int count = static_cast<int>(sizes.size());
  double before = sweeps.bound();
  for (int round = 1; round <= rounds; ++round) {
    for (int v = 0; v < count; ++v) sweeps.sweep(v, true);
    for (int v = count; v-- > 0;) sweeps.sweep(v, false);
    if (round % kRoundsPerLook != 0) continue;
    const double now = sweeps.bound();
    if (!(now - before > 1e-5 * std::abs(now)) || is_over(deadline)) break;
    before = now;
  }
  return sweeps.finish();
}

}  // namespace neo::select
