#pragma once

#include <vector>

#include "exec/plan.h"

namespace neo {

// The slots that an item reads and writes.
struct Uses {
  std::vector<int> reads, writes;
};
Uses uses_of(const Item& item);

// By slot: the one whose memory it is in the end a part of; itself where it is no view.
std::vector<int> memories_of(const Block& block);

// The expected time of an item at the plan's team size, in microseconds, bodies of control flow included.
double expected_us(const Item& item);

// An item that reads any part of a memory waits for the items before it that write to any part of it. Whoever runs
// items in another order than the list's keeps to that, and buffers share memory by nothing else.
Dependencies find_dependencies(const Block& block, const Region& region);

// Whether two executors could be at work at once for a part of the time that matters.
bool has_branches(const Dependencies& order);

// By item: the longest way from its start to the end, if each took so long.
std::vector<double> levels_of(const Dependencies& order, const std::vector<double>& times_us);

// The items in an order that the dependencies allow, one of many by the seed.
std::vector<uint32_t> shuffled_order(const Dependencies& order, uint64_t seed);

}  // namespace neo
