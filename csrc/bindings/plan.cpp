#include "bindings/plan.h"

#include <algorithm>
#include <functional>

#include "base/arena.h"
#include "base/check.h"
#include "exec/dependencies.h"
#include "exec/growth.h"

namespace neo::python {
namespace {

const char* text_of(Slot::Storage storage) {
  switch (storage) {
    case Slot::Storage::Argument:
      return "argument";
    case Slot::Storage::Constant:
      return "constant";
    case Slot::Storage::Arena:
      return "arena";
    case Slot::Storage::Result:
      return "result";
    case Slot::Storage::View:
      return "view";
    case Slot::Storage::Dynamic:
      break;
  }
  return "owned";
}

// The bodies of an item by the name of the attribute that holds them.
std::vector<std::pair<const char*, const Block*>> bodies_of(const Item& item) {
  if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    return {{"then_branch", branch->then_block.get()}, {"else_branch", branch->else_block.get()}};
  }
  if (const auto* loop = std::get_if<LoopItem>(&item.what)) return {{"body", loop->body.get()}};
  return {};
}

using Visit = std::function<void(const Item& item, const Block& block, const ItemPlace& place)>;

// Depth first; `enter` is told every block with its number.
struct Walk {
  std::function<void(const Block& block, int number)> enter;
  Visit visit;
  int items = 0;
  int blocks = 0;

  void block(const Block& b) {
    const int number = blocks++;
    if (enter) enter(b, number);
    for (size_t r = 0; r < b.regions.size(); ++r) {
      for (const Item& item : b.regions[r].items) {
        if (visit) visit(item, b, {items, number, static_cast<int>(r)});
        ++items;
        for (const auto& body : bodies_of(item)) block(*body.second);
      }
    }
  }
};

int64_t bytes_of(const Slot& slot, const Dims& dims) {
  return element_count(slot.layout.physical_dims(dims)) * item_bytes(slot.type.dtype);
}

std::optional<Dims> dims_at_hints(const Type& type) {
  if (!type.is_tensor() || !type.shape.has_rank()) return std::nullopt;
  Dims dims;
  for (const Dim& d : type.shape.dims()) dims.push_back(d.hint());
  return dims;
}

py::list describe_slots(const Block& block) {
  py::list slots;
  for (const Slot& slot : block.slots) {
    py::dict entry;
    entry["name"] = slot.name;
    entry["type"] = slot.type.to_string();
    entry["storage"] = text_of(slot.storage);
    entry["device"] = std::string(name(slot.device));
    entry["base"] = slot.base;
    entry["layout"] = slot.layout.to_string();
    const auto dims = slot.storage == Slot::Storage::Constant ? std::nullopt : dims_at_hints(slot.type);
    entry["bytes"] = slot.storage == Slot::Storage::Constant ? py::object(py::int_(slot.constant.bytes()))
                     : dims                                  ? py::object(py::int_(bytes_of(slot, *dims)))
                                                             : py::object(py::none());
    slots.append(entry);
  }
  return slots;
}

int64_t hint_of(const Symbol& symbol) {
  return Dim::symbol(symbol.name, symbol.range, symbol.hint).hint();
}

// Every region bound at one size of each symbol. A region that two sizes break a guard of is left out.
void visit_regions(const Plan& plan, const std::function<int64_t(const Symbol&)>& size_of,
                   const std::function<void(const Block&, int number, int region, const Binding&)>& visit) {
  SymbolValues symbols;
  Walk walk;
  walk.enter = [&](const Block& block, int number) {
    for (size_t r = 0; r < block.regions.size(); ++r) {
      const Region& region = block.regions[r];
      for (const SymbolSource& source : region.sources) symbols.emplace(source.symbol.name, size_of(source.symbol));
      std::shared_ptr<const Binding> binding;
      try {
        binding = bind_region(block, region, symbols);
      } catch (const std::exception&) {
        continue;
      }
      visit(block, number, static_cast<int>(r), *binding);
    }
  };
  walk.block(*plan.root);
}

}  // namespace

std::map<const Item*, ItemPlace> places_of(const Plan& plan) {
  std::map<const Item*, ItemPlace> places;
  Walk walk;
  walk.visit = [&](const Item& item, const Block&, const ItemPlace& place) { places[&item] = place; };
  walk.block(*plan.root);
  return places;
}

std::vector<const Block*> blocks_of(const Plan& plan) {
  std::vector<const Block*> blocks;
  Walk walk;
  walk.enter = [&](const Block& block, int) { blocks.push_back(&block); };
  walk.block(*plan.root);
  return blocks;
}

int64_t constant_bytes(const Plan& plan) {
  std::map<const void*, int64_t> sizes;
  const auto add = [&](const Tensor& t) {
    if (!t.defined() || t.is_absent() || t.dtype() == DType::String) return;
    if (t.is_splat()) {
      sizes[t.splat_element()] = item_bytes(t.dtype());
    } else {
      int64_t& bytes = sizes[t.data()];
      bytes = std::max(bytes, t.bytes());
    }
  };
  Walk walk;
  walk.enter = [&](const Block& block, int) {
    for (const Slot& slot : block.slots) add(slot.constant);
  };
  walk.visit = [&](const Item& item, const Block&, const ItemPlace&) {
    const auto* call = std::get_if<StepItem>(&item.what);
    if (!call || !call->spec) return;
    for (const Tensor& t : call->spec->packed) add(t);
    for (const Tensor& t : call->spec->constants) add(t);
  };
  walk.block(*plan.root);
  int64_t total = 0;
  for (const auto& [data, bytes] : sizes) total += bytes;
  return total;
}

