// The parts of the solver against brute force; tests/select has the solver as a whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "select/bounds.h"
#include "select/collapse.h"
#include "select/distinct_rows.h"
#include "select/dive.h"
#include "select/elimination.h"
#include "select/factor.h"
#include "select/mini_buckets.h"
#include "select/search.h"
#include "select/solve.h"
#include "select/windows.h"

namespace neo::select {
namespace {

using Choice = std::vector<int>;

struct Sizes {
  std::vector<int> sizes;
  std::vector<Factor> factors;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  double number() { return std::uniform_real_distribution()(random_); }

  // Factors of one to three variables; a share of their cells is forbidden.
  std::vector<Factor> factors(const std::vector<int>& sizes, int count, double forbidden) {
    std::vector<Factor> out;
    for (int f = 0; f < count; ++f) {
      Choice scope;
      for (int v = 0; v < static_cast<int>(sizes.size()); ++v) scope.push_back(v);
      std::shuffle(scope.begin(), scope.end(), random_);
      scope.resize(at(between(1, 3)));
      std::sort(scope.begin(), scope.end());
      Factor factor{scope, std::vector<double>(cells_of(scope, sizes))};
      for (double& x : factor.values) x = number() < forbidden ? kInfinity : number();
      out.push_back(std::move(factor));
    }
    return out;
  }

  Sizes sum(int variables, int count, double forbidden, int least = 1) {
    Sizes out;
    for (int v = 0; v < variables; ++v) out.sizes.push_back(between(least, 3));
    out.factors = factors(out.sizes, count, forbidden);
    return out;
  }

 private:
  std::mt19937 random_;
};

void for_every_choice(const std::vector<int>& sizes, const std::function<void(const Choice&)>& look) {
  Choice choice(sizes.size(), 0);
  for (;;) {
    look(choice);
    size_t v = sizes.size();
    while (v > 0 && ++choice[v - 1] == sizes[v - 1]) choice[--v] = 0;
    if (v == 0) return;
  }
}

double least_value(const std::vector<int>& sizes, const std::vector<Factor>& factors) {
  double least = kInfinity;
  for_every_choice(sizes, [&](const Choice& c) { least = std::min(least, value_of(factors, c, sizes)); });
  return least;
}

void expect_near(double a, double b) {
  if (b < kInfinity) {
    EXPECT_NEAR(a, b, 1e-9);
  } else {
    EXPECT_EQ(a, b);
  }
}

TEST(MiniBuckets, FindTheMinimumWhereNothingIsSplit) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Sizes sum = Generator(seed).sum(6, 8, 0.1);
    const double least = least_value(sum.sizes, sum.factors);
    const MiniBuckets tables(sum.sizes, sum.factors, 1e9, 1e12);
    EXPECT_TRUE(tables.is_exact());
    expect_near(tables.bound(), least);
    const Choice choice = tables.decode();
    ASSERT_EQ(choice.empty(), least == kInfinity);
    if (!choice.empty()) expect_near(value_of(sum.factors, choice, sum.sizes), least);
  }
}

TEST(MiniBuckets, BoundFromBelowWhereBucketsAreSplit) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Sizes sum = Generator(seed).sum(6, 14, 0.1, 2);
    const MiniBuckets tables(sum.sizes, sum.factors, 4, 1e12);
    EXPECT_FALSE(tables.is_exact());
    EXPECT_LE(tables.bound(), least_value(sum.sizes, sum.factors) + 1e-12);
    for (const auto& splits : tables.splits()) EXPECT_NE(splits.size(), 1u);
  }
}

TEST(MiniBuckets, KeepWithinTheCellsOfAll) {
  // A clique, whose whole tables would have 6^10 cells.
  const std::vector<int> sizes(10, 6);
  std::vector<Factor> factors;
  Generator random(1);
  for (int u = 0; u < 10; ++u) {
    for (int v = u + 1; v < 10; ++v) {
      Factor& factor = factors.emplace_back(Factor{{u, v}, std::vector<double>(36)});
      for (double& x : factor.values) x = random.number();
    }
  }
  double before = kInfinity;
  for (const double most : {1e7, 1e5, 1e4}) {
    const MiniBuckets tables(sizes, factors, 1e6, most);
    double cells = 0;
    for (const auto& parts : tables.parts())
      for (const auto& part : parts) cells += static_cast<double>(part.joined.values.size());
    EXPECT_LE(cells, most);
    EXPECT_LE(tables.bound(), before + 1e-9);
    before = tables.bound();
  }
}

