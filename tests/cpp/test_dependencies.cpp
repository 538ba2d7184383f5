#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/check.h"
#include "exec/binding.h"
#include "exec/dependencies.h"

namespace neo {
namespace {

class FakeStep final : public KernelStep {
 public:
  Prepared prepare(std::span<const Arg>) const override { return {}; }
  void run(const std::byte*, std::byte* const*, std::byte*, Team&) const override {}
};

Slot make_slot(Slot::Storage storage, int base = -1) {
  Slot slot;
  slot.storage = storage;
  slot.base = base;
  return slot;
}

Item make_item(std::vector<int> inputs, std::vector<int> outputs, double us = 10) {
  Item item;
  item.what = StepItem{std::make_shared<FakeStep>(), nullptr, std::move(inputs), std::move(outputs)};
  item.estimate_us = us;
  return item;
}

// Items that read a few earlier values each; some write over the only value they read, some into parts of one memory.
Block random_block(uint64_t seed, int items) {
  std::mt19937_64 random(seed);
  Block block;
  block.slots = {make_slot(Slot::Storage::Argument), make_slot(Slot::Storage::Constant)};
  block.regions.emplace_back();
  std::vector<int> values{0};
  int whole = -1, parts = 0;
  for (int i = 0; i < items; ++i) {
    std::vector<int> inputs{values[random() % values.size()], -1};
    while (random() % 2) inputs.push_back(values[random() % values.size()]);
    auto output = static_cast<int>(block.slots.size());
    const uint64_t kind = random() % 6;
    if (kind == 0 && block.slots[static_cast<size_t>(values.back())].storage == Slot::Storage::Arena) {
      inputs = {values.back()};
      block.slots.push_back(make_slot(Slot::Storage::View, values.back()));
    } else if (kind == 1) {
      if (parts-- == 0) {
        whole = output++;
        block.slots.push_back(make_slot(Slot::Storage::Arena));
        parts = static_cast<int>(random() % 5);
      }
      if (whole < 0) whole = parts = 0;
      block.slots.push_back(make_slot(whole > 1 ? Slot::Storage::View : Slot::Storage::Arena, whole));
    } else {
      block.slots.push_back(make_slot(random() % 8 ? Slot::Storage::Arena : Slot::Storage::Result));
    }
    values.push_back(output);
    block.regions.front().items.push_back(make_item(inputs, {output}, static_cast<double>(random() % 50)));
  }
  block.results = {values.back()};
  return block;
}

// What waits for what by the rule itself, by all ways.
std::vector<std::vector<bool>> reachable(const Block& block, const Region& region) {
  const std::vector<int> memories = memories_of(block);
  const size_t n = region.items.size();
  std::vector<std::vector<bool>> waits(n, std::vector<bool>(n, false));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) {
      bool direct = false;
      for (const int w : uses_of(region.items[i]).writes) {
        for (const int r : uses_of(region.items[j]).reads)
          direct |= memories[static_cast<size_t>(w)] == memories[static_cast<size_t>(r)];
      }
      if (!direct) continue;
      waits[i][j] = true;
      for (size_t k = j + 1; k < n; ++k) waits[i][k] = waits[i][k] || waits[j][k];
    }
  }
  return waits;
}

std::vector<std::vector<bool>> reachable(const Dependencies& order) {
  const size_t n = order.waits.size();
  std::vector<std::vector<bool>> waits(n, std::vector<bool>(n, false));
  for (size_t i = n; i-- > 0;) {
    for (const uint32_t after : order.after(i)) {
      waits[i][after] = true;
      for (size_t k = 0; k < n; ++k) waits[i][k] = waits[i][k] || waits[after][k];
    }
  }
  return waits;
}

TEST(BitMatrix, becomes_symmetric) {
  std::mt19937_64 random(1);
  for (const size_t n : {1, 2, 63, 64, 65, 130, 200}) {
    BitMatrix bits(n, n);
    std::set<std::pair<size_t, size_t>> set;
    for (size_t k = 0; k < 3 * n; ++k) {
      const size_t i = random() % n, j = random() % n;
      bits.set(i, j);
      set.insert({i, j});
      set.insert({j, i});
    }
    bits.make_symmetric();
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) ASSERT_EQ(bits.get(i, j), set.count({i, j}) > 0) << i << " " << j << " of " << n;
    }
  }
}

TEST(Dependencies, are_those_of_memories) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Block block = random_block(seed, 1 + static_cast<int>(seed % 40));
    const Region& region = block.regions.front();
    const Dependencies order = find_dependencies(block, region);
    ASSERT_EQ(reachable(order), reachable(block, region)) << seed;
    std::vector<int32_t> waits(order.waits.size(), 0);
    for (size_t i = 0; i < waits.size(); ++i) {
      ASSERT_TRUE(std::is_sorted(order.after(i).begin(), order.after(i).end()));
      for (const uint32_t after : order.after(i)) ++waits[after];
    }
    ASSERT_EQ(waits, order.waits) << seed;
  }
}

