#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "host_tiers.h"
#include "simd_probe.h"

namespace neo::testing {
namespace {

constexpr float kFloatInf = std::numeric_limits<float>::infinity();
constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();

// Distance of y from the exact value, in units of the last place of the float nearest to it.
double ulps(float y, double exact) {
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0.0 : 1e30;
  const float nearest = static_cast<float>(exact);
  if (y == nearest) return 0.0;
  if (std::isinf(nearest) || std::isinf(y)) {
    // An exact value within an ulp of the largest float may round either way.
    return std::fabs(exact) > 3.4028230e38 && std::fabs(exact) < 3.4028240e38 ? 1.0 : 1e30;
  }
  const int exponent = std::max(std::ilogb(exact == 0.0 ? 0x1p-126 : exact), -126);
  return std::fabs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

// Floats of every exponent and sign, and the special ones; a multiple of every tier's lanes.
std::vector<float> samples(uint32_t stride) {
  std::vector<float> x = {0.0f,       -0.0f,       1.0f,    -1.0f,          kFloatInf,     -kFloatInf,
                          kFloatNan,  0.5f,        -0.5f,   1.5f,           2.5f,          -2.5f,
                          8388607.5f, -8388607.5f, 88.72f,  88.73f,         -87.4f,        -103.9f,
                          -104.1f,    1e-45f,      -1e-45f, 1.1754944e-38f, 3.4028235e38f, -3.4028235e38f,
                          1.5707964f, 3.1415927f,  9999.5f, 10000.5f};
  for (uint64_t bits = 0; bits < (1ull << 32); bits += stride) x.push_back(std::bit_cast<float>(uint32_t(bits)));
  while (x.size() % 16 != 0) x.push_back(0.0f);
  return x;
}

double gelu(double x) {
  return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
}

struct Expected {
  double (*f)(double);
  double bound;
  double lo = -INFINITY, hi = INFINITY;
  bool relative_to_x = false;  // the error in ulps of max(|x|, |y|)
};

// Below, results that would be subnormal are zeros.
constexpr float kMinNormal = -87.3365f;

const std::map<std::string, Expected>& unary_expected() {
  static const std::map<std::string, Expected> table = {
      {"neg", {[](double x) { return -x; }, 0}},
      {"abs", {[](double x) { return std::fabs(x); }, 0}},
      {"sqrt", {[](double x) { return std::sqrt(x); }, 0.5}},
      {"floor", {[](double x) { return std::floor(x); }, 0}},
      {"ceil", {[](double x) { return std::ceil(x); }, 0}},
      {"trunc", {[](double x) { return std::trunc(x); }, 0}},
      {"round_even", {[](double x) { return std::nearbyint(x); }, 0}},
      {"exp", {[](double x) { return std::exp(x); }, 2}},
      {"expm1", {[](double x) { return std::expm1(x); }, 2}},
      {"log", {[](double x) { return std::log(x); }, 2}},
      {"log1p", {[](double x) { return std::log1p(x); }, 2}},
      {"sigmoid", {[](double x) { return 1.0 / (1.0 + std::exp(-x)); }, 3, kMinNormal}},
      {"tanh", {[](double x) { return std::tanh(x); }, 3}},
      {"erf", {[](double x) { return std::erf(x); }, 3}},
      {"softplus",
       {[](double x) { return std::isnan(x) ? x : std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, 3,
        kMinNormal}},
      {"silu", {[](double x) { return x / (1.0 + std::exp(-x)); }, 3, -INFINITY, INFINITY, true}},
      {"gelu", {gelu, 3, -1e30, INFINITY, true}},
      {"gelu_tanh",
       {[](double x) { return x / (1.0 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, 3, -1e12,
        1e12, true}},
      {"sin", {[](double x) { return std::sin(x); }, 2}},
      {"cos", {[](double x) { return std::cos(x); }, 2}},
      {"tan", {[](double x) { return std::tan(x); }, 4}},
      {"asin", {[](double x) { return std::asin(x); }, 3}},
      {"acos", {[](double x) { return std::acos(x); }, 3}},
      {"atan", {[](double x) { return std::atan(x); }, 3}},
      {"sinh", {[](double x) { return std::sinh(x); }, 3}},
      {"cosh", {[](double x) { return std::cosh(x); }, 3}},
      {"asinh", {[](double x) { return std::asinh(x); }, 3}},
      {"acosh", {[](double x) { return std::acosh(x); }, 3}},
      {"atanh", {[](double x) { return std::atanh(x); }, 3}},
  };
  return table;
}

class Simd : public ::testing::TestWithParam<HostTier<SimdProbes>> {
 protected:
  const SimdProbes& probes() const { return *GetParam().table; }
  int lanes() const { return probes().lanes; }
};

TEST_P(Simd, UnaryFunctionsStayWithinTheirBounds) {
  const std::vector<float> x = samples(4099);
  std::vector<float> y(x.size());
  for (const UnaryProbe* probe = probes().unary; probe->name; ++probe) {
    const auto found = unary_expected().find(probe->name);
    ASSERT_NE(found, unary_expected().end()) << probe->name;
    const Expected& expected = found->second;
    probe->run(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0.0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] < expected.lo || x[i] > expected.hi) continue;
      const double exact = expected.f(x[i]);
      double error = ulps(y[i], exact);
      if (expected.relative_to_x && std::isfinite(x[i]) && error < 1e29) {
        const double scale =
            std::ldexp(1.0, std::max(std::ilogb(std::max<double>(std::fabs(x[i]), 0x1p-126)), -126) - 23);
        error = std::min(error, std::fabs(y[i] - exact) / scale);
      }
      if (error > worst) worst = error, at = i;
    }
    EXPECT_LE(worst, expected.bound) << probe->name << "(" << std::hexfloat << x[at] << ") = " << y[at] << ", exact "
                                     << expected.f(x[at]);
  }
}

TEST_P(Simd, SignOfZeroSurvives) {
  const std::vector<float> x(lanes(), -0.0f);
  std::vector<float> y(lanes());
  for (const UnaryProbe* probe = probes().unary; probe->name; ++probe) {
    const std::string name = probe->name;
    if (!(name == "floor" || name == "ceil" || name == "trunc" || name == "round_even" || name == "tanh" ||
          name == "erf" || name == "sin" || name == "expm1" || name == "log1p")) {
      continue;
    }
    probe->run(x.data(), y.data(), lanes());
    EXPECT_TRUE(y[0] == 0.0f && std::signbit(y[0])) << name;
  }
}

TEST_P(Simd, BinaryFunctionsAreExact) {
  std::vector<float> base = samples(40000003);
  std::vector<float> a, b;
  for (float x : base) {
    for (float y : base) a.push_back(x), b.push_back(y);
  }
  std::vector<float> y(a.size());
  const auto truth = [](bool holds) { return holds ? 1.0f : 0.0f; };
  for (const BinaryProbe* probe = probes().binary; probe->name; ++probe) {
    const std::string name = probe->name;
    probe->run(a.data(), b.data(), y.data(), static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      float expected = 0.0f;
      const bool nan = std::isnan(a[i]) || std::isnan(b[i]);
      if ((name == "min" || name == "max") && nan) continue;
      if (name == "add")
        expected = a[i] + b[i];
      else if (name == "sub")
        expected = a[i] - b[i];
      else if (name == "mul")
        expected = a[i] * b[i];
      else if (name == "div")
        expected = a[i] / b[i];
      else if (name == "min" || name == "min_nan")
        expected = nan ? kFloatNan : std::min(a[i], b[i]);
      else if (name == "max" || name == "max_nan")
        expected = nan ? kFloatNan : std::max(a[i], b[i]);
      else if (name == "pow")
        expected = std::pow(a[i], b[i]);
      else if (name == "copy_sign")
        expected = std::copysign(a[i], b[i]);
      else if (name == "lt")
        expected = truth(a[i] < b[i]);
      else if (name == "le")
        expected = truth(a[i] <= b[i]);
      else if (name == "gt")
        expected = truth(a[i] > b[i]);
      else if (name == "ge")
        expected = truth(a[i] >= b[i]);
      else if (name == "eq")
        expected = truth(a[i] == b[i]);
      else if (name == "ne")
        expected = truth(a[i] != b[i]);
      else
        FAIL() << "no expectation for " << name;
      // The C library's power is not always the nearest float either.
      const bool is_near = name == "pow" && std::nextafter(y[i], expected) == expected;
      ASSERT_TRUE(y[i] == expected || is_near || (std::isnan(y[i]) && std::isnan(expected)))
          << name << "(" << a[i] << ", " << b[i] << ") = " << y[i] << ", expected " << expected;
    }
  }
}

TEST_P(Simd, MultiplyAddRoundsAsTheTierStates) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(-2.0f, 2.0f);
  std::vector<float> a(64), b(64), c(64), y(64), negated(64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = draw(random), b[i] = draw(random), c[i] = draw(random);
  probes().multiply_add(a.data(), b.data(), c.data(), y.data(), negated.data(), 64);
  for (size_t i = 0; i < a.size(); ++i) {
    if (probes().fused_multiply_add) {
      EXPECT_EQ(y[i], std::fma(a[i], b[i], c[i]));
      EXPECT_EQ(negated[i], std::fma(-a[i], b[i], c[i]));
    } else {
      EXPECT_NEAR(y[i], double(a[i]) * b[i] + c[i], 1e-6);
      EXPECT_NEAR(negated[i], double(c[i]) - double(a[i]) * b[i], 1e-6);
    }
  }
}

TEST_P(Simd, PartialLoadsAndStoresTouchOnlyTheirLanes) {
  for (int n = 0; n <= lanes(); ++n) {
    std::vector<float> x(n), y(lanes() + 1, -7.0f);
    std::vector<int32_t> xi(n), yi(lanes() + 1, -7);
    for (int i = 0; i < n; ++i) x[i] = float(i + 1), xi[i] = i + 1;
    probes().copy_part(x.data(), y.data(), n);
    probes().copy_part_i32(xi.data(), yi.data(), n);
    for (int i = 0; i <= lanes(); ++i) {
      EXPECT_EQ(y[i], i < n ? float(i + 1) : -7.0f);
      EXPECT_EQ(yi[i], i < n ? i + 1 : -7);
    }
  }
}

TEST_P(Simd, ReductionsAndTranspose) {
  const int n = lanes();
  std::vector<float> x(n * n), y(n * n);
  for (int i = 0; i < n * n; ++i) x[i] = float((i * 37) % 101 - 50);
  for (int row = 0; row < n; ++row) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += x[row * n + i];
    EXPECT_EQ(probes().reduce_add(&x[row * n]), sum);
    EXPECT_EQ(probes().reduce_max(&x[row * n]), *std::max_element(&x[row * n], &x[row * n] + n));
    EXPECT_EQ(probes().reduce_min(&x[row * n]), *std::min_element(&x[row * n], &x[row * n] + n));
  }
  probes().transpose(x.data(), y.data());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) EXPECT_EQ(y[j * n + i], x[i * n + j]);
  }
  probes().even(x.data(), y.data());
  for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], x[2 * i]);
  for (int shift = 0; shift < n; ++shift) {
    std::vector<int32_t> lanes(n);
    for (int i = 0; i < n; ++i) lanes[i] = i % 3 == 1 ? -1 : (5 * i + shift) % n;
    std::fill(y.begin(), y.end(), -2.5f);
    probes().pick(x.data(), lanes.data(), y.data());
    for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], lanes[i] < 0 ? -2.5f : x[lanes[i]]);
  }
}