// Where much is forbidden, tables in parts lead to no choice by themselves.
TEST(Dive, FindsAChoiceWhereThereIsOne) {
  int led_nowhere = 0, without = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Sizes sum = Generator(seed).sum(7, 14, 0.4, 2);
    const MiniBuckets tables(sum.sizes, sum.factors, 4, 1e12);
    const Choice choice = dive(sum.sizes, sum.factors, tables);
    ASSERT_EQ(choice.empty(), least_value(sum.sizes, sum.factors) == kInfinity) << seed;
    without += choice.empty();
    if (choice.empty()) continue;
    EXPECT_LT(value_of(sum.factors, choice, sum.sizes), kInfinity);
    led_nowhere += tables.decode().empty();
  }
  EXPECT_GT(led_nowhere, 10);
  EXPECT_GT(without, 10);
}

TEST(Windows, LeaveNoBetterChoiceOfTheirVariables) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Sizes sum = Generator(seed).sum(7, 10, 0.1, 2);
    const double least = least_value(sum.sizes, sum.factors);
    const Choice start = dive(sum.sizes, sum.factors, MiniBuckets(sum.sizes, sum.factors, 4, 1e12));
    if (start.empty()) continue;
    const double before = value_of(sum.factors, start, sum.sizes);
    const auto better = [&](double table) {
      return value_of(sum.factors, improved(sum.sizes, sum.factors, start, table, Deadline::max()), sum.sizes);
    };
    expect_near(better(1e9), least);  // one window holds all variables
    const double alone = better(1);
    EXPECT_LE(alone, before);
    EXPECT_GE(alone, least - 1e-9);
  }
}

// However little a search may do, it finds a choice where there is one.
TEST(Search, FindsAChoiceWithoutTimeOrTables) {
  WorkLimits limits;
  limits.table = limits.quick_table = 4;
  limits.first_width = limits.last_width = 2;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Generator random(seed);
    Sizes sum = random.sum(60, 200, 0.2, 2);
    Choice planted;
    for (const int size : sum.sizes) planted.push_back(random.between(0, size - 1));
    for (Factor& factor : sum.factors) {
      double& x = factor.values[cell_of(factor, planted, sum.sizes)];
      if (x == kInfinity) x = 1;
    }
    const Core core{sum.sizes, sum.factors, {}, {}};
    const Outcome outcome = search_core(
        core, [](const Choice&) { return true; }, limits, Deadline::max(), nullptr);
    ASSERT_TRUE(outcome.found) << seed;
    EXPECT_LT(value_of(sum.factors, outcome.choice, sum.sizes), kInfinity);
  }
}

TEST(Elimination, OfSomeVariablesLeavesAnEquivalentRest) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Sizes sum = Generator(seed).sum(6, 8, 0.0);
    const Elimination elimination(sum.sizes, 3, sum.factors);
    for (const Factor& factor : elimination.rest()) EXPECT_GE(factor.scope[0], 3);
    for_every_choice({sum.sizes.begin() + 3, sum.sizes.end()}, [&](const Choice& rest) {
      Choice choice(3, 0);
      choice.insert(choice.end(), rest.begin(), rest.end());
      ASSERT_TRUE(elimination.decode(choice));
      const double value = value_of(sum.factors, choice, sum.sizes);
      expect_near(elimination.constant() + value_of(elimination.rest(), choice, sum.sizes), value);
      double best = kInfinity;
      for_every_choice({sum.sizes.begin(), sum.sizes.begin() + 3}, [&](const Choice& first) {
        Choice whole = first;
        whole.insert(whole.end(), rest.begin(), rest.end());
        best = std::min(best, value_of(sum.factors, whole, sum.sizes));
      });
      expect_near(value, best);
    });
  }
}

// A factor on two variables with few different rows and columns.
Factor repeated(Factor factor, const std::vector<int>& sizes, int rows, int columns) {
  const int height = sizes[at(factor.scope[0])], width = sizes[at(factor.scope[1])];
  const std::vector<double> given = factor.values;
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j) factor.values[at(i * width + j)] = given[at(i % rows * width + j % columns)];
  return factor;
}

