#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"
#include "ir/dtype.h"

namespace neo {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::pair<DType, int>> kCoded = {
    {DType::Float16, 16},   {DType::BFloat16, 16},      {DType::Float8E4M3FN, 8}, {DType::Float8E4M3FNUZ, 8},
    {DType::Float8E5M2, 8}, {DType::Float8E5M2FNUZ, 8}, {DType::Float8E8M0, 8},   {DType::Float4E2M1, 4},
};

double load_code(DType dtype, uint32_t code) {
  const auto bits = static_cast<uint16_t>(code);
  return load_double(dtype, &bits);
}

uint32_t store_code(DType dtype, double x, bool saturate = true) {
  uint16_t bits = 0;
  store_double(dtype, &bits, x, saturate);
  return bits;
}

TEST(DType, NamesAreFoundAgain) {
  for (int i = 1; i <= static_cast<int>(DType::Complex128); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(find_dtype(name(dtype)), dtype) << name(dtype);
    EXPECT_GT(item_bytes(dtype), 0);
  }
  EXPECT_EQ(find_dtype("undefined"), std::nullopt);
  EXPECT_EQ(find_dtype("float"), std::nullopt);
  EXPECT_EQ(name(DType::Float8E4M3FN), "float8_e4m3fn");
}

TEST(DType, EveryCodeComesBack) {
  for (const auto& [dtype, bits] : kCoded) {
    for (uint32_t code = 0; code < 1u << bits; ++code) {
      const double x = load_code(dtype, code);
      if (!std::isnan(x)) {
        ASSERT_EQ(store_code(dtype, x, false), code) << name(dtype) << " " << x;
      }
    }
  }
}

TEST(DType, RoundsToNearestTiesToEven) {
  for (const auto& [dtype, bits] : kCoded) {
    if (dtype == DType::Float8E8M0) continue;
    std::map<double, uint32_t> codes;
    for (uint32_t code = 0; code < 1u << (bits - 1); ++code) {
      const double x = load_code(dtype, code);
      if (std::isfinite(x)) codes[x] = code;
    }
    for (auto it = codes.begin(); std::next(it) != codes.end(); ++it) {
      const auto next = std::next(it);
      const double middle = (it->first + next->first) / 2;
      ASSERT_EQ(store_code(dtype, middle) % 2, 0u) << name(dtype) << " " << middle;
      ASSERT_EQ(store_code(dtype, std::nextafter(middle, kInf)), next->second) << name(dtype) << " " << middle;
      ASSERT_EQ(store_code(dtype, std::nextafter(middle, -kInf)), it->second) << name(dtype) << " " << middle;
    }
  }
}

TEST(DType, EightBitFloatsFollowTheTablesOfCast) {
  struct Case {
    DType dtype;
    double largest;
    double smallest;
    uint32_t nan, inf_without_saturation;
  };
  for (const Case& c :
       {Case{DType::Float8E4M3FN, 448, 0x1p-9, 0x7F, 0x7F}, Case{DType::Float8E4M3FNUZ, 240, 0x1p-10, 0x80, 0x80},
        Case{DType::Float8E5M2, 57344, 0x1p-16, 0x7E, 0x7C}, Case{DType::Float8E5M2FNUZ, 57344, 0x1p-17, 0x80, 0x80}}) {
    SCOPED_TRACE(name(c.dtype));
    const auto saturated = [&](double x) { return load_code(c.dtype, store_code(c.dtype, x)); };
    EXPECT_EQ(saturated(kInf), c.largest);
    EXPECT_EQ(saturated(-kInf), -c.largest);
    EXPECT_EQ(saturated(1e30), c.largest);
    EXPECT_EQ(saturated(c.smallest), c.smallest);
    EXPECT_EQ(saturated(c.smallest / 2), 0);
    EXPECT_EQ(store_code(c.dtype, kNan), c.nan);
    EXPECT_EQ(store_code(c.dtype, kInf, false), c.inf_without_saturation);
    EXPECT_EQ(store_code(c.dtype, 1e30, false), c.inf_without_saturation);
    const bool fnuz = c.nan == 0x80;
    EXPECT_EQ(store_code(c.dtype, -0.0), fnuz ? 0u : 0x80u);
    EXPECT_EQ(store_code(c.dtype, -c.smallest / 4), fnuz ? 0u : 0x80u);
  }
}

TEST(DType, PowersOfTwoRoundUp) {
  EXPECT_EQ(store_code(DType::Float8E8M0, 1.0), 127u);
  EXPECT_EQ(store_code(DType::Float8E8M0, 1.001), 128u);
  EXPECT_EQ(store_code(DType::Float8E8M0, kInf), 0xFEu);
  EXPECT_EQ(store_code(DType::Float8E8M0, 0.0), 0u);
  EXPECT_EQ(store_code(DType::Float8E8M0, 0.0, false), 0xFFu);
  EXPECT_EQ(store_code(DType::Float8E8M0, kNan), 0xFFu);
  EXPECT_EQ(load_code(DType::Float8E8M0, 0), 0x1p-127);
}

TEST(DType, FourBitFloatsSaturate) {
  EXPECT_EQ(load_code(DType::Float4E2M1, store_code(DType::Float4E2M1, 100)), 6);
  EXPECT_EQ(load_code(DType::Float4E2M1, store_code(DType::Float4E2M1, -kInf)), -6);
  EXPECT_EQ(load_code(DType::Float4E2M1, 1), 0.5);
}

TEST(DType, HalfConversionsAgreeWithTheGeneralOnes) {
  for (uint32_t i = 0; i < 1u << 16; ++i) {
    const float half = from_float16(static_cast<uint16_t>(i));
    ASSERT_EQ(std::isnan(half), (i & 0x7FFF) > 0x7C00);
    if (!std::isnan(half)) {
      ASSERT_EQ(store_code(DType::Float16, half), i);
    }
  }
  EXPECT_EQ(store_code(DType::Float16, 65519.0), 0x7BFF);
  EXPECT_EQ(store_code(DType::Float16, 65520.0), 0x7C00);
  EXPECT_TRUE(std::isnan(from_bfloat16(0x7FC0)));
}

TEST(DType, IntegersWrapAndClip) {
  const auto stored = [](DType dtype, int64_t x) {
    char bytes[8] = {};
    store_int64(dtype, bytes, x);
    return load_int64(dtype, bytes);
  };
  EXPECT_EQ(stored(DType::Int8, 200), -56);
  EXPECT_EQ(stored(DType::Int4, 9), -7);
  EXPECT_EQ(stored(DType::UInt4, -1), 15);
  EXPECT_EQ(stored(DType::Int2, 2), -2);
  EXPECT_EQ(stored(DType::UInt2, 5), 1);
  EXPECT_EQ(stored(DType::UInt64, -1), -1);
  EXPECT_EQ(integer_min(DType::Int4), -8);
  EXPECT_EQ(integer_max(DType::UInt2), 3);
  EXPECT_EQ(integer_max(DType::UInt64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(integer_min(DType::Int64), std::numeric_limits<int64_t>::min());
  char bytes[8] = {};
  store_double(DType::UInt64, bytes, 0x1p63 + 4096);
  EXPECT_EQ(load_double(DType::UInt64, bytes), 0x1p63 + 4096);
  store_double(DType::Int32, bytes, kNan);
  EXPECT_EQ(load_int64(DType::Int32, bytes), 0);
  store_double(DType::Int64, bytes, 1e300);
  EXPECT_EQ(load_int64(DType::Int64, bytes), std::numeric_limits<int64_t>::max());
  EXPECT_THROW(load_int64(DType::String, bytes), Error);
}

}  // namespace
}  // namespace neo
