#include "exec/dependencies.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/budget.h"

namespace neo {
namespace {

void append(std::vector<int>& to, const std::vector<int>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

double expected_us(const Block& block) {
  double sum = 0;
  for (const Region& region : block.regions) {
    for (const Item& item : region.items) sum += neo::expected_us(item);
  }
  return sum;
}

}  // namespace

Uses uses_of(const Item& item) {
  Uses uses;
  if (const auto* step = std::get_if<StepItem>(&item.what)) {
    uses = {step->inputs, step->outputs};
  } else if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
    uses.writes = {dims->output};
  } else if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    uses = {{branch->predicate}, branch->results};
    append(uses.reads, branch->arguments);
  } else {
    const auto& loop = std::get<LoopItem>(item.what);
    uses = {{loop.trip_count, loop.condition}, loop.results};
    append(uses.reads, loop.carried);
    append(uses.reads, loop.scanned);
    append(uses.reads, loop.captured);
  }
  std::erase_if(uses.reads, [](int slot) { return slot < 0; });
  std::erase_if(uses.writes, [](int slot) { return slot < 0; });
  return uses;
}

std::vector<int> memories_of(const Block& block) {
  std::vector<int> memories(block.slots.size(), -1);
  std::vector<size_t> way;
  for (size_t start = 0; start < memories.size(); ++start) {
    size_t at = start;
    for (; memories[at] < 0 && block.slots[at].storage == Slot::Storage::View;
         at = static_cast<size_t>(block.slots[at].base))
      way.push_back(at);
    if (memories[at] < 0) memories[at] = static_cast<int>(at);
    for (const size_t view : way) memories[view] = memories[at];
    way.clear();
  }
  return memories;
}

double expected_us(const Item& item) {
  constexpr double kTrips = 8;  // where only running tells
  if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    return item.estimate_us + std::max(expected_us(*branch->then_block), expected_us(*branch->else_block));
  }
  if (const auto* loop = std::get_if<LoopItem>(&item.what)) {
    return item.estimate_us + kTrips * expected_us(*loop->body);
  }
  return item.estimate_us;
}

Dependencies find_dependencies(const Block& block, const Region& region) {
  const size_t count = region.items.size();
  const std::vector<int> memories = memories_of(block);
  const auto memory_of = [&](int slot) { return static_cast<size_t>(memories[static_cast<size_t>(slot)]); };
  std::vector<std::vector<uint32_t>> writers(block.slots.size());  // by memory: those that a reader waits for
  std::vector<uint32_t> seen(count, UINT32_MAX);                   // by item: the last one that waits for it
  std::vector<uint32_t> awaited, begin{0};                         // those that an item waits for, and where they begin
  Dependencies order;
  order.first.assign(count + 1, 0);
  for (uint32_t i = 0; i < count; ++i) {
    checkpoint();
    const Uses uses = uses_of(region.items[i]);
    for (const int slot : uses.reads) {
      for (const uint32_t writer : writers[memory_of(slot)]) {
        if (seen[writer] == i) continue;
        seen[writer] = i;
        awaited.push_back(writer);
        ++order.first[writer + 1];
      }
    }
    for (const int slot : uses.writes) {
      std::vector<uint32_t>& before = writers[memory_of(slot)];
      if (!before.empty() && before.back() == i) continue;
      // Who waits for an item that reads the memory too waits for all that were there before it.
      const bool reads_too = std::any_of(uses.reads.begin(), uses.reads.end(),
                                         [&](int read) { return memory_of(read) == memory_of(slot); });
      if (reads_too) before.clear();
      before.push_back(i);
    }
    take_memory(static_cast<int64_t>((awaited.size() - begin.back()) * 2 * sizeof(uint32_t)));
    order.waits.push_back(static_cast<int32_t>(awaited.size() - begin.back()));
    begin.push_back(static_cast<uint32_t>(awaited.size()));
  }
  for (size_t i = 0; i < count; ++i) order.first[i + 1] += order.first[i];
  order.successors.resize(awaited.size());
  std::vector<uint32_t> next(order.first.begin(), order.first.end() - 1);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t k = begin[i]; k < begin[i + 1]; ++k) order.successors[next[awaited[k]]++] = i;
  }
  constexpr double kHandOverUs = 1.5;
  // Whether a part of memory that a step made lies in it is checked when it is used.
  const auto is_late_view = [&](int slot) {
    return block.slots[static_cast<size_t>(slot)].storage == Slot::Storage::View &&
           block.slots[memory_of(slot)].storage == Slot::Storage::Dynamic;
  };
  const auto has_late_view = [&](const Item& item) {
    const Uses uses = uses_of(item);
    return std::any_of(uses.reads.begin(), uses.reads.end(), is_late_view) ||
           std::any_of(uses.writes.begin(), uses.writes.end(), is_late_view);
  };
  std::vector<double> times;
  for (const Item& item : region.items) {
    const auto* step = std::get_if<StepItem>(&item.what);
    times.push_back(expected_us(item));
    order.work_us += times.back();
    order.is_small.push_back(times.back() < kHandOverUs);
    order.needs_caller.push_back(!step || step->step->kind() != Step::Kind::Kernel || has_late_view(item));
  }
  order.levels_us = levels_of(order, times);
  for (const double level : order.levels_us) order.critical_us = std::max(order.critical_us, level);
  return order;
}

bool has_branches(const Dependencies& order) {
  constexpr double kWorthwhile = 1.02;
  return order.work_us > kWorthwhile * order.critical_us;
}

std::vector<double> levels_of(const Dependencies& order, const std::vector<double>& times_us) {
  std::vector<double> levels(times_us.size(), 0);
  for (size_t i = levels.size(); i-- > 0;) {
    for (const uint32_t after : order.after(i)) levels[i] = std::max(levels[i], levels[after]);
    levels[i] += times_us[i];
  }
  return levels;
}

std::vector<uint32_t> shuffled_order(const Dependencies& order, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> waits = order.waits;
  std::vector<uint32_t> ready, shuffled;
  for (uint32_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    shuffled.push_back(ready.back());
    ready.pop_back();
    for (const uint32_t after : order.after(shuffled.back())) {
      if (--waits[after] == 0) ready.push_back(after);
    }
  }
  return shuffled;
}

}  // namespace neo
