#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "base/check.h"
#include "base/poison.h"

namespace neo {
namespace {

template <class F>
ErrorKind arena_error_kind(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::Cancelled;
}

TEST(Arena, block_is_aligned_and_writable_at_any_size) {
  Arena arena;
  for (const int64_t bytes : {1, 64, 65, 4096, (1 << 21) - 1, (1 << 21) + 1, 5 << 20}) {
    arena.reserve(bytes);
    EXPECT_GE(arena.capacity_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % Arena::kAlignment, 0u);
    std::memset(arena.data(), 0x5a, static_cast<size_t>(arena.capacity_bytes()));
  }
}

TEST(Arena, large_blocks_lie_in_pages_that_are_new) {
  for (const int megabytes : {21, 9, 9, 9}) {  // the allocator keeps blocks that are smaller than one that was freed
    Arena arena;
    arena.reserve(megabytes << 20);
    const std::byte* bytes = arena.data();
    EXPECT_EQ(std::count(bytes, bytes + arena.capacity_bytes(), std::byte{0}), arena.capacity_bytes());
    std::memset(arena.data(), 0x5a, static_cast<size_t>(arena.capacity_bytes()));
  }
}

TEST(Arena, poisoned_memory_is_nan) {
  poison_new_memory(true);
  Arena arena;
  arena.reserve(1000);
  for (int64_t i = 0; i < 250; ++i) EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(arena.data())[i])) << i;
  poison_new_memory(false);
  arena.reserve(8);
  EXPECT_TRUE(std::isnan(*reinterpret_cast<const float*>(arena.data())));  // what it has is kept
}

TEST(Arena, smaller_request_keeps_block_and_contents) {
  Arena arena;
  arena.reserve(1000);
  std::byte* const block = arena.data();
  block[999] = std::byte{7};
  arena.reserve(10);
  arena.reserve(1000);
  EXPECT_EQ(arena.data(), block);
  EXPECT_EQ(block[999], std::byte{7});
}

TEST(Arena, limit_is_a_memory_error_and_keeps_the_block) {
  Arena arena(128);
  arena.reserve(128);
  EXPECT_EQ(arena_error_kind([&] { arena.reserve(129); }), ErrorKind::Memory);
  EXPECT_EQ(arena.capacity_bytes(), 128);
}

TEST(Arena, room_beyond_the_limit_that_rounding_left_is_not_given) {
  constexpr int64_t kLimit = (3 << 20) + 1;
  Arena arena(kLimit);
  arena.reserve(kLimit);
  EXPECT_EQ(arena_error_kind([&] { arena.reserve(kLimit + 1); }), ErrorKind::Memory);
}

TEST(Arena, more_than_the_machine_has_is_a_memory_error_and_leaves_an_empty_usable_arena) {
  Arena arena;
  arena.reserve(64);
  EXPECT_EQ(arena_error_kind([&] { arena.reserve(int64_t{1} << 60); }), ErrorKind::Memory);
  EXPECT_EQ(arena.capacity_bytes(), 0);
  EXPECT_EQ(arena.data(), nullptr);
  arena.reserve(64);
  EXPECT_NE(arena.data(), nullptr);
}

TEST(Arena, overflow_of_a_size_is_a_memory_error) {
  Arena arena;
  EXPECT_EQ(arena_error_kind([&] { arena.reserve(Arena::kNoLimit); }), ErrorKind::Memory);
  EXPECT_EQ(arena_error_kind([] { align_bytes(Arena::kNoLimit - 62); }), ErrorKind::Memory);
  EXPECT_EQ(align_bytes(Arena::kNoLimit - 63), Arena::kNoLimit - 63);
  EXPECT_EQ(align_bytes(0), 0);
  EXPECT_EQ(align_bytes(1), 64);
  EXPECT_EQ(align_bytes(65, 16), 80);
}

TEST(Arena, a_negative_size_is_a_bug) {
  Arena arena;
  EXPECT_EQ(arena_error_kind([&] { arena.reserve(-1); }), ErrorKind::Internal);
}

TEST(Arena, moves_leave_the_source_empty) {
  Arena source(256);
  source.reserve(100);
  std::byte* const block = source.data();
  Arena target = std::move(source);
  EXPECT_EQ(target.data(), block);
  EXPECT_EQ(source.data(), nullptr);
  source = std::move(target);
  EXPECT_EQ(source.data(), block);
  EXPECT_EQ(arena_error_kind([&] { source.reserve(257); }), ErrorKind::Memory);
}

}  // namespace
}  // namespace neo
