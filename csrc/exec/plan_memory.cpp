#include <algorithm>
#include <map>

#include "base/budget.h"
#include "base/check.h"
#include "exec/plan.h"

namespace neo {
namespace {

struct Uses {
  std::vector<int> reads;
  std::vector<int> writes;
};

void append(std::vector<int>& to, const std::vector<int>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Uses uses_of(const Item& item) {
  Uses uses;
  if (const auto* step = std::get_if<StepItem>(&item.what)) {
    uses = {step->inputs, step->outputs};
  } else if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
    uses.writes = {dims->output};
  } else if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    uses = {branch->arguments, branch->results};
    uses.reads.push_back(branch->predicate);
  } else {
    const auto& loop = std::get<LoopItem>(item.what);
    uses.reads = {loop.trip_count, loop.condition};
    append(uses.reads, loop.carried);
    append(uses.reads, loop.scanned);
    append(uses.reads, loop.captured);
    uses.writes = loop.results;
  }
  std::erase_if(uses.reads, [](int s) { return s < 0; });
  std::erase_if(uses.writes, [](int s) { return s < 0; });
  return uses;
}

// Reachability between the items of a region, one bit per pair.
class Order {
 public:
  explicit Order(size_t count) : words_((count + 63) / 64) {
    require_memory(static_cast<int64_t>(count * words_ * sizeof(uint64_t)));
    bits_.assign(count * words_, 0);
  }
  void add(size_t from, size_t to) {
    bits_[from * words_ + to / 64] |= uint64_t{1} << (to % 64);
    for (size_t w = 0; w < words_; ++w) bits_[from * words_ + w] |= bits_[to * words_ + w];
  }
  // The items behind every one of these, a bit each.
  std::vector<uint64_t> behind_all(const std::vector<size_t>& items) const {
    std::vector<uint64_t> behind(words_, ~uint64_t{0});
    for (const size_t item : items) {
      for (size_t w = 0; w < words_; ++w) behind[w] &= bits_[item * words_ + w];
    }
    return behind;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

struct Buffer {
  std::vector<size_t> writers;
  std::vector<size_t> accesses;  // readers and writers
  bool outlives = false;         // read after the region
};

}  // namespace

void plan_memory(Block& block) {
  const auto memory_of = [&](int slot) {
    while (block.slots[static_cast<size_t>(slot)].storage == Slot::Storage::View)
      slot = block.slots[static_cast<size_t>(slot)].base;
    return slot;
  };
  std::map<int, size_t> region_of;  // by memory slot: where it is written
  for (size_t r = 0; r < block.regions.size(); ++r) {
    Region& region = block.regions[r];
    std::map<int, Buffer> buffers;
    std::vector<Uses> uses;
    for (size_t i = 0; i < region.items.size(); ++i) {
      uses.push_back(uses_of(region.items[i]));
      for (int slot : uses[i].writes) {
        const int memory = memory_of(slot);
        if (block.slots[static_cast<size_t>(memory)].storage != Slot::Storage::Arena) continue;
        region_of.emplace(memory, r);
        NEO_ASSERT(region_of.at(memory) == r, "a planned buffer is written in two regions");
        buffers[memory].writers.push_back(i);
        buffers[memory].accesses.push_back(i);
      }
    }
    // Dependencies, read after write; items are in topological order, so later ones are done first.
    std::map<int, std::vector<size_t>> readers;  // by slot's memory
    for (size_t i = 0; i < region.items.size(); ++i) {
      for (int slot : uses[i].reads) readers[memory_of(slot)].push_back(i);
    }
    Order order(region.items.size());
    for (size_t i = region.items.size(); i-- > 0;) {
      checkpoint();
      for (int slot : uses[i].writes) {
        const auto it = readers.find(memory_of(slot));
        if (it == readers.end()) continue;
        for (size_t reader : it->second) {
          if (reader > i) order.add(i, reader);
        }
      }
    }
    for (auto& [memory, buffer] : buffers) {
      const auto it = readers.find(memory);
      if (it != readers.end()) buffer.accesses.insert(buffer.accesses.end(), it->second.begin(), it->second.end());
      checkpoint();
      for (size_t later = r + 1; later < block.regions.size() && !buffer.outlives; ++later) {
        for (const Item& item : block.regions[later].items) {
          for (int slot : uses_of(item).reads) buffer.outlives = buffer.outlives || memory_of(slot) == memory;
        }
      }
      for (int slot : block.results) buffer.outlives = buffer.outlives || memory_of(slot) == memory;
      region.planned.push_back(memory);
    }
    const size_t n = region.planned.size();
    take_memory(static_cast<int64_t>(n * (n / 8 + sizeof(std::vector<bool>))));
    region.may_share.assign(n, std::vector<bool>(n, false));
    std::vector<const Buffer*> planned;
    for (const int memory : region.planned) planned.push_back(&buffers.at(memory));
    for (size_t i = 0; i < n; ++i) {
      checkpoint();
      if (planned[i]->outlives) continue;
      const std::vector<uint64_t> behind = order.behind_all(planned[i]->accesses);
      for (size_t j = 0; j < n; ++j) {
        const auto is_behind = [&](size_t writer) { return (behind[writer / 64] >> (writer % 64) & 1) != 0; };
        const std::vector<size_t>& writers = planned[j]->writers;
        if (i != j && std::all_of(writers.begin(), writers.end(), is_behind)) {
          region.may_share[i][j] = region.may_share[j][i] = true;
        }
      }
    }
  }
}

}  // namespace neo
