#include "exec/verify_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "exec/block_flow.h"
#include "exec/dependencies.h"

namespace neo {
namespace {

using KnownSymbols = std::set<std::string>;

// The items of a region that use one memory, in order.
struct MemoryUse {
  std::vector<uint32_t> writers, accesses;
};

void check_known(const Dim& size, const KnownSymbols& known, const std::string& place) {
  std::map<std::string, Symbol> used;
  size.collect_symbols(used);
  for (const auto& [name, symbol] : used) {
    NEO_CHECK(known.contains(name), Model, "plan", "a size must be known where its region starts. Got ",
              size.to_string(), " - at \"", place, "\"");
  }
}

// By item: those that wait for it, also by way of others.
BitMatrix find_successors(const Region& region) {
  const Dependencies& order = region.dependencies;
  const size_t count = region.items.size();
  const auto check = [](bool holds, std::string_view rule) { NEO_CHECK(holds, Model, "plan", rule); };
  check(order.first.size() == count + 1 && order.waits.size() == count && order.needs_caller.size() == count &&
            order.first.back() == order.successors.size(),
        "dependencies must be of the items of their region");
  std::vector<int32_t> waits(count, 0);
  BitMatrix successors(count, count);
  for (size_t i = count; i-- > 0;) {
    for (const uint32_t after : order.after(i)) {
      check(after > i && after < count, "an item must wait for earlier ones only");
      ++waits[after];
      successors.set(i, after);
      const std::span<uint64_t> row = successors.row(i);
      const std::span<const uint64_t> further = std::as_const(successors).row(after);
      for (size_t w = 0; w < row.size(); ++w) row[w] |= further[w];
    }
  }
  check(waits == order.waits, "an item must start when all that it waits for have ended");
  return successors;
}

class BlockVerifier {
 public:
  BlockVerifier(const Block& block, KnownSymbols known)
      : block_(block), memories_(memories_of(block)), known_(std::move(known)) {}

  void verify();

 private:
  const std::string& name_of(size_t slot) const { return block_.slots[slot].name; }
  void verify_symbols(const Region& region);
  void verify_sizes(const Region& region) const;
  void verify_items(const Region& region, BlockFlow& flow) const;
  std::map<size_t, MemoryUse> uses_in(const Region& region) const;
  void verify_order(const Region& region, const BitMatrix& successors, const std::map<size_t, MemoryUse>& uses) const;
  void verify_sharing(size_t index, const BitMatrix& successors, const std::map<size_t, MemoryUse>& uses) const;
  void verify_places() const;
  void find_last_uses();