float half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const double magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>(h & 0x8000 ? -magnitude : magnitude);
}

TEST_P(Simd, HalvesConvertBothWays) {
  std::vector<uint16_t> all(65536), back(65536);
  std::vector<float> wide(65536);
  for (int i = 0; i < 65536; ++i) all[i] = uint16_t(i);
  probes().f16_to_f32(all.data(), wide.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    const float expected = half_value(uint16_t(i));
    ASSERT_TRUE(wide[i] == expected || (std::isnan(wide[i]) && std::isnan(expected))) << i;
  }
  probes().f32_to_f16(wide.data(), back.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    if (std::isnan(wide[i]))
      ASSERT_TRUE(std::isnan(half_value(back[i]))) << i;
    else
      ASSERT_EQ(back[i], i);
  }
  // Between two neighbours, and just beside the middle.
  for (int i = 0; i + 1 < 0x7c00; ++i) {
    const float lo = half_value(uint16_t(i)), hi = i + 1 == 0x7c00 ? 65536.0f : half_value(uint16_t(i + 1));
    const float middle = lo + (hi - lo) / 2;
    std::vector<float> x(16, middle);
    x[1] = std::nextafter(middle, 0.0f);
    x[2] = std::nextafter(middle, kFloatInf);
    std::vector<uint16_t> y(16);
    probes().f32_to_f16(x.data(), y.data(), 16);
    ASSERT_EQ(y[0], i % 2 ? i + 1 : i);
    ASSERT_EQ(y[1], i);
    ASSERT_EQ(y[2], i + 1);
  }
  const std::vector<float> large = {65519.0f, 65520.0f, 1e30f, kFloatInf, -1e30f, -kFloatInf, 1e-30f, -1e-30f,
                                    0,        0,        0,     0,         0,      0,          0,      0};
  std::vector<uint16_t> y(16);
  probes().f32_to_f16(large.data(), y.data(), 16);
  EXPECT_EQ(std::vector<uint16_t>(y.begin(), y.begin() + 8),
            (std::vector<uint16_t>{0x7bff, 0x7c00, 0x7c00, 0x7c00, 0xfc00, 0xfc00, 0, 0x8000}));
}

