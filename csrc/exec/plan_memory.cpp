#include <algorithm>

#include "base/budget.h"
#include "base/check.h"
#include "exec/dependencies.h"

namespace neo {
namespace {

// A planned memory of one region.
struct Buffer {
  int memory = 0;
  std::vector<uint32_t> writers;
  std::vector<uint32_t> accesses;  // readers and writers
};

// By slot that is a memory: the last region that uses it, as long as the block lives where that is a result.
std::vector<size_t> last_reads(const Block& block, const std::vector<int>& memories) {
  std::vector<size_t> last(block.slots.size(), 0);
  for (size_t r = 0; r < block.regions.size(); ++r) {
    const auto read = [&](int slot) { last[static_cast<size_t>(memories[static_cast<size_t>(slot)])] = r; };
    for (const SymbolSource& source : block.regions[r].sources) {
      if (!source.symbol.formula) read(source.slot);
    }
    for (const Item& item : block.regions[r].items) {
      const Uses uses = uses_of(item);
      std::for_each(uses.reads.begin(), uses.reads.end(), read);
      std::for_each(uses.writes.begin(), uses.writes.end(), read);
    }
  }
  for (const int slot : block.results)
    last[static_cast<size_t>(memories[static_cast<size_t>(slot)])] = block.regions.size();
  return last;
}

// The planned memories that a region writes, those of one writer first.
std::vector<Buffer> find_buffers(const Block& block, const Region& region, const std::vector<int>& memories) {
  std::vector<int> index(block.slots.size(), -1);  // by memory
  std::vector<Buffer> buffers;
  const auto add = [](std::vector<uint32_t>& items, uint32_t item) {
    if (items.empty() || items.back() != item) items.push_back(item);
  };
  std::vector<Uses> uses;
  for (uint32_t i = 0; i < region.items.size(); ++i) {
    uses.push_back(uses_of(region.items[i]));
    for (const int slot : uses.back().writes) {
      const int memory = memories[static_cast<size_t>(slot)];
      if (block.slots[static_cast<size_t>(memory)].storage != Slot::Storage::Arena) continue;
      int& at = index[static_cast<size_t>(memory)];
      if (at < 0) {
        at = static_cast<int>(buffers.size());
        buffers.push_back({memory, {}, {}});
      }
      add(buffers[static_cast<size_t>(at)].writers, i);
      add(buffers[static_cast<size_t>(at)].accesses, i);
    }
  }
  for (uint32_t i = 0; i < region.items.size(); ++i) {
    for (const int slot : uses[i].reads) {
      const int at = index[static_cast<size_t>(memories[static_cast<size_t>(slot)])];
      if (at >= 0) add(buffers[static_cast<size_t>(at)].accesses, i);
    }
  }
  std::sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) {
    const bool a_has_more = a.writers.size() > 1, b_has_more = b.writers.size() > 1;
    return a_has_more != b_has_more ? b_has_more : a.memory < b.memory;
  });
  return buffers;
}

// Writers are numbered in the order of their buffers, so that a buffer of one writer has its number.
BitMatrix find_shareable(const Dependencies& order, const std::vector<Buffer>& buffers,
                         const std::vector<bool>& outlives) {
  const size_t items = order.waits.size(), n = buffers.size();
  std::vector<std::vector<size_t>> written(items);
  size_t writers = 0;
  for (const Buffer& buffer : buffers) {
    for (const uint32_t item : buffer.writers) written[item].push_back(writers++);
  }
  BitMatrix behind(items, writers);  // by item: the writers that wait for it
  for (size_t i = items; i-- > 0;) {
    checkpoint();
    const std::span<uint64_t> row = behind.row(i);
    for (const uint32_t after : order.after(i)) {
      const std::span<const uint64_t> further = std::as_const(behind).row(after);
      for (size_t w = 0; w < row.size(); ++w) row[w] |= further[w];
      for (const size_t writer : written[after]) behind.set(i, writer);
    }
  }
  const auto is_single = [](const Buffer& buffer) { return buffer.writers.size() == 1; };
  const auto singles = static_cast<size_t>(std::count_if(buffers.begin(), buffers.end(), is_single));
  BitMatrix may_share(n, n);
  BitMatrix all(1, writers);  // those behind every access of a buffer
  for (size_t i = 0; i < n; ++i) {
    checkpoint();
    if (outlives[i]) continue;
    std::fill(all.row(0).begin(), all.row(0).end(), ~uint64_t{0});
    for (const uint32_t item : buffers[i].accesses) {
      const std::span<const uint64_t> row = std::as_const(behind).row(item);
      for (size_t w = 0; w < row.size(); ++w) all.row(0)[w] &= row[w];
    }
    size_t writer = singles;
    std::copy_n(all.row(0).begin(), (singles + 63) / 64, may_share.row(i).begin());
    if (singles % 64 != 0) may_share.row(i)[singles / 64] &= (uint64_t{1} << singles % 64) - 1;
    for (size_t j = singles; j < n; ++j) {
      bool has_all = true;
      for (size_t k = 0; k < buffers[j].writers.size(); ++k) has_all = all.get(0, writer++) && has_all;
      if (has_all) may_share.set(i, j);
    }
  }
  may_share.make_symmetric();
  return may_share;
}

// Regions whose outliving memories are read no more give their place to later ones.
void share_places(Block& block, const std::vector<size_t>& last) {
  std::vector<size_t> taken_until;  // by place: the last region that reads any of it
  for (size_t r = 0; r < block.regions.size(); ++r) {
    Region& region = block.regions[r];
    size_t until = r;
    for (size_t i = 0; i < region.planned.size(); ++i) {
      if (region.outlives[i]) until = std::max(until, last[static_cast<size_t>(region.planned[i])]);
    }
    if (until == r) continue;
    const auto free = std::find_if(taken_until.begin(), taken_until.end(), [&](size_t end) { return end < r; });
    region.place = static_cast<int>(free - taken_until.begin());
    if (free == taken_until.end()) {
      taken_until.push_back(until);
    } else {
      *free = until;
    }
  }
}

}  // namespace

void plan_memory(Block& block) {
  const std::vector<int> memories = memories_of(block);
  const std::vector<size_t> last = last_reads(block, memories);
  std::vector<bool> is_planned(block.slots.size(), false);
  for (size_t r = 0; r < block.regions.size(); ++r) {
    Region& region = block.regions[r];
    region.dependencies = find_dependencies(block, region);
    const std::vector<Buffer> buffers = find_buffers(block, region, memories);
    std::vector<bool> outlives;
    for (const Buffer& buffer : buffers) {
      const auto memory = static_cast<size_t>(buffer.memory);
      NEO_ASSERT(!is_planned[memory], "a planned buffer is written in two regions");
      is_planned[memory] = true;
      region.planned.push_back(buffer.memory);
      outlives.push_back(last[memory] > r);
    }
    region.may_share = find_shareable(region.dependencies, buffers, outlives);
    region.outlives = std::move(outlives);
  }
  for (size_t i = 0; i < block.slots.size(); ++i) {
    if (block.slots[i].storage == Slot::Storage::Dynamic && last[i] < block.regions.size())
      block.regions[last[i]].released.push_back(static_cast<int>(i));
  }
  share_places(block, last);
}

}  // namespace neo