TEST(Elimination, OfTablesWithEqualRowsIsThatOfWholeTables) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Sizes sum = Generator(seed).sum(7, 10, 0.05);
    std::vector<FoldedFactor> folded;
    for (Factor& factor : sum.factors) {
      if (factor.scope.size() == 2) factor = repeated(std::move(factor), sum.sizes, 2, 1 + static_cast<int>(seed % 3));
      const FoldedFactor& one = folded.emplace_back(fold(factor, sum.sizes));
      EXPECT_LE(one.factor.values.size(), factor.values.size());
      const Factor whole = unfolded(one, factor.scope, std::vector<Rows>(factor.scope.size()), sum.sizes);
      EXPECT_EQ(whole.scope, factor.scope);
      EXPECT_EQ(whole.values, factor.values);
    }
    const int count = 3 + static_cast<int>(seed % 5);
    const Elimination plain(sum.sizes, count, sum.factors), shared(sum.sizes, count, folded);
    for_every_choice({sum.sizes.begin() + count, sum.sizes.end()}, [&](const Choice& rest) {
      Choice one(at(count), 0);
      one.insert(one.end(), rest.begin(), rest.end());
      Choice other = one;
      const bool is_allowed = plain.decode(one);
      ASSERT_EQ(shared.decode(other), is_allowed);
      if (is_allowed) expect_near(value_of(sum.factors, one, sum.sizes), value_of(sum.factors, other, sum.sizes));
      expect_near(plain.constant() + value_of(plain.rest(), one, sum.sizes),
                  shared.constant() + value_of(shared.rest(), other, sum.sizes));
    });
  }
}

TEST(Orders, OfDistinctRowsCountTheirCells) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Sizes sum = Generator(seed).sum(9, 8, 0.1);
    std::vector<FoldedFactor> same, folded;
    for (const Factor& factor : sum.factors) {
      same.push_back({factor, std::vector<Rows>(factor.scope.size())});
      folded.push_back(fold(factor.scope.size() == 2 ? repeated(factor, sum.sizes, 1, 2) : factor, sum.sizes));
    }
    for (const Rule rule : {Rule::Weight, Rule::Fill}) {
      const Order all = distinct_order(sum.sizes, same, 1e9, 1e9, rule);
      const Order fewer = distinct_order(sum.sizes, folded, 1e9, 1e9, rule);
      EXPECT_TRUE(all.rest.empty());
      EXPECT_TRUE(fewer.rest.empty());
      if (rule == Rule::Weight) {
        EXPECT_LE(fewer.cells, all.cells);
      }
      EXPECT_FALSE(distinct_order(sum.sizes, same, 1e9, all.cells / 2, rule).rest.empty());
      EXPECT_EQ(distinct_order(sum.sizes, same, 0, 1e9, rule).rest.size(), 9u);
    }
  }
}

TEST(Messages, KeepEveryValueAndRaiseTheBound) {
  const auto minima = [](const std::vector<Factor>& factors) {
    double sum = 0;
    for (const Factor& f : factors) sum += *std::min_element(f.values.begin(), f.values.end());
    return sum;
  };
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Sizes sum = Generator(seed).sum(6, 12, 0.05);
    const Messages moved = pass_messages(sum.sizes, sum.factors, 10, Deadline::max());
    // A choice that no allowed combination has may become forbidden; nothing else changes.
    for_every_choice(sum.sizes, [&](const Choice& choice) {
      expect_near(value_of(moved.factors, choice, sum.sizes), value_of(sum.factors, choice, sum.sizes));
    });
    EXPECT_GE(minima(moved.factors), minima(sum.factors) - 1e-9);
  }
}