TEST_P(Simd, BrainFloatsConvertBothWays) {
  const std::vector<float> x = samples(65521);
  std::vector<uint16_t> y(x.size());
  std::vector<float> wide(x.size());
  probes().f32_to_bf16(x.data(), y.data(), int64_t(x.size()));
  probes().bf16_to_f32(y.data(), wide.data(), int64_t(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::isnan(x[i]), std::isnan(wide[i]));
    if (std::isnan(x[i])) continue;
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t half = bits & 0xffff;
    const uint32_t up = half > 0x8000 || (half == 0x8000 && (bits & 0x10000));
    ASSERT_EQ(y[i], uint16_t((bits >> 16) + up)) << x[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), uint32_t(y[i]) << 16);
  }
}

TEST_P(Simd, IntegersAndConversions) {
  std::mt19937 random(11);
  const int n = lanes();
  std::vector<int32_t> a(n), b(n), out(n * kIntegerProbes);
  for (int i = 0; i < n; ++i) a[i] = int32_t(random()), b[i] = i % 3 ? int32_t(random()) : a[i];
  a[0] = INT32_MIN, b[0] = -1;
  probes().integer(a.data(), b.data(), out.data());
  for (int i = 0; i < n; ++i) {
    const uint32_t x = uint32_t(a[i]), y = uint32_t(b[i]);
    const int32_t expected[kIntegerProbes] = {int32_t(x + y),       int32_t(x - y),
                                              int32_t(x * y),       std::min(a[i], b[i]),
                                              std::max(a[i], b[i]), a[i] & b[i],
                                              a[i] | b[i],          a[i] ^ b[i],
                                              int32_t(x << 3),      a[i] >> 3,
                                              int32_t(x >> 3),      a[i] == b[i],
                                              a[i] > b[i],          i};
    for (int p = 0; p < kIntegerProbes; ++p) EXPECT_EQ(out[p * n + i], expected[p]) << "probe " << p;
  }
  std::vector<float> x(16), table(100), gathered(n);
  std::vector<int32_t> rounded(16), truncated(16), index(n);
  for (int i = 0; i < 16; ++i) x[i] = float(i - 8) * 0.5f + (i % 2 ? 1e6f : 0.0f);
  probes().round_to_i32(x.data(), rounded.data(), 16);
  probes().trunc_to_i32(x.data(), truncated.data(), 16);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(rounded[i], int32_t(std::nearbyint(x[i])));
    EXPECT_EQ(truncated[i], int32_t(x[i]));
  }
  const std::vector<int32_t> wide = {-300, -129, -128,  -1,     0,         1,         127, 128,
                                     255,  256,  70000, -70000, INT32_MAX, INT32_MIN, 5,   -5};
  std::vector<uint8_t> u8(16);
  std::vector<int8_t> i8(16);
  std::vector<int32_t> back(16);
  probes().saturate_u8(wide.data(), u8.data(), 16);
  probes().saturate_i8(wide.data(), i8.data(), 16);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(u8[i], std::clamp(wide[i], 0, 255));
    EXPECT_EQ(i8[i], std::clamp(wide[i], -128, 127));
  }
  probes().widen_u8(u8.data(), back.data(), 16);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(back[i], u8[i]);
  probes().widen_i8(i8.data(), back.data(), 16);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(back[i], i8[i]);
  for (int i = 0; i < 100; ++i) table[i] = float(i * i);
  for (int i = 0; i < n; ++i) index[i] = (i * 29) % 100;
  probes().gather(table.data(), index.data(), gathered.data());
  for (int i = 0; i < n; ++i) EXPECT_EQ(gathered[i], table[index[i]]);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Simd, ::testing::ValuesIn(NEO_HOST_TIERS(simd_probes)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace neo::testing