  const Block& block_;
  const std::vector<int> memories_;
  KnownSymbols known_;
  std::vector<size_t> last_use_;  // by memory: the last region that uses it; that of a result is behind all regions
};

void BlockVerifier::find_last_uses() {
  last_use_.assign(block_.slots.size(), 0);
  const auto use = [&](int slot, size_t region) {
    last_use_[static_cast<size_t>(memories_[static_cast<size_t>(slot)])] = region;
  };
  for (size_t r = 0; r < block_.regions.size(); ++r) {
    for (const SymbolSource& source : block_.regions[r].sources) {
      if (!source.symbol.formula) use(source.slot, r);
    }
    for (const auto& [memory, uses] : uses_in(block_.regions[r])) last_use_[memory] = r;
  }
  for (const int slot : block_.results) use(slot, block_.regions.size());
}

void BlockVerifier::verify_symbols(const Region& region) {
  for (const SymbolSource& source : region.sources) {
    if (source.symbol.formula) check_known(*source.symbol.formula, known_, source.symbol.name);
    known_.insert(source.symbol.name);
  }
  for (const Guard& guard : region.guards) {
    check_known(guard.left, known_, guard.message);
    check_known(guard.right, known_, guard.message);
  }
}

// Sizes of all that a region computes are formulas of the symbols that are bound when it starts.
void BlockVerifier::verify_sizes(const Region& region) const {
  for (const Item& item : region.items) {
    if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
      for (const Dim& element : dims->elements) check_known(element, known_, item.node);
    }
    for (const int slot : uses_of(item).writes) {
      const Slot& written = block_.slots[static_cast<size_t>(slot)];
      if (written.storage == Slot::Storage::Dynamic) continue;
      for (const Dim& size : written.type.shape.dims()) check_known(size, known_, written.name);
    }
  }
}

void BlockVerifier::verify_items(const Region& region, BlockFlow& flow) const {
  for (const Item& item : region.items) {
    flow.add(item);
    if (const auto* branch = std::get_if<IfItem>(&item.what)) {
      BlockVerifier(*branch->then_block, known_).verify();
      BlockVerifier(*branch->else_block, known_).verify();
    } else if (const auto* loop = std::get_if<LoopItem>(&item.what)) {
      BlockVerifier(*loop->body, known_).verify();
    }
  }
}

std::map<size_t, MemoryUse> BlockVerifier::uses_in(const Region& region) const {
  std::map<size_t, MemoryUse> uses;
  for (uint32_t i = 0; i < region.items.size(); ++i) {
    const Uses slots = uses_of(region.items[i]);
    const auto at = [&](int slot) -> MemoryUse& {
      return uses[static_cast<size_t>(memories_[static_cast<size_t>(slot)])];
    };
    for (const int slot : slots.reads) at(slot).accesses.push_back(i);
    for (const int slot : slots.writes) {
      at(slot).accesses.push_back(i);
      at(slot).writers.push_back(i);
    }
  }
  return uses;
}

// Executors run items in any order that the dependencies allow; what allocates, throws or waits is the caller's.
void BlockVerifier::verify_order(const Region& region, const BitMatrix& successors,
                                 const std::map<size_t, MemoryUse>& uses) const {
  for (size_t i = 0; i < region.items.size(); ++i) {
    const auto* step = std::get_if<StepItem>(&region.items[i].what);
    NEO_CHECK(region.dependencies.needs_caller[i] || (step && step->step->kind() == Step::Kind::Kernel), Model, "plan",
              "an item that is no kernel must run on the caller's thread. Got \"", region.items[i].node, "\"");
    for (const int slot : uses_of(region.items[i]).reads) {
      const auto memory = static_cast<size_t>(memories_[static_cast<size_t>(slot)]);
      for (const uint32_t writer : uses.at(memory).writers) {
        NEO_CHECK(writer >= i || successors.get(writer, i), Model, "plan",
                  "an item must wait for what it reads to be written. Got \"", region.items[i].node, "\" for \"",
                  name_of(memory), "\"");
      }
    }
  }
}

void BlockVerifier::verify_sharing(size_t index, const BitMatrix& successors,
                                   const std::map<size_t, MemoryUse>& uses) const {
  const Region& region = block_.regions[index];
  std::set<size_t> planned;
  for (size_t i = 0; i < region.planned.size(); ++i) {
    const auto memory = static_cast<size_t>(region.planned[i]);
    planned.insert(memory);
    NEO_CHECK(block_.slots[memory].storage == Slot::Storage::Arena && uses.contains(memory), Model, "plan",
              "a region must plan the memory that it writes. Got \"", name_of(memory), "\"");
    NEO_CHECK(region.outlives[i] || last_use_[memory] <= index, Model, "plan",
              "memory that is read behind its region must outlive it. Got \"", name_of(memory), "\"");
    NEO_CHECK(!region.outlives[i] || region.place >= 0, Model, "plan",
              "memory that outlives its region must have a place. Got \"", name_of(memory), "\"");
  }
  for (const auto& [memory, use] : uses) {
    NEO_CHECK(use.writers.empty() || block_.slots[memory].storage != Slot::Storage::Arena || planned.contains(memory),
              Model, "plan", "a region must plan the memory that it writes. Got none for \"", name_of(memory), "\"");
  }
  // All uses of one buffer come before the writers of the other.
  const auto precedes = [&](size_t a, size_t b) {
    const MemoryUse &first = uses.at(static_cast<size_t>(region.planned[a])),
                    &second = uses.at(static_cast<size_t>(region.planned[b]));
    return std::all_of(first.accesses.begin(), first.accesses.end(), [&](uint32_t access) {
      return std::all_of(second.writers.begin(), second.writers.end(),
                         [&](uint32_t writer) { return successors.get(access, writer); });
    });
  };
  for (size_t i = 0; i < region.planned.size(); ++i) {
    for (size_t j = 0; j < region.planned.size(); ++j) {
      if (!region.may_share.get(i, j)) continue;
      const bool never_at_once =
          i != j && ((precedes(i, j) && !region.outlives[i]) || (precedes(j, i) && !region.outlives[j]));
      NEO_CHECK(never_at_once && region.may_share.get(j, i), Model, "plan",
                "memory that is needed at once must not be shared. Got \"",
                name_of(static_cast<size_t>(region.planned[i])), "\" and \"",
                name_of(static_cast<size_t>(region.planned[j])), "\"");
    }
  }
  for (const int slot : region.released) {
    const auto memory = static_cast<size_t>(slot);
    NEO_CHECK(block_.slots[memory].storage == Slot::Storage::Dynamic && last_use_[memory] <= index, Model, "plan",
              "memory that is released must not be read behind its region. Got \"", name_of(memory), "\"");
  }
}

void BlockVerifier::verify_places() const {
  std::map<int, size_t> taken_until;
  for (size_t r = 0; r < block_.regions.size(); ++r) {
    const Region& region = block_.regions[r];
    if (region.place < 0) continue;
    const auto [until, fresh] = taken_until.emplace(region.place, 0);
    NEO_CHECK(fresh || until->second < r, Model, "plan", "a place must be free when a region takes it. Got region ", r,
              " at place ", region.place);
    for (size_t i = 0; i < region.planned.size(); ++i) {
      if (region.outlives[i])
        until->second = std::max(until->second, last_use_[static_cast<size_t>(region.planned[i])]);
    }
  }
}

void BlockVerifier::verify() {
  // The flow comes first: it says that every slot is one of the block.
  BlockFlow flow(block_);
  for (size_t r = 0; r < block_.regions.size(); ++r) {
    const Region& region = block_.regions[r];
    flow.start_region(r);
    for (const SymbolSource& source : region.sources) {
      if (!source.symbol.formula) flow.check_source(source);
    }
    verify_symbols(region);
    verify_items(region, flow);
    verify_sizes(region);
  }
  flow.check_results();
  find_last_uses();
  for (size_t r = 0; r < block_.regions.size(); ++r) {
    const Region& region = block_.regions[r];
    const BitMatrix successors = find_successors(region);
    const std::map<size_t, MemoryUse> uses = uses_in(region);
    verify_order(region, successors, uses);
    NEO_CHECK(region.outlives.size() == region.planned.size(), Model, "plan",
              "a region must say of each memory whether it outlives it. Got ", region.outlives.size(), ", expected ",
              region.planned.size());
    verify_sharing(r, successors, uses);
  }
  verify_places();
}

}  // namespace

void verify_plan(const Plan& plan) {
  try {
    NEO_CHECK(
        plan.input_names.size() == plan.root->arguments.size() && plan.output_names.size() == plan.root->results.size(),
        Model, "plan", "a plan must name its inputs and outputs. Got ", plan.input_names.size(), " and ",
        plan.output_names.size());
    BlockVerifier(*plan.root, {}).verify();
  } catch (const Error& error) {
    fail_at(Error(ErrorKind::Internal, error.what()), "the plan");
  }
}

}  // namespace neo