TEST(Prices, BoundWhatLimitsAllow) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Generator random(seed);
    Sizes sum = random.sum(6, 8, 0.0);
    Core core{sum.sizes, sum.factors, {}, {}};
    for (unsigned k = 0; k <= seed % 2; ++k) {
      core.usage.push_back(random.factors(sum.sizes, 8, 0.0));
      double low = kInfinity, high = -kInfinity;
      for_every_choice(core.sizes, [&](const Choice& choice) {
        const double used = value_of(core.usage[k], choice, core.sizes);
        low = std::min(low, used);
        high = std::max(high, used);
      });
      core.limits.push_back(low + 0.3 * (high - low));
    }
    double best = kInfinity;
    for_every_choice(core.sizes, [&](const Choice& choice) {
      for (size_t k = 0; k < core.limits.size(); ++k) {
        if (value_of(core.usage[k], choice, core.sizes) > core.limits[k]) return;
      }
      best = std::min(best, value_of(core.costs, choice, core.sizes));
    });
    const Priced priced = price_resources(core, {}, Deadline::max());
    for (const double price : priced.prices) EXPECT_GE(price, 0);
    const Priced wanted = price_violations(core, {}, Deadline::max());
    if (!(best < kInfinity)) continue;
    EXPECT_GE(priced.bound, least_value(core.sizes, core.costs) - 1e-9);
    EXPECT_LE(priced.bound, best + 1e-9);
    EXPECT_LE(wanted.bound, 1e-9);
  }
}

std::vector<std::pair<int, int>> pairs_of(const std::vector<Factor>& factors) {
  std::vector<std::pair<int, int>> pairs;
  for (const Factor& factor : factors) {
    for (size_t i = 0; i < factor.scope.size(); ++i)
      for (size_t j = i + 1; j < factor.scope.size(); ++j) pairs.emplace_back(factor.scope[i], factor.scope[j]);
  }
  return pairs;
}

TEST(Orders, PredictTheTables) {
  for (const Rule rule : {Rule::Weight, Rule::Fill}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      const Sizes sum = Generator(seed).sum(9, 8, 0.1);
      const Order order = greedy_order(sum.sizes, pairs_of(sum.factors), 1 << 20, rule, std::vector<char>(9, 1));
      ASSERT_EQ(order.eliminated.size(), 9u);
      EXPECT_TRUE(order.rest.empty());
      Choice position(9), sizes(9);
      for (int p = 0; p < 9; ++p) {
        position[at(order.eliminated[at(p)])] = p;
        sizes[at(p)] = sum.sizes[at(order.eliminated[at(p)])];
      }
      const MiniBuckets tables(sizes, relabelled(sum.factors, position, sum.sizes), 1e9, 1e12);
      double cells = 0;
      for (const auto& parts : tables.parts()) cells += static_cast<double>(parts[0].joined.values.size());
      // The order counts neighbours, and tables can only be smaller.
      EXPECT_LE(cells, order.cells);
    }
  }
}

TEST(Orders, StopAtTheLimitAndAtWhatIsAllowed) {
  std::vector<std::pair<int, int>> pairs{{5, 6}, {6, 7}};
  for (int u = 0; u < 6; ++u) {
    for (int v = u + 1; v < 6; ++v) pairs.emplace_back(u, v);
  }
  Order order = greedy_order(Choice(8, 4), pairs, 100, Rule::Weight, std::vector<char>(8, 1));
  std::sort(order.eliminated.begin(), order.eliminated.end());
  EXPECT_EQ(order.eliminated, (Choice{6, 7}));
  EXPECT_EQ(order.rest, (Choice{0, 1, 2, 3, 4, 5}));
  order = greedy_order(Choice(3, 4), {{0, 1}, {1, 2}}, 100, Rule::Weight, {1, 0, 0});
  EXPECT_EQ(order.eliminated, (Choice{0}));
  EXPECT_EQ(order.rest, (Choice{1, 2}));
}

TEST(Orders, SweepALadder) {
  // The boundary never needs more than two variables, and the one that goes.
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < 10; ++i) pairs.emplace_back(2 * i, 2 * i + 1);
  for (int i = 0; i < 18; ++i) pairs.emplace_back(i, i + 2);
  const Choice order = linear_order(Choice(20, 3), pairs);
  ASSERT_EQ(order.size(), 20u);
  std::vector<char> done(20, 0);
  for (const int v : order) {
    EXPECT_FALSE(std::exchange(done[at(v)], 1));
    std::vector<char> boundary(20, 0);
    for (const auto& [a, b] : pairs) {
      if (done[at(a)] != done[at(b)]) boundary[at(done[at(a)] ? b : a)] = 1;
    }
    EXPECT_LE(std::count(boundary.begin(), boundary.end(), 1), 3);
  }
}

