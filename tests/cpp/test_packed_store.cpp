#include <gtest/gtest.h>

#include <cstdint>

#include "routines/packed_store.h"

namespace neo {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

bool shares_memory(const Tensor& a, const Tensor& b) {
  return a.owner() == b.owner();
}

TEST(PackedSlab, blobs_lie_together_aligned_and_apart) {
  PackedSlab slab(4 * kMegabyte);
  const Tensor first = slab.floats(100), second = slab.floats(kMegabyte / 4), third = slab.floats(1);
  EXPECT_EQ(first.size(), 100);
  EXPECT_TRUE(shares_memory(first, second));
  EXPECT_TRUE(shares_memory(first, third));
  for (const Tensor& t : {first, second, third}) EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_GE(second.as<float>(), first.as<float>() + first.size());
  EXPECT_GE(third.as<float>(), second.as<float>() + second.size());
}

TEST(PackedSlab, begins_at_a_large_page) {
  PackedSlab slab(3 * kMegabyte);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.floats(16).data()) % (2 * kMegabyte), 0u);
}

TEST(PackedSlab, what_it_does_not_hold_has_memory_of_its_own) {
  PackedSlab slab(2 * kMegabyte);
  const Tensor whole = slab.floats(kMegabyte / 2);
  const Tensor beyond = slab.floats(8), larger = slab.floats(kMegabyte);
  EXPECT_FALSE(shares_memory(whole, beyond));
  EXPECT_FALSE(shares_memory(whole, larger));
  EXPECT_EQ(larger.size(), kMegabyte);
  EXPECT_EQ(slab.floats(0).size(), 0);
}

TEST(PackedSlab, few_bytes_make_none) {
  PackedSlab slab(1000);
  EXPECT_FALSE(shares_memory(slab.floats(10), slab.floats(10)));
}

TEST(PackedSlab, blobs_outlive_it) {
  Tensor blob;
  {
    PackedSlab slab(2 * kMegabyte);
    PackedStore store(slab);
    blob = store.floats(1000, {}, [](float* to) {
      for (int i = 0; i < 1000; ++i) to[i] = static_cast<float>(i);
    });
  }
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(blob.as<float>()[i], static_cast<float>(i));
}

}  // namespace
}  // namespace neo
