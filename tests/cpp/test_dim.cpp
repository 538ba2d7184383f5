#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/check.h"
#include "ir/dim.h"
#include "ir/shape.h"

namespace neo {
namespace {

const Dim N = Dim::symbol("N");
const Dim M = Dim::symbol("M");
const Dim P = Dim::symbol("P", {1, 64}, 8);

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

template <class F>
ErrorKind dim_error_kind(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::Internal;
}

TEST(Dim, ArithmeticOnConstantsFoldsTowardsMinusInfinity) {
  EXPECT_EQ(floordiv(Dim(-7), 2).value(), -4);
  EXPECT_EQ(floordiv(Dim(7), -2).value(), -4);
  EXPECT_EQ(ceildiv(Dim(7), 2).value(), 4);
  EXPECT_EQ(ceildiv(Dim(-7), 2).value(), -3);
  EXPECT_EQ(mod(Dim(-7), 3).value(), 2);
  EXPECT_EQ(mod(Dim(7), -3).value(), -2);
  EXPECT_EQ(broadcast(Dim(1), 5).value(), 5);
  EXPECT_EQ(broadcast(Dim(0), 1).value(), 0);
}

TEST(Dim, EqualPolynomialsAreEqual) {
  EXPECT_EQ((N + 1) * (N - 1), N * N - 1);
  EXPECT_EQ(N * M + M, M * (1 + N));
  EXPECT_EQ(N - N, Dim(0));
  EXPECT_EQ(N * 0, Dim(0));
  EXPECT_FALSE(N == M);
  EXPECT_TRUE(N != M);
  EXPECT_EQ(Dim::symbol("N"), N);
  EXPECT_EQ(Dim::symbol("one", {1, 1}), Dim(1));
}

TEST(Dim, DivisionSimplifiesWhatIsExact) {
  EXPECT_EQ(floordiv(4 * N, 2), 2 * N);
  EXPECT_EQ(floordiv(2 * N + 1, 2), N);
  EXPECT_EQ(floordiv(N + 1, 1), N + 1);
  EXPECT_EQ(floordiv(N - 1, 2) + 1, floordiv(N + 1, 2));
  EXPECT_EQ(floordiv(4 * N + 3, 6), floordiv(2 * N + 1, 3));
  EXPECT_EQ(floordiv(floordiv(N + 1, 2) + 1, 2), floordiv(N + 3, 4));
  EXPECT_EQ(ceildiv(N, 2), floordiv(N + 1, 2));
  EXPECT_EQ(floordiv(N * M * 12, 3 * M), 4 * N);
  EXPECT_EQ(floordiv((N + 1) * 3136, (N + 1) * 64), Dim(49));
  EXPECT_EQ(floordiv((N + M) * (N + 2), N + M), N + 2);
  EXPECT_EQ(floordiv(P - 1, 64), Dim(0));
  EXPECT_EQ(floordiv(N * M + 3, M).to_string(), "N + floordiv(3, M)");
}

TEST(Dim, ModSimplifiesWhatIsExact) {
  EXPECT_EQ(mod(4 * N, 2), Dim(0));
  EXPECT_EQ(mod(4 * N + 3, 2), Dim(1));
  EXPECT_EQ(mod(N * M, M), Dim(0));
  EXPECT_EQ(mod(P, 65), P);
  EXPECT_EQ(mod(mod(N, 12), 4), mod(N, 4));
  EXPECT_EQ(mod(6 * N, 4), 2 * mod(N, 2));
  EXPECT_EQ(mod(N + 7, 3), mod(N + 1, 3));
}

TEST(Dim, ExtremaAreDecidedByRanges) {
  EXPECT_EQ(min(N, kMax), N);
  EXPECT_EQ(max(N, 0), N);
  EXPECT_EQ(max(N, kMin), N);
  EXPECT_EQ(min(N + 1, N + 3), N + 1);
  EXPECT_EQ(min(P, 64), P);
  EXPECT_EQ(max(P, 64), Dim(64));
  EXPECT_EQ(min(M, min(N, M)), min(N, M));
  EXPECT_EQ(max(N, M), max(M, N));
  EXPECT_EQ(min(N, 5).to_string(), "min(5, N)");
}

TEST(Dim, BroadcastTakesTheSizeThatIsNotOne) {
  const Dim at_least_two = Dim::symbol("A", {2, 9});
  EXPECT_EQ(broadcast(N, 1), N);
  EXPECT_EQ(broadcast(1, N), N);
  EXPECT_EQ(broadcast(N, N), N);
  EXPECT_EQ(broadcast(at_least_two, N), at_least_two);
  EXPECT_EQ(broadcast(broadcast(N, M), N), broadcast(N, M));
  EXPECT_EQ(broadcast(N, broadcast(N, M)), broadcast(N, M));
  EXPECT_EQ(broadcast(N, M).evaluate({{"N", 1}, {"M", 7}}), 7);
  EXPECT_EQ(broadcast(N, M).evaluate({{"N", 7}, {"M", 1}}), 7);
}

TEST(Dim, OverflowIsAShapeError) {
  EXPECT_EQ(dim_error_kind([] { (void)(Dim(kMax) + 1); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)(Dim(kMin) - 1); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)(Dim(kMax) * 2); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)floordiv(Dim(kMin), -1); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)floordiv(Dim(1), 0); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)mod(N, 0); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)(N * kMax + N); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)(N * N * N).evaluate({{"N", int64_t{1} << 40}}); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)floordiv(N, M).evaluate({{"N", 1}, {"M", 0}}); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)N.evaluate({}); }), ErrorKind::Internal);
  EXPECT_EQ(mod(Dim(kMin), -1).value(), 0);
}