TEST(Dependencies, levels_are_the_longest_ways) {
  Block block;
  block.slots.assign(5, make_slot(Slot::Storage::Arena));
  block.regions.emplace_back();
  block.regions.front().items = {make_item({}, {0}, 10), make_item({0}, {1}, 20), make_item({0}, {2}, 5),
                                 make_item({1, 2}, {3}, 1), make_item({2}, {4}, 40)};
  const Dependencies order = find_dependencies(block, block.regions.front());
  EXPECT_EQ(order.levels_us, (std::vector<double>{55, 21, 45, 1, 40}));
  EXPECT_EQ(order.work_us, 76);
  EXPECT_EQ(order.critical_us, 55);
  EXPECT_TRUE(has_branches(order));
  EXPECT_EQ(order.is_small, (std::vector<bool>{false, false, false, true, false}));
}

TEST(Dependencies, shuffled_orders_keep_them_and_differ) {
  const Block block = random_block(7, 60);
  const Dependencies order = find_dependencies(block, block.regions.front());
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<uint32_t> items = shuffled_order(order, seed);
    std::vector<size_t> place(items.size());
    for (size_t at = 0; at < items.size(); ++at) place[items[at]] = at;
    for (size_t i = 0; i < items.size(); ++i) {
      for (const uint32_t after : order.after(i)) ASSERT_LT(place[i], place[after]);
    }
    orders.insert(items);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(PlanMemory, buffers_share_where_all_uses_of_one_come_first) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Block block = random_block(seed, 1 + static_cast<int>(seed % 30));
    plan_memory(block);
    const Region& region = block.regions.front();
    const std::vector<int> memories = memories_of(block);
    const auto waits = reachable(block, region);
    std::vector<std::set<int>> accessed, written;  // by item: memories
    for (const Item& item : region.items) {
      const Uses uses = uses_of(item);
      accessed.emplace_back();
      written.emplace_back();
      for (const int slot : uses.reads) accessed.back().insert(memories[static_cast<size_t>(slot)]);
      for (const int slot : uses.writes) written.back().insert(memories[static_cast<size_t>(slot)]);
      accessed.back().insert(written.back().begin(), written.back().end());
    }
    const auto comes_first = [&](int one, int other) {
      if (memories[static_cast<size_t>(block.results.front())] == one) return false;
      for (size_t i = 0; i < accessed.size(); ++i) {
        for (size_t j = 0; j < written.size(); ++j) {
          if (accessed[i].count(one) && written[j].count(other) && !waits[i][j]) return false;
        }
      }
      return true;
    };
    std::set<int> planned;
    for (const Item& item : region.items) {
      for (const int slot : uses_of(item).writes) {
        const int memory = memories[static_cast<size_t>(slot)];
        if (block.slots[static_cast<size_t>(memory)].storage == Slot::Storage::Arena) planned.insert(memory);
      }
    }
    ASSERT_EQ(std::set<int>(region.planned.begin(), region.planned.end()), planned);
    for (size_t i = 0; i < region.planned.size(); ++i) {
      for (size_t j = 0; j < region.planned.size(); ++j) {
        if (i == j) continue;
        const int a = region.planned[i], b = region.planned[j];
        ASSERT_EQ(region.may_share.get(i, j), comes_first(a, b) || comes_first(b, a)) << seed << ": " << a << " " << b;
      }
    }
  }
}

// A memory of 8 floats, parts of which two items write.
Block two_writers(int64_t second_offset, bool second_reads) {
  Block block;
  const auto add = [&](Slot::Storage storage, int64_t size, int base = -1, int64_t offset = 0) {
    Slot slot = make_slot(storage, base);
    slot.type = Type::tensor(DType::Float32, Shape::of({size}));
    slot.layout = Layout::plain(1);
    slot.offset = offset;
    block.slots.push_back(std::move(slot));
  };
  add(Slot::Storage::Argument, 4);
  add(Slot::Storage::Arena, 8);
  add(Slot::Storage::View, 4, 1, 0);
  add(Slot::Storage::View, 4, 1, second_offset);
  add(Slot::Storage::Result, 8);
  block.arguments = {0};
  block.results = {4};
  block.regions.emplace_back().items = {make_item({0}, {2}), make_item({second_reads ? 2 : 0}, {3}),
                                        make_item({1}, {4})};
  plan_memory(block);
  return block;
}

TEST(Binding, items_that_do_not_wait_touch_other_bytes) {
  const auto bind = [](const Block& block) { return bind_region(block, block.regions.front(), {}); };
  EXPECT_NO_THROW(bind(two_writers(4, false)));
  EXPECT_NO_THROW(bind(two_writers(0, true)));
  EXPECT_NO_THROW(bind(two_writers(2, true)));
  EXPECT_THROW(bind(two_writers(0, false)), Error);
  EXPECT_THROW(bind(two_writers(3, false)), Error);
}

}  // namespace
}  // namespace neo
