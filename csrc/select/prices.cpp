#include <algorithm>
#include <cmath>

#include "select/bounds.h"
#include "select/mini_buckets.h"

namespace neo::select {
namespace {

using Vector = std::vector<double>;

// The Lagrangian bound at prices, and what is over each limit at the choice behind it.
struct Evaluated {
  double bound;
  Vector slope;
};

// The bound of these factors and the priced usage, and the choice behind it, which is empty where nothing is allowed.
struct Bounded {
  double bound;
  std::vector<int> choice;
};

Bounded bound_at(const Core& core, const WorkLimits& limits, std::vector<Factor> factors, const Vector& prices,
                 Priced& best) {
  add_priced(factors, core, prices);
  const MiniBuckets tables(core.sizes, std::move(factors), limits.table, limits.tables);
  const double bound = tables.bound() - dot(prices, core.limits);
  if (bound > best.bound) {
    best.prices = prices;
    best.bound = bound;
  }
  return {bound, tables.decode()};
}

class Pricing {
 public:
  Pricing(const Core& core, const WorkLimits& limits, Deadline deadline)
      : core_(core), limits_(limits), deadline_(deadline) {
    best_.prices.assign(core.limits.size(), 0.0);
  }

  Evaluated evaluate(const Vector& prices);
  // The best prices where only price k may change.
  Vector climb(Vector prices, size_t k);
  void follow_subgradients();
  const Priced& best() const { return best_; }
  bool is_late() const { return is_over(deadline_); }

