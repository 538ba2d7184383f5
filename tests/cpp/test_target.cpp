#include <gtest/gtest.h>

#include "base/core.h"
#include "base/isa.h"
#include "routines/cost/step_cost.h"
#include "routines/cost/target.h"

namespace neo {
namespace {

struct KnownCore {
  const char* name;
  CoreBits bits;
  int wide_fmas;
  bool has_mesh;
};

TEST(Core, UnitsAreThoseOfTheMicroarchitecture) {
  const KnownCore known[] = {
      {"Skylake server", {"GenuineIntel", 6, 0x55, true, false}, 2, true},
      {"Tiger Lake", {"GenuineIntel", 6, 0x8c, true, false}, 1, false},
      {"Sapphire Rapids", {"GenuineIntel", 6, 0x8f, true, true}, 2, true},
      {"a hypervisor's model with tiles", {"GenuineIntel", 6, 0xa7, true, true}, 2, true},
      {"tiles hidden with AVX-512", {"GenuineIntel", 6, 0x8f, false, true}, 0, false},
      {"Zen 3", {"AuthenticAMD", 0x19, 0x21, false, false}, 0, false},
      {"Zen 4", {"AuthenticAMD", 0x19, 0x11, true, false}, 1, false},
      {"Zen 5, server", {"AuthenticAMD", 0x1a, 0x02, true, false}, 2, false},
      {"Zen 5, notebook", {"AuthenticAMD", 0x1a, 0x24, true, false}, 1, false},
      {"Zen 5, desktop", {"AuthenticAMD", 0x1a, 0x44, true, false}, 2, false},
      {"another vendor", {"CentaurHauls", 6, 0x55, true, false}, 1, false},
  };
  for (const KnownCore& k : known) {
    const Core core = core_from_cpuid(k.bits);
    EXPECT_EQ(core.wide_fmas, k.wide_fmas) << k.name;
    EXPECT_EQ(core.has_mesh, k.has_mesh) << k.name;
  }
  EXPECT_EQ(host_core().wide_fmas > 0, kIsaAvx512.is_subset_of(detected_isa()));
}

TEST(Target, FiguresAreOfTheHostsCoreWhereItRunsThere) {
  const Target target = Target::parse("cpu", 1);
  const bool wide = kIsaAvx512.is_subset_of(host_isa()) && host_core().wide_fmas == 2;
  EXPECT_EQ(target.gflops_per_thread > 150, wide) << target.gflops_per_thread;
  EXPECT_EQ(private_caches(target).far_gbps < PrivateCaches::kNearGbps,
            host_core().has_mesh && target.isa.is_subset_of(host_isa()));
}

TEST(Target, MoreThreadsGetMoreOfMemoryUntilThereIsNoMore) {
  const auto gbps = [](int threads) { return Target::parse("cpu", threads).memory_gbps; };
  EXPECT_EQ(gbps(1), gbps(2));
  EXPECT_EQ(gbps(3), 1.5 * gbps(2));
  EXPECT_GE(gbps(8), 2 * gbps(2));
  EXPECT_LE(gbps(64), 4 * gbps(2));
  EXPECT_EQ(gbps(64), gbps(128));
}

// Weights that the private cache keeps are read from afar once, others as often as they are used, less a member's part
// of one reading; nothing is added where the caches beyond are near.
TEST(StepCost, FarWeightsWaitAsOftenAsTheyAreRead) {
  Target target = Target::parse("cpu:scalar", 2);
  target.caches = {32 << 10, 1 << 20, 20};
  const double once = far_us(1e5, 1, target);
  EXPECT_NEAR(once, 1e5 / 2 * (1.0 / 20 - 1.0 / 80) / 1e3, 1e-9);
  EXPECT_DOUBLE_EQ(far_us(1e5, 3, target), once);
  EXPECT_DOUBLE_EQ(far_us(1e7, 3, target), 500 * once);
  EXPECT_EQ(far_us(1e7, 0.5, target), 0);
  target.caches.far_gbps = 100;
  EXPECT_EQ(far_us(1e7, 3, target), 0);
}

}  // namespace
}  // namespace neo
