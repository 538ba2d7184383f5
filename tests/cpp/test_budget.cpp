#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/budget.h"
#include "base/check.h"
#include "ir/tensor.h"
#include "runtime/limited_team.h"

namespace neo {
namespace {

ErrorKind budget_error_kind(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::Internal;
}

TEST(Budget, counts_tensors_while_they_live) {
  const auto budget = std::make_shared<Budget>(Quota{.bytes = 10'000});
  Tensor outlives;
  {
    const BudgetScope scope(budget);
    for (int i = 0; i < 100; ++i) Tensor(DType::UInt8, {5000});
    EXPECT_EQ(budget->held(), 0);
    outlives = Tensor(DType::UInt8, {5000});
    EXPECT_GE(budget->held(), 5000);
    EXPECT_EQ(budget_error_kind([] { Tensor(DType::UInt8, {5000}); }), ErrorKind::Memory);
  }
  EXPECT_EQ(Budget::current(), nullptr);
  outlives = {};
  EXPECT_EQ(budget->held(), 0);
}

TEST(Budget, sizes_that_overflow_are_beyond_any_limit) {
  Budget budget;
  budget.start(INT64_MAX - 5, nullptr, nullptr);
  EXPECT_EQ(budget_error_kind([&] { budget.take(10); }), ErrorKind::Memory);
  EXPECT_EQ(budget_error_kind([] { take_memory(INT64_MAX); }), ErrorKind::Memory);
}

TEST(Budget, ends_when_cancelled_or_late) {
  std::atomic<bool> cancelled{false};
  Budget budget;
  budget.start(0, &cancelled, nullptr);
  budget.checkpoint();
  EXPECT_FALSE(budget.is_over());
  cancelled = true;
  EXPECT_EQ(budget_error_kind([&] { budget.checkpoint(); }), ErrorKind::Cancelled);
  EXPECT_TRUE(budget.is_over());
  Budget late(Quota{.seconds = 0});
  EXPECT_EQ(budget_error_kind([&] { late.checkpoint(); }), ErrorKind::Time);
}

TEST(LimitedTeam, covers_every_range_in_time_and_none_later) {
  SerialTeam serial;
  Budget budget(Quota{.seconds = 1e6});
  LimitedTeam team(serial, budget);
  std::vector<int> done(1000, 0);
  team.parallel_for(1000, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
  });
  EXPECT_EQ(done, std::vector<int>(1000, 1));
  team.parallel_phases(3, 1000, [&](int64_t, int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
  });
  EXPECT_EQ(done, std::vector<int>(1000, 4));
  Budget none(Quota{.seconds = 0});
  LimitedTeam late(serial, none);
  late.parallel_for(10, [&](int64_t, int64_t, int) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace neo