TEST(Dim, ExpressionsThatExplodeAreRefused) {
  EXPECT_EQ(dim_error_kind([] {
              Dim d = N + M + P + 1;
              for (int i = 0; i < 20; ++i) d = d * d;
            }),
            ErrorKind::Unsupported);
  EXPECT_EQ(dim_error_kind([] {
              Dim d = N;
              for (int i = 0; i < 5000; ++i) d = floordiv(M, d + i + 1);
            }),
            ErrorKind::Unsupported);
}

TEST(Dim, RangesSaturate) {
  EXPECT_EQ((N * M * N * M).range().hi, kMax);
  EXPECT_EQ((Dim(5) - N * M * N * M).range().lo, kMin);
  EXPECT_EQ((P * 2 + 1).range().lo, 3);
  EXPECT_EQ((P * 2 + 1).range().hi, 129);
  EXPECT_EQ(floordiv(P, 7).range().hi, 9);
  EXPECT_EQ(mod(N, 8).range().hi, 7);
}

TEST(Dim, ProofsAreThreeValued) {
  EXPECT_EQ(prove_equal(N + 1, N), false);
  EXPECT_EQ(prove_equal(N, M), std::nullopt);
  EXPECT_EQ(prove_equal(P, 65), false);
  EXPECT_EQ(prove_less(N, N + 1), true);
  EXPECT_EQ(prove_less(N + 1, N), false);
  EXPECT_EQ(prove_less(P, 65), true);
  EXPECT_EQ(prove_less(P, 1), false);
  EXPECT_EQ(prove_less(P, 2), std::nullopt);
  EXPECT_EQ(prove_less(N, kMax), true);
}

TEST(Dim, HintsComeFromSymbolsOrTheLowerEnd) {
  EXPECT_EQ((P + 1).hint(), 9);
  EXPECT_EQ(N.hint(), kDefaultHint);
  EXPECT_EQ(Dim::symbol("K", {5, 9}).hint(), 9);
}

TEST(Dim, SubstitutionSimplifiesAgain) {
  const auto n_is = [](const Dim& to) {
    return [to](const Symbol& s) { return s.name == "N" ? std::optional<Dim>(to) : std::nullopt; };
  };
  EXPECT_EQ((floordiv(N + 1, 2) * M).substitute(n_is(7)), 4 * M);
  EXPECT_EQ(max(N, M).substitute(n_is(M)), M);
  EXPECT_EQ(floordiv(N, 2).substitute(n_is(2 * M)), M);
  std::map<std::string, Symbol> symbols;
  floordiv(N + P, M).collect_symbols(symbols);
  EXPECT_EQ(symbols.size(), 3u);
  EXPECT_EQ(symbols.at("P").range.hi, 64);
}

TEST(Dim, TextParsesBack) {
  EXPECT_EQ((2 * N * M - N + 3).to_string(), "2*M*N - N + 3");
  EXPECT_EQ((-1 * N).to_string(), "-N");
  const Dim odd = Dim::symbol("a \"b\"\\n,\n(");
  for (const Dim& d : {Dim(0), Dim(kMin), Dim(kMax), N, -1 * N, 2 * N + 1, floordiv(N + 1, 2), odd * N + odd,
                       min(N, min(M, 4)), mod(N + M, 3) - 2, broadcast(N, M), floordiv(N * N, M + 1), N * kMin}) {
    EXPECT_EQ(Dim::parse(d.to_string()), d) << d.to_string();
  }
  EXPECT_EQ(Dim::parse("(N + 1) * 2"), 2 * N + 2);
  const SymbolLookup lookup = [](std::string_view name) -> std::optional<Symbol> {
    if (name != "P") return std::nullopt;
    return P.as_symbol();
  };
  EXPECT_EQ(Dim::parse("min(P, 64)", lookup), P);
}

