#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "routines/packed_store.h"

namespace neo {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

bool shares_memory(const Tensor& a, const Tensor& b) {
  return a.owner() == b.owner();
}

Tensor take(PackedStore& store, int64_t count) {
  return store.floats(count, {}, [](float*) {});
}

TEST(PackedSlab, blobs_lie_one_behind_the_other_where_their_step_has_its_part) {
  const PackedSlab slab(4 * kMegabyte);
  PackedStore later(slab, kMegabyte + 100, 3 * kMegabyte), earlier(slab, 0, kMegabyte + 100);
  const Tensor third = take(later, 1000), fourth = take(later, 1);
  const Tensor first = take(earlier, 100), second = take(earlier, kMegabyte / 8);
  const auto* begin = reinterpret_cast<const std::byte*>(first.data());
  for (const Tensor& t : {first, second, third, fourth}) {
    EXPECT_TRUE(shares_memory(first, t));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  }
  EXPECT_EQ(first.size(), 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % (2 * kMegabyte), 0u);
  EXPECT_EQ(second.as<float>(), first.as<float>() + 112);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(third.data()), begin + kMegabyte + 128);
  EXPECT_EQ(fourth.as<float>(), third.as<float>() + 1008);
}

TEST(PackedSlab, what_it_does_not_hold_has_memory_of_its_own) {
  const PackedSlab slab(2 * kMegabyte);
  PackedStore store(slab, 0, kMegabyte), end(slab, 2 * kMegabyte - 64, 3 * kMegabyte);
  const Tensor whole = take(store, kMegabyte / 4), last = take(end, 16);
  const Tensor beyond = take(store, 8), larger = take(store, kMegabyte), outside = take(end, 16);
  EXPECT_TRUE(shares_memory(whole, last));
  for (const Tensor& t : {beyond, larger, outside}) EXPECT_FALSE(shares_memory(whole, t));
  EXPECT_EQ(larger.size(), kMegabyte);
  EXPECT_EQ(take(store, 0).size(), 0);
}

// What the allocator kept of a block that was freed has small pages, and what they held.
TEST(PackedStore, large_constants_lie_in_pages_that_are_new) {
  for (int64_t megabytes : {2, 5, 13}) {
    for (int again = 0; again < 4; ++again) {
      PackedStore store;
      const Tensor t = take(store, megabytes * kMegabyte / 4);
      const float* values = t.as<float>();
      EXPECT_EQ(std::count(values, values + t.size(), 0.0f), t.size()) << megabytes << " MB, " << again;
      std::fill_n(t.as<float>(), t.size(), 1.0f);
    }
  }
}

TEST(PackedSlab, few_bytes_make_none) {
  const PackedSlab slab(1000);
  PackedStore store(slab, 0, 1000);
  EXPECT_FALSE(shares_memory(take(store, 10), take(store, 10)));
}

TEST(PackedSlab, blobs_outlive_it) {
  Tensor blob;
  {
    const PackedSlab slab(2 * kMegabyte);
    PackedStore store(slab, 0, 2 * kMegabyte);
    blob = store.floats(1000, {}, [](float* to) {
      for (int i = 0; i < 1000; ++i) to[i] = static_cast<float>(i);
    });
  }
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(blob.as<float>()[i], static_cast<float>(i));
}

}  // namespace
}  // namespace neo