py::dict describe_item(const Item& item) {
  py::dict entry;
  entry["node"] = item.node;
  entry["op"] = item.op;
  entry["routine"] = item.routine;
  entry["device"] = std::string(name(item.device));
  entry["estimate_us"] = item.estimate_us;
  entry["flops"] = item.flops.hint();
  entry["bytes"] = item.bytes.hint();
  return entry;
}

py::dict describe_plan(const Plan& plan) {
  py::list blocks, items;
  std::map<const Block*, int> numbers;
  std::vector<std::pair<py::dict, const Item*>> holders;
  Walk walk;
  walk.enter = [&](const Block& block, int number) {
    numbers[&block] = number;
    py::dict entry;
    entry["slots"] = describe_slots(block);
    entry["arguments"] = block.arguments;
    entry["results"] = block.results;
    blocks.append(entry);
  };
  walk.visit = [&](const Item& item, const Block&, const ItemPlace& place) {
    py::dict entry = describe_item(item);
    entry["block"] = place.block;
    entry["region"] = place.region;
    Uses uses = uses_of(item);
    entry["reads"] = std::move(uses.reads);
    entry["writes"] = std::move(uses.writes);
    items.append(entry);
    holders.emplace_back(entry, &item);
  };
  walk.block(*plan.root);
  for (auto& [entry, item] : holders) {
    py::dict bodies;
    for (const auto& [name, body] : bodies_of(*item)) bodies[name] = numbers.at(body);
    entry["bodies"] = bodies;
    py::list grown;  // numbers of carried values
    if (const auto* loop = std::get_if<LoopItem>(&item->what)) {
      for (const Growth& growth : find_growths(*loop)) grown.append(growth.carried);
    }
    entry["grows_in_place"] = grown;
  }
  py::dict out;
  out["blocks"] = blocks;
  out["items"] = items;
  return out;
}

py::dict describe_region(const Block& block, int block_number, int region_number, const Binding& binding) {
  const Region& region = block.regions[static_cast<size_t>(region_number)];
  py::dict offsets, sizes;
  py::set outliving;
  const auto is_host = [&](size_t slot) { return block.slots[slot].device == DeviceKind::Cpu; };
  for (size_t i = 0; i < region.planned.size(); ++i) {
    const int slot = region.planned[i];
    if (!is_host(static_cast<size_t>(slot))) continue;
    offsets[py::int_(slot)] = binding.offset[static_cast<size_t>(slot)];
    if (region.outlives[i]) outliving.add(slot);
  }
  for (size_t i = 0; i < block.slots.size(); ++i) {
    const Slot& slot = block.slots[i];
    if (!is_host(i)) continue;
    if (binding.sized[i] && slot.storage != Slot::Storage::Constant)
      sizes[py::int_(i)] = bytes_of(slot, binding.dims[i]);
  }
  py::dict entry;
  entry["block"] = block_number;
  entry["region"] = region_number;
  entry["place"] = region.place;
  entry["passing_bytes"] = binding.passing_bytes;
  entry["kept_bytes"] = binding.kept_bytes;
  entry["outliving"] = outliving;
  entry["scratch_bytes"] = binding.scratch_bytes;
  entry["offsets"] = offsets;
  entry["sizes"] = sizes;
  return entry;
}

py::list describe_regions_at_hints(const Plan& plan) {
  py::list regions;
  visit_regions(plan, hint_of, [&](const Block& block, int number, int region, const Binding& binding) {
    regions.append(describe_region(block, number, region, binding));
  });
  return regions;
}

int64_t call_bytes(const Plan& plan, int executors) {
  // As Arena::reserve() rounds what it is asked for.
  const auto held = [](int64_t bytes) {
    return align_bytes(bytes, bytes >= kLargePageBytes ? kLargePageBytes : Arena::kAlignment);
  };
  const auto bytes_at = [&](const std::function<int64_t(const Symbol&)>& size_of) {
    std::map<std::pair<int, int>, int64_t> arenas;  // by block and place; -1: of what ends with a region
    int64_t total = 0, scratch = 0;
    visit_regions(plan, size_of, [&](const Block& block, int number, int region, const Binding& binding) {
      const auto take = [&](int place, int64_t bytes) {
        int64_t& arena = arenas[{number, place}];
        arena = std::max(arena, held(bytes));
      };
      take(-1, binding.passing_bytes);
      if (const int place = block.regions[static_cast<size_t>(region)].place; place >= 0)
        take(place, binding.kept_bytes);
      total += binding.device_arena_bytes;
      scratch = std::max(scratch, executors * held(binding.scratch_bytes) + binding.device_scratch_bytes);
    });
    for (const auto& [place, bytes] : arenas) total += bytes;
    return total + scratch;
  };
  const auto largest = [](const Symbol& symbol) {
    return symbol.range.hi < kMaxSymbol ? symbol.range.hi : hint_of(symbol);
  };
  return std::max(bytes_at(hint_of), bytes_at(largest));
}

}  // namespace neo::python