TEST(Dim, GarbageDoesNotParse) {
  for (const char* text :
       {"", "N +", "(", "f(N)", "1 2", "99999999999999999999", "min(N", "\"open", "\"open\\", "min(N)", "N)"}) {
    EXPECT_EQ(dim_error_kind([&] { (void)Dim::parse(text); }), ErrorKind::Model) << text;
  }
  EXPECT_EQ(dim_error_kind([] { (void)Dim::parse(std::string(100000, '(')); }), ErrorKind::Model);
  EXPECT_EQ(dim_error_kind([] { (void)Shape::parse("N,3"); }), ErrorKind::Model);
}

TEST(Shape, TextParsesBack) {
  const Shape shape({N, 3, floordiv(N + 1, 2), min(N, M)});
  EXPECT_EQ(shape.to_string(), "[N,3,floordiv(N + 1, 2),min(M, N)]");
  EXPECT_EQ(Shape::parse(shape.to_string()), shape);
  EXPECT_EQ(Shape::parse("[]").rank(), 0);
  EXPECT_FALSE(Shape::parse("[*]").has_rank());
}

TEST(Shape, ElementCountsAreChecked) {
  EXPECT_EQ(element_count(Dims{int64_t{1} << 20, 0, int64_t{1} << 20}), 0);
  // Strides are products of the other sizes.
  EXPECT_EQ(dim_error_kind([] { (void)element_count({int64_t{1} << 40, 0, int64_t{1} << 40}); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)element_count({int64_t{1} << 40, int64_t{1} << 40}); }), ErrorKind::Shape);
  EXPECT_EQ(dim_error_kind([] { (void)element_count({2, -1}); }), ErrorKind::Shape);
  EXPECT_EQ(dense_strides({2, 3, 4}), (Dims{12, 4, 1}));
}

// Every operation on random expressions gives the value that the same operation gives on values, inside its range.
TEST(Dim, AgreesWithIntegersOnRandomExpressions) {
  std::mt19937 random(1);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::vector<Dim> symbols = {Dim::symbol("A", {0, 12}), Dim::symbol("B", {1, 9}), Dim::symbol("C", {-5, 5})};
  const std::vector<std::string> names = {"A", "B", "C"};
  int checked = 0;
  for (int round = 0; round < 3000; ++round) {
    SymbolValues values{{"A", pick(13)}, {"B", 1 + pick(9)}, {"C", pick(11) - 5}};
    std::vector<std::pair<Dim, int64_t>> pool;
    for (size_t i = 0; i < 3; ++i) pool.emplace_back(symbols[i], values[names[i]]);
    for (int step = 0; step < 6; ++step) {
      const auto [a, x] = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      auto [b, y] = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      if (pick(2)) b = y = pick(15) - 6;
      const int operation = pick(9);
      if ((operation >= 3 && operation <= 5) && y == 0) continue;
      const auto floor = [](int64_t p, int64_t q) { return p / q - (p % q != 0 && (p < 0) != (q < 0) ? 1 : 0); };
      Dim d;
      int64_t expected = 0;
      switch (operation) {
        case 0:
          d = a + b, expected = x + y;
          break;
        case 1:
          d = a - b, expected = x - y;
          break;
        case 2:
          d = a * b, expected = x * y;
          break;
        case 3:
          d = floordiv(a, b), expected = floor(x, y);
          break;
        case 4:
          d = ceildiv(a, b), expected = -floor(-x, y);
          break;
        case 5:
          d = mod(a, b), expected = x - floor(x, y) * y;
          break;
        case 6:
          d = min(a, b), expected = std::min(x, y);
          break;
        case 7:
          d = max(a, b), expected = std::max(x, y);
          break;
        default:
          d = broadcast(a, b), expected = x == 1 ? y : x;
          break;
      }
      if (std::abs(expected) > 100000) continue;
      int64_t got = 0;
      try {
        got = d.evaluate(values);
      } catch (const Error&) {
        continue;  // a divisor inside is zero at these values
      }
      ASSERT_EQ(got, expected) << d.to_string();
      ASSERT_LE(d.range().lo, expected) << d.to_string();
      ASSERT_GE(d.range().hi, expected) << d.to_string();
      ASSERT_EQ(Dim::parse(d.to_string(),
                           [&](std::string_view n) { return symbols[static_cast<size_t>(n[0] - 'A')].as_symbol(); }),
                d);
      if (const auto equal = prove_equal(a, b)) {
        ASSERT_EQ(*equal, x == y) << a.to_string() << " " << b.to_string();
      }
      if (const auto less = prove_less(a, b)) {
        ASSERT_EQ(*less, x < y) << a.to_string() << " " << b.to_string();
      }
      pool.emplace_back(d, expected);
      ++checked;
    }
  }
  EXPECT_GT(checked, 8000);
}

}  // namespace
}  // namespace neo