 private:
  const Core& core_;
  const WorkLimits& limits_;
  Deadline deadline_;
  Priced best_;
};

Vector excess(const Core& core, const std::vector<int>& choice) {
  Vector over;
  for (size_t k = 0; k < core.limits.size(); ++k) {
    over.push_back(value_of(core.usage[k], choice, core.sizes) - core.limits[k]);
  }
  return over;
}

double largest(const Vector& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

Evaluated Pricing::evaluate(const Vector& prices) {
  auto [bound, choice] = bound_at(core_, limits_, core_.costs, prices, best_);
  if (choice.empty()) return {bound, Vector(prices.size(), 0.0)};
  Vector slope = excess(core_, choice);
  if (std::find(best_.choices.begin(), best_.choices.end(), choice) == best_.choices.end()) {
    best_.choices.push_back(std::move(choice));
  }
  return {bound, std::move(slope)};
}

Vector Pricing::climb(Vector prices, size_t k) {
  struct Point {
    double price, bound, slope;
  };
  const double start = prices[k];
  const auto on_line = [&](double price) {
    prices[k] = price;
    const Evaluated found = evaluate(prices);
    return Point{price, found.bound, found.slope[k]};
  };
  const auto moved = [&](double price) {
    prices[k] = price;
    return prices;
  };
  Point low = on_line(0.0);
  if (low.slope <= 0) return moved(0.0);
  Point high = on_line(start > 0 ? start : std::max(std::abs(low.bound), 1.0) / low.slope * 1e-3);
  for (int i = 1; high.slope > 0; ++i) {
    low = high;
    if (i == 60) return moved(low.price);
    high = on_line(low.price * 4);
  }
  for (int i = 0; i < 30 && !is_late(); ++i) {
    const double crossing =
        (high.bound - low.bound + low.slope * low.price - high.slope * high.price) / (low.slope - high.slope);
    const double top = low.bound + low.slope * (crossing - low.price);
    if (!(low.price < crossing && crossing < high.price)) break;
    const Point now = on_line(crossing);
    if (now.bound >= top - 1e-9 * std::max(1.0, std::abs(top))) return moved(crossing);
    (now.slope > 0 ? low : high) = now;
  }
  return moved(low.bound > high.bound ? low.price : high.price);
}

void Pricing::follow_subgradients() {
  Vector prices = best_.prices;
  double step = 0.05;
  for (int i = 0; i < 40 && !is_late(); ++i) {
    const double before = best_.bound;
    const Vector slope = evaluate(prices).slope;
    if (largest(slope) == 0) return;
    const double length = step * std::max(std::abs(best_.bound), 1.0) / dot(slope, slope);
    for (size_t k = 0; k < prices.size(); ++k) prices[k] = std::max(0.0, prices[k] + length * slope[k]);
    if (best_.bound > before) continue;
    step *= 0.8;
    for (size_t k = 0; k < prices.size(); ++k) prices[k] = std::max(0.0, 0.5 * (prices[k] + best_.prices[k]));
  }
}

}  // namespace

Deadline deadline_in(double seconds) {
  constexpr double kMaxSeconds = 1e9;
  if (!(seconds < kMaxSeconds)) return Deadline::max();
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<Factor> forbidden_of(const std::vector<Factor>& factors) {
  std::vector<Factor> out;
  for (const Factor& factor : factors) {
    if (std::find(factor.values.begin(), factor.values.end(), kInfinity) == factor.values.end()) continue;
    Factor& forbidden = out.emplace_back(factor);
    for (double& x : forbidden.values) x = x < kInfinity ? 0.0 : kInfinity;
  }
  return out;
}

void add_priced(std::vector<Factor>& factors, const Core& core, const std::vector<double>& prices) {
  for (size_t k = 0; k < prices.size(); ++k) {
    if (!(prices[k] > 0)) continue;
    for (const Factor& used : core.usage[k]) {
      Factor& priced = factors.emplace_back(used);
      for (double& x : priced.values) x *= prices[k];
    }
  }
}

Priced price_resources(const Core& core, const WorkLimits& limits, Deadline deadline) {
  Pricing pricing(core, limits, deadline);
  const size_t count = core.limits.size();
  const int sweeps = count == 1 ? 1 : 3;
  Vector prices(count, 0.0);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const double before = pricing.best().bound;
    for (size_t k = 0; k < count; ++k) prices = pricing.climb(std::move(prices), k);
    const double after = pricing.best().bound;
    if (sweep > 0 && !(after - before > 1e-6 * std::abs(after))) break;
  }
  if (count > 1) pricing.follow_subgradients();
  return pricing.best();
}

Priced price_violations(const Core& core, const WorkLimits& limits, Deadline deadline) {
  constexpr int kRounds = 100;
  const size_t count = core.limits.size();
  Vector scale, grown(count, 0.0);
  for (size_t k = 0; k < count; ++k) {
    double range = 1e-9;
    for (const Factor& used : core.usage[k]) {
      const auto [low, high] = std::minmax_element(used.values.begin(), used.values.end());
      range += *high - *low;
    }
    scale.push_back(std::max(std::abs(core.limits[k]), range));
  }
  const std::vector<Factor> forbidden = forbidden_of(core.costs);
  Priced best{Vector(count, 0.0), -kInfinity, {}};
  for (int round = 0; round < kRounds; ++round) {
    const double top = *std::max_element(grown.begin(), grown.end());
    Vector prices;
    double sum = 0;
    for (const double x : grown) sum += prices.emplace_back(std::exp(x - top));
    for (size_t k = 0; k < count; ++k) prices[k] /= sum * scale[k];
    std::vector<int> choice = bound_at(core, limits, forbidden, prices, best).choice;
    if (best.bound > 1e-9 || choice.empty() || is_over(deadline)) break;
    Vector violation = excess(core, choice);
    best.choices.push_back(std::move(choice));
    for (size_t k = 0; k < count; ++k) violation[k] /= scale[k];
    if (*std::max_element(violation.begin(), violation.end()) <= 0) break;
    const double most = largest(violation), slower = std::sqrt(1 + round / 4.0);
    for (size_t k = 0; k < count; ++k) grown[k] += violation[k] / most / slower;
  }
  return best;
}

}  // namespace neo::select