TEST(Factors, AreRelabelledAndSummed) {
  const Choice sizes{2, 3, 2};
  Factor factor{{0, 1, 2}, {}};
  for (int i = 0; i < 12; ++i) factor.values.push_back(i);
  const Choice position{2, 0, 1};
  const std::vector<Factor> renamed = relabelled({factor}, position, sizes);
  const Choice renamed_sizes{3, 2, 2};
  EXPECT_EQ(renamed[0].scope, (Choice{0, 1, 2}));
  for_every_choice(sizes, [&](const Choice& c) {
    EXPECT_EQ(value_of(renamed, {c[1], c[2], c[0]}, renamed_sizes), value_of({factor}, c, sizes));
  });
  const std::vector<Factor> twice = merged({factor, factor});
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].values[5], 10);
  Factor to{{0, 2}, std::vector<double>(4, 1.0)};
  add(to, Factor{{2}, {10, 20}}, sizes);
  EXPECT_EQ(to.values, (std::vector<double>{11, 21, 11, 21}));
}

// Variables with pairs and limited resources, some of it forbidden.
Problem random_problem(Generator& random, int resources, bool integers, bool dense = false) {
  const int variables = dense ? 6 : 5;
  Problem problem;
  problem.planes = 1 + resources;
  const auto cost = [&] {
    if (random.number() < 0.15) return kInfinity;
    return integers ? random.between(-3, 6) : random.number();
  };
  const auto used = [&] { return integers ? random.between(0, 4) : random.number(); };
  for (int v = 0; v < variables; ++v) {
    const int size = random.between(dense ? 4 : 1, 4);
    auto& unary = problem.unary.emplace_back();
    for (int i = 0; i < size * problem.planes; ++i) unary.push_back(i < size ? cost() : used());
  }
  for (int u = 0; u < variables; ++u) {
    for (int v = u + 1; v < variables; ++v) {
      if (!dense && random.number() < 0.5) continue;
      const int cells = problem.size(u) * problem.size(v), planes = random.number() < 0.3 ? problem.planes : 1;
      Problem::Pair pair{u, v, planes, {}};
      for (int i = 0; i < cells * planes; ++i) pair.values.push_back(i < cells ? cost() : used());
      problem.pairs.push_back(std::move(pair));
    }
  }
  for (int k = 0; k < resources; ++k) problem.limits.push_back(integers ? random.between(0, 14) : 5 * random.number());
  return problem;
}

TEST(Collapse, KeepsAnOptimumInItsCore) {
  for (const double largest : {4e6, 16.0, 0.0}) {
    WorkLimits work;
    work.largest = work.small = largest;
    work.distinct_most = 0;
    for (unsigned seed = 0; seed < 360; ++seed) {
      Generator random(seed);
      const Problem problem = random_problem(random, static_cast<int>(seed % 3), seed % 2 == 0);
      std::vector<int> sizes;
      for (int v = 0; v < problem.count(); ++v) sizes.push_back(problem.size(v));
      double best = kInfinity, found = kInfinity;
      for_every_choice(sizes, [&](const Choice& choice) {
        if (problem.is_within_limits(choice)) best = std::min(best, problem.value(choice, 0));
      });
      const Collapse collapse(problem, work);
      if (collapse.allowed()) {
        for_every_choice(collapse.sizes(), [&](const Choice& choice) {
          const double value = value_of(collapse.factors()[0], choice, collapse.sizes()) + collapse.constant()[0];
          if (!(value < kInfinity)) return;
          const Choice whole = collapse.complete(choice);
          ASSERT_FALSE(whole.empty());
          expect_near(value, problem.value(whole, 0));
          bool within = true;
          for (size_t k = 0; k < collapse.reduction().limits().size(); ++k) {
            const double used = value_of(collapse.factors()[k + 1], choice, collapse.sizes());
            within = within && used + collapse.constant()[k + 1] <= collapse.reduction().limits()[k] + 1e-9;
          }
          EXPECT_EQ(problem.is_within_limits(whole), within);
          if (within) found = std::min(found, value);
        });
      }
      expect_near(found, best);
    }
  }
}

