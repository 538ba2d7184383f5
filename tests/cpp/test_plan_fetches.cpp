#include <gtest/gtest.h>

#include <limits>

#include "exec/plan.h"

namespace neo {
namespace {

class FakeStep final : public KernelStep {
 public:
  explicit FakeStep(bool fetches) : fetches_(fetches) {}
  Prepared prepare(std::span<const Arg>) const override { return {}; }
  bool prefetches_later() const override { return fetches_; }
  void run(const std::byte*, std::byte* const*, std::byte*, Team&) const override {}

 private:
  bool fetches_;
};

Item make_item(bool fetches, double us, int64_t floats = 0, int64_t rows = 1) {
  auto spec = std::make_shared<StepSpec>();
  if (floats > 0) spec->packed = {Tensor(DType::Float32, {16}), Tensor(DType::Float32, {floats})};
  Item item;
  item.what = StepItem{std::make_shared<FakeStep>(fetches), spec, {}, {}};
  item.estimate_us = us;
  item.flops = 2 * floats * rows;
  return item;
}

std::span<const float> weights_of(const Item& item) {
  const Tensor& blob = std::get<StepItem>(item.what).spec->packed.back();
  return {blob.as<float>(), static_cast<size_t>(blob.size())};
}

std::vector<Item> plan(std::vector<Item> items) {
  Block block;
  block.regions.emplace_back().items = std::move(items);
  plan_prefetch(block, 32);
  return std::move(block.regions.front().items);
}

TEST(PlanFetches, StepsBeforeADenseLayerFetchItsWeightsOnce) {
  constexpr int64_t kWeights = 1000000;
  const auto items = plan({make_item(true, 1000), make_item(true, 50), make_item(false, 500), make_item(true, 30),
                           make_item(false, 100, kWeights)});
  const auto weights = weights_of(items[4]);
  // As many as memory gives beside each, from the last step on, and none twice.
  EXPECT_EQ(items[3].later.data(), weights.data());
  EXPECT_TRUE(items[2].later.empty());
  EXPECT_EQ(items[1].later.data(), items[3].later.data() + items[3].later.size());
  EXPECT_EQ(items[0].later.data(), items[1].later.data() + items[1].later.size());
  EXPECT_EQ(items[0].later.data() + items[0].later.size(), weights.data() + weights.size());
  EXPECT_NEAR(static_cast<double>(items[1].later.size()) / static_cast<double>(items[3].later.size()), 50.0 / 30, 1e-3);
}

TEST(PlanFetches, OfSeveralLayersTheNextComesFirst) {
  const auto items =
      plan({make_item(true, 1e6), make_item(true, 1e6), make_item(false, 1, 300000), make_item(false, 1, 200000)});
  EXPECT_EQ(items[1].later.data(), weights_of(items[2]).data());
  EXPECT_EQ(items[1].later.size(), 300000U);
  EXPECT_EQ(items[0].later.data(), weights_of(items[3]).data());
  EXPECT_EQ(items[0].later.size(), 200000U);
}

TEST(PlanFetches, WhatIsReadOftenOrInPartsOrIsSmallOrTooLargeForTheCacheIsNot) {
  EXPECT_TRUE(plan({make_item(true, 100), make_item(false, 100, 1000000, 49)}).front().later.empty());
  EXPECT_TRUE(plan({make_item(true, 100), make_item(false, 100, 1000)}).front().later.empty());
  EXPECT_TRUE(plan({make_item(true, 100), make_item(false, 100, 1000000, 0)}).front().later.empty());
  const auto items = plan({make_item(true, 1e9), make_item(true, 1e9), make_item(false, 100, 20000000)});
  EXPECT_LT(items[1].later.size(), 20000000U);
  EXPECT_TRUE(items[0].later.empty());
}

TEST(PlanFetches, AnEstimateThatIsNoTimeFetchesNothingOrAll) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  for (const double us : {kNan, -1.0, kInfinity}) {
    const auto items = plan({make_item(true, us), make_item(false, 1, 100000)});
    EXPECT_LE(items[0].later.size(), 100000U);
  }
}

}  // namespace
}  // namespace neo
