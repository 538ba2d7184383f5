#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/isa.h"

namespace neo {
namespace {

constexpr uint32_t kLeaf1Avx2Cpu = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;  // FMA, OSXSAVE, AVX, F16C
constexpr uint32_t kLeaf7Avx2 = 1u << 5;
constexpr uint32_t kLeaf7Avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
constexpr uint32_t kLeaf7Vnni = 1u << 11;

class IsaTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("NEO_MAX_ISA"); }
  void TearDown() override { unsetenv("NEO_MAX_ISA"); }
};

TEST_F(IsaTest, tiers_form_a_lattice_with_scalar_at_the_bottom) {
  EXPECT_TRUE(kIsaAvx2.is_subset_of(kIsaAvx512));
  EXPECT_TRUE(kIsaAvx512.is_subset_of(kIsaAvx512Vnni));
  EXPECT_FALSE(kIsaAvx512.is_subset_of(kIsaAvx2));
  EXPECT_FALSE(kIsaNeon.is_subset_of(kIsaAvx512Vnni));
  EXPECT_FALSE(kIsaAvx2.is_subset_of(kIsaNeon));
  EXPECT_EQ(kIsaNeon & kIsaAvx2, kIsaScalar);
  for (const IsaTier& tier : all_isa_tiers()) EXPECT_TRUE(kIsaScalar.is_subset_of(tier.isa)) << tier.name;
}

TEST_F(IsaTest, every_tier_is_listed_after_those_it_contains) {
  const Span<const IsaTier> tiers = all_isa_tiers();
  for (int64_t i = 0; i < tiers.size; ++i) {
    for (int64_t j = i + 1; j < tiers.size; ++j) {
      EXPECT_FALSE(tiers[j].isa.is_subset_of(tiers[i].isa)) << tiers[j].name << " after " << tiers[i].name;
    }
  }
}

TEST_F(IsaTest, names_parse_back_on_any_machine) {
  for (const IsaTier& tier : all_isa_tiers()) {
    EXPECT_EQ(parse_isa(tier.name), tier.isa);
    EXPECT_STREQ(isa_name(tier.isa), tier.name);
  }
}

TEST_F(IsaTest, a_set_between_two_tiers_is_named_after_the_lower) {
  EXPECT_STREQ(isa_name(kIsaAvx2 | Isa(Isa::kAvx512f)), "avx2");
  EXPECT_STREQ(isa_name(Isa(Isa::kAvx2)), "scalar");
}

TEST_F(IsaTest, wrong_name_lists_the_valid_ones) {
  for (const char* name : {"avx3", "", "AVX2", "avx2 ", "scalar,avx2"}) {
    try {
      parse_isa(name, "target");
      FAIL() << name;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
      EXPECT_NE(message.find("[target]"), std::string::npos) << message;
      EXPECT_NE(message.find(str("'", name, "'")), std::string::npos) << message;
      EXPECT_NE(message.find("scalar, avx2, avx512, avx512_vnni, neon"), std::string::npos) << message;
    }
  }
}

TEST_F(IsaTest, cpuid_bits_give_the_tier) {
  EXPECT_EQ(isa_from_cpuid({}), kIsaScalar);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, kLeaf7Avx2, 0, 0x07}), kIsaAvx2);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, kLeaf7Avx2 | kLeaf7Avx512, 0, 0xe7}), kIsaAvx512);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, kLeaf7Avx2 | kLeaf7Avx512, kLeaf7Vnni, 0xe7}), kIsaAvx512Vnni);
}

TEST_F(IsaTest, registers_that_the_operating_system_does_not_save_do_not_count) {
  const uint32_t leaf7 = kLeaf7Avx2 | kLeaf7Avx512;
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, leaf7, kLeaf7Vnni, 0x00}), kIsaScalar);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, leaf7, kLeaf7Vnni, 0x03}), kIsaScalar);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, leaf7, kLeaf7Vnni, 0x07}), kIsaAvx2);
  EXPECT_EQ(isa_from_cpuid({kLeaf1Avx2Cpu, leaf7, kLeaf7Vnni, 0x27}), kIsaAvx2);
}

TEST_F(IsaTest, a_missing_member_drops_the_whole_tier) {
  const uint32_t without_vl = kLeaf7Avx2 | (kLeaf7Avx512 & ~(1u << 31));
  EXPECT_STREQ(isa_name(isa_from_cpuid({kLeaf1Avx2Cpu, without_vl, kLeaf7Vnni, 0xe7})), "avx2");
  const uint32_t without_fma = kLeaf1Avx2Cpu & ~(1u << 12);
  EXPECT_STREQ(isa_name(isa_from_cpuid({without_fma, kLeaf7Avx2 | kLeaf7Avx512, 0, 0xe7})), "scalar");
}

TEST_F(IsaTest, host_agrees_with_the_compiler) {
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(kIsaAvx2.is_subset_of(detected_isa()), has_avx2);
  EXPECT_EQ(kIsaAvx512.is_subset_of(detected_isa()), has_avx512);
  EXPECT_FALSE(kIsaNeon.is_subset_of(detected_isa()));
#elif defined(__aarch64__)
  EXPECT_EQ(detected_isa(), kIsaNeon);
#endif
}

TEST_F(IsaTest, knob_caps_the_host) {
  EXPECT_EQ(host_isa(), detected_isa());
  for (const IsaTier& tier : all_isa_tiers()) {
    setenv("NEO_MAX_ISA", tier.name, 1);
    EXPECT_EQ(host_isa(), detected_isa() & tier.isa) << tier.name;
    EXPECT_TRUE(host_isa().is_subset_of(tier.isa)) << tier.name;
    for (const IsaTier& runs : host_isa_tiers()) EXPECT_TRUE(runs.isa.is_subset_of(tier.isa)) << runs.name;
    EXPECT_STREQ(host_isa_tiers().front().name, "scalar");
  }
}

TEST_F(IsaTest, wrong_cap_names_the_variable) {
  setenv("NEO_MAX_ISA", "sse9", 1);
  try {
    host_isa();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[NEO_MAX_ISA]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'sse9'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace neo
