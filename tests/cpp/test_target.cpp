#include <gtest/gtest.h>

#include "base/core.h"
#include "base/isa.h"
#include "routines/step_cost.h"
#include "routines/target.h"

namespace neo {
namespace {

TEST(Core, WideMultiplyAddsAreCountedWhereTheyExist) {
  const Core& core = host_core();
  if (kIsaAvx512.is_subset_of(detected_isa())) {
    EXPECT_TRUE(core.wide_fmas == 1 || core.wide_fmas == 2) << core.wide_fmas;
  } else {
    EXPECT_EQ(core.wide_fmas, 0);
  }
  EXPECT_TRUE(!core.has_mesh || core.wide_fmas == 2);
}

TEST(Target, FiguresAreOfTheHostsCoreWhereItRunsThere) {
  const Target target = Target::parse("cpu", 1);
  const bool wide = kIsaAvx512.is_subset_of(host_isa()) && host_core().wide_fmas == 2;
  EXPECT_EQ(target.gflops_per_thread > 150, wide) << target.gflops_per_thread;
  EXPECT_EQ(private_caches(target).far_gbps < PrivateCaches::kNearGbps,
            host_core().has_mesh && target.isa.is_subset_of(host_isa()));
}

// Weights that the private cache keeps are read from afar once, others as often as they are used; nothing is added
// where the caches beyond are as near as on the machines that estimates come from.
TEST(StepCost, FarWeightsWaitAsOftenAsTheyAreRead) {
  Target target = Target::parse("cpu:scalar", 1);
  target.planned = {32 << 10, 1 << 20, 20};
  const double once = far_us(1e5, 1, target);
  EXPECT_NEAR(once, 1e5 * (1.0 / 20 - 1.0 / 80) / 1e3, 1e-9);
  EXPECT_DOUBLE_EQ(far_us(1e5, 3, target), once);
  EXPECT_DOUBLE_EQ(far_us(1e7, 3, target), 300 * once);
  target.planned.far_gbps = 100;
  EXPECT_EQ(far_us(1e7, 3, target), 0);
}

}  // namespace
}  // namespace neo