TEST(Collapse, DecidesWhatNeedsNoSearch) {
  // Dominated choices, a tie, a variable that another one decides: nothing is left to eliminate.
  Problem problem;
  problem.unary = {{0, 1}, {0, 1}, {5, 6}};
  problem.pairs = {{0, 1, 1, {0, kInfinity, kInfinity, 0}}, {1, 2, 1, {1, 1, 1, 1}}};
  const Collapse collapse(problem, {});
  EXPECT_TRUE(collapse.sizes().empty());
  EXPECT_EQ(collapse.eliminated(), 0u);
  EXPECT_EQ(collapse.constant()[0], 6.0);
  EXPECT_EQ(collapse.complete({}), (Choice{0, 0, 0}));
}

TEST(Collapse, KeepsADearerChoiceThatUsesLess) {
  Problem problem;
  problem.planes = 2;
  problem.unary = {{0, 1, 5, 2}, {0, 1, 4, 1}};
  problem.limits = {6};
  EXPECT_TRUE(Collapse(problem.without_limits(), {}).sizes().empty());
  EXPECT_EQ(Collapse(problem, {}).sizes(), (Choice{2, 2}));
}

TEST(Collapse, ForgetsALimitThatNothingExceeds) {
  Problem problem;
  problem.planes = 2;
  problem.unary = {{0, 1, 5, 2}};
  problem.limits = {9};
  const Collapse collapse(problem, {});
  EXPECT_TRUE(collapse.sizes().empty());
  EXPECT_TRUE(collapse.reduction().limited().empty());
}

TEST(Collapse, KeepsTablesWithinTheLimit) {
  Problem problem;
  Generator random(3);
  const auto numbers = [&](size_t count) {
    std::vector<double> out(count);
    for (double& x : out) x = random.number();
    return out;
  };
  for (int v = 0; v < 36; ++v) problem.unary.push_back(numbers(5));
  for (int v = 0; v < 36; ++v) {
    if (v % 6 < 5) problem.pairs.push_back({v, v + 1, 1, numbers(25)});
    if (v < 30) problem.pairs.push_back({v, v + 6, 1, numbers(25)});
  }
  WorkLimits work;
  work.largest = work.small = 200;
  work.distinct_most = 0;
  const Collapse collapse(problem, work);
  EXPECT_GT(collapse.eliminated(), 0u);
  EXPECT_FALSE(collapse.sizes().empty());
  for (const Factor& factor : collapse.factors()[0]) EXPECT_LE(factor.values.size(), 200u);
}

TEST(Collapse, TakesTheFirstOfEquals) {
  Problem problem;
  problem.unary.assign(4, {1, 1, 1});
  for (int v = 0; v < 3; ++v) problem.pairs.push_back({v, v + 1, 1, std::vector<double>(9, 0.0)});
  EXPECT_EQ(Collapse(problem, {}).complete({}), (Choice{0, 0, 0, 0}));
}

TEST(Solve, FindsTheBestBySearchesThatSplitAndWiden) {
  SolveOptions options;
  for (const auto& [name, value] :
       {std::pair("enough", 0.0), std::pair("most", 0.0), std::pair("distinct_most", 0.0), std::pair("largest", 12.0),
        std::pair("small", 10.0), std::pair("table", 10.0), std::pair("first_width", 2.0)}) {
    *options.work.find(name) = value;
  }
  int searched = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator random(seed);
    const bool dense = seed % 3 == 0;
    const Problem problem = random_problem(random, dense ? 0 : static_cast<int>(seed % 4), seed % 2 == 0, dense);
    std::vector<int> sizes;
    for (int v = 0; v < problem.count(); ++v) sizes.push_back(problem.size(v));
    double best = kInfinity;
    for_every_choice(sizes, [&](const Choice& choice) {
      if (problem.is_within_limits(choice)) best = std::min(best, problem.value(choice, 0));
    });
    const Solution solution = solve(problem, options);
    ASSERT_EQ(solution.obstacle == Obstacle::None, best < kInfinity) << seed;
    if (solution.obstacle != Obstacle::None) continue;
    EXPECT_TRUE(solution.proven);
    EXPECT_TRUE(problem.is_within_limits(solution.choice));
    expect_near(problem.value(solution.choice, 0), best);
    searched += solution.method.find("branch") != std::string_view::npos;
  }
  EXPECT_GT(searched, 20);
}

}  // namespace
}  // namespace neo::select
