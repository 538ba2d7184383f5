#include "exec/binding.h"

#include <algorithm>

#include "base/budget.h"
#include "base/check.h"
#include "exec/dependencies.h"

namespace neo {
namespace {

// A loop whose values grow has other sizes in every iteration. A slot takes some 150 bytes of a binding.
constexpr size_t kMaxBindings = 256;
constexpr size_t kMaxSlots = size_t{1} << 16;

constexpr int64_t kAlignment = 64;
constexpr int64_t kDeviceAlignment = 256;
constexpr int64_t kSlotBytes = 128;  // what a binding holds of one, about
constexpr int64_t kMaxArenaBytes = int64_t{1} << 50;

int64_t align_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Whether the sizes of a slot, and where a view lies in its base, are known.
bool is_placed(const Slot& slot, const SymbolValues& symbols) {
  if (!slot.type.is_tensor() || !slot.type.shape.has_rank()) return false;
  std::map<std::string, Symbol> used;
  const auto add = [&](const Dim& d) {
    if (!d.is_constant()) d.collect_symbols(used);
  };
  for (const Dim& d : slot.type.shape.dims()) add(d);
  for (const Dim& d : slot.strides) add(d);
  add(slot.offset);
  return std::all_of(used.begin(), used.end(), [&](const auto& s) { return symbols.count(s.first) > 0; });
}

void check_guard(const Guard& guard, const SymbolValues& symbols) {
  const int64_t a = guard.left.evaluate(symbols);
  const int64_t b = guard.right.evaluate(symbols);
  bool holds = false;
  switch (guard.relation) {
    case Guard::Relation::Equal:
      holds = a == b;
      break;
    case Guard::Relation::LessEqual:
      holds = a <= b;
      break;
    case Guard::Relation::Divides:
      holds = a != 0 && b % a == 0;
      break;
    case Guard::Relation::Broadcasts:
      holds = a == b || a == 1 || b == 1;
      break;
  }
  NEO_CHECK(holds, Shape, "run", guard.message, ". Got ", guard.left.to_string(), "=", a, " and ",
            guard.right.to_string(), "=", b);
}

// The launches of a device step, of which the arguments are checked against what they may touch.
StepLaunches launches_of(const Block& block, const Binding& binding, const StepItem& call) {
  const auto& step = static_cast<const DeviceStep&>(*call.step);
  std::vector<Arg> args;
  for (int slot : call.inputs) args.push_back(describe_slot(block, binding, slot));
  if (step.counts() > 0) return step.count(args);
  for (int slot : call.outputs) args.push_back(describe_slot(block, binding, slot));
  return step.launches(args);
}

bool has_nothing_to_write(std::span<const Arg> outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Arg& output) { return !output.present || element_count(output.dims) == 0; });
}

// The value that grows in whose memory a slot does not lie densely; null: it is dense, or says its strides itself.
const Growth* growth_of(const Block& block, const Binding& binding, size_t slot) {
  if (binding.growths.empty()) return nullptr;
  while (block.slots[slot].storage == Slot::Storage::View) slot = static_cast<size_t>(block.slots[slot].base);
  for (const Growth& growth : binding.growths) {
    if (!growth.is_contiguous && growth.whole == static_cast<int>(slot)) return &growth;
  }
  return nullptr;
}

// By slot: its description is that of another binding of the region.
std::vector<bool> find_unchanged(const Block& block, const Binding& binding, const Binding& before) {
  std::vector<bool> unchanged(block.slots.size());
  for (size_t i = 0; i < unchanged.size(); ++i) {
    unchanged[i] = binding.sized[i] && before.sized[i] && block.slots[i].strides.empty() &&
                   binding.dims[i] == before.dims[i] && growth_of(block, binding, i) == nullptr;
  }
  return unchanged;
}

// The value that an item of the region appends to, or whose past it copies; null: none.
const Growth* growth_at(const Binding& binding, const Block& block, const Region& region, size_t item) {
  for (const Growth& growth : binding.growths) {
    if (growth.append == item && &block.regions[growth.region] == &region) return &growth;
  }
  return nullptr;
}

// The arguments of an item that appends as those of one that writes behind the past, which lies there already.
void leave_past(const Growth& growth, std::vector<Arg>& args, Binding& binding, size_t items) {
  const auto axis = static_cast<size_t>(growth.axis);
  const size_t item = binding.prepared.size();
  const int64_t past = args.front().dims[axis];
  Arg& to = args.back();
  args.front().dims[axis] = 0;
  to.dims[axis] -= past;
  binding.append_bytes.resize(items, 0);
  binding.append_bytes[item] = past * to.strides[axis] * item_bytes(to.dtype);
}

// The place of a slot in the memory that holds it, directly or as a part of other slots.
struct Place {
  int memory = 0;
  int64_t begin = 0;  // bytes
  int64_t end = 0;
};

// The places of slots; a view must lie in its base.
class Places {
 public:
  Places(const Block& block, Binding& binding) : block_(block), binding_(binding) {}

  // A view of memory that the caller owns and whose size is not known yet is checked when it is read (`late`).
  void place_views() {
    for (size_t i = 0; i < block_.slots.size(); ++i) {
      if (block_.slots[i].storage == Slot::Storage::View && binding_.sized[i] && !is_placed(i))
        binding_.sized[i] = false;
    }
    for (size_t i = 0; i < block_.slots.size(); ++i) {
      const Slot& slot = block_.slots[i];
      if (slot.storage != Slot::Storage::View || !binding_.sized[i]) continue;
      const auto base = static_cast<size_t>(slot.base);
      // A view of no elements may begin anywhere, also behind its base.
      const int64_t offset = extent(i) == 0 ? 0 : slot.offset.evaluate(binding_.symbols);
      const int64_t held = binding_.sized[base] ? elements(base) : kMaxExtent;
      NEO_CHECK(offset >= 0 && offset <= held && extent(i) <= held - offset, Shape, "run",
                "a part must lie in its whole. Got ", extent(i), " elements at ", offset, " of ", held, " - at \"",
                slot.name, "\"");
      binding_.view_bytes[i] = offset * item_bytes(slot.type.dtype);
    }
  }

  Place of(int index) const {
    auto i = static_cast<size_t>(index);
    Place place;
    place.end = extent(i) * item_bytes(block_.slots[i].type.dtype);
    for (; block_.slots[i].storage == Slot::Storage::View; i = static_cast<size_t>(block_.slots[i].base))
      place.begin += binding_.view_bytes[i];
    place.memory = static_cast<int>(i);
    place.end += place.begin;
    return place;
  }

  // By slot, for views of memory without a size: bytes that the memory must have. Empty where there are none.
  std::vector<int64_t> late() const {
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < block_.slots.size(); ++i) {
      if (block_.slots[i].storage != Slot::Storage::View || !binding_.sized[i]) continue;
      const Place place = of(static_cast<int>(i));
      if (binding_.sized[static_cast<size_t>(place.memory)]) continue;
      bytes.resize(block_.slots.size(), 0);
      bytes[i] = place.end;
    }
    return bytes;
  }

  // A step may write over what it reads only where its candidate says so, and then as a whole.
  void check_overlaps(const StepItem& call) const {
    for (int output : call.outputs) {
      if (output < 0 || !binding_.sized[static_cast<size_t>(output)]) continue;
      const Place to = of(output);
      int read = -1;
      for (size_t i = 0; i < call.spec->inputs.size(); ++i) {
        if (!call.spec->inputs[i]) continue;
        const int input = call.inputs[static_cast<size_t>(++read)];
        if (input < 0 || !binding_.sized[static_cast<size_t>(input)]) continue;
        const Place from = of(input);
        if (from.memory != to.memory || from.end <= to.begin || to.end <= from.begin) continue;
        const bool may = call.spec->in_place == static_cast<int>(i) && from.begin == to.begin && from.end == to.end;
        NEO_CHECK(may, Model, "run", "a step must not write over what it reads. Got \"",
                  block_.slots[static_cast<size_t>(output)].name, "\" over \"",
                  block_.slots[static_cast<size_t>(input)].name, "\"");
      }
    }
  }

  // An item waits for those before it that write to a memory which it reads, and for no others: they may run in any
  // order, and at once. Where one of two such items writes, they must not touch the same bytes.
  void check_order(const Region& region) const {
    std::vector<std::vector<Access>> accesses(block_.slots.size());  // by memory
    for (size_t i = 0; i < region.items.size(); ++i) {
      const Uses uses = uses_of(region.items[i]);
      for (const int slot : uses.reads) add_access(accesses, i, slot, false);
      for (const int slot : uses.writes) add_access(accesses, i, slot, true);
    }
    for (std::vector<Access>& all : accesses) {
      const auto writes = [](const Access& access) { return access.item_writes; };
      if (std::count_if(all.begin(), all.end(), writes) > 1) check_accesses(all);
    }
  }

 private:
  // The bytes of a memory that an item touches through one slot, and whether it reads and writes any part of it.
  struct Access {
    Place place;
    size_t item = 0;
    int slot = 0;
    bool writes = false, item_reads = false, item_writes = false;
  };

  void add_access(std::vector<std::vector<Access>>& accesses, size_t item, int slot, bool writes) const {
    if (!binding_.sized[static_cast<size_t>(slot)]) return;
    const Place place = of(slot);
    if (place.begin == place.end) return;
    std::vector<Access>& all = accesses[static_cast<size_t>(place.memory)];
    Access access{place, item, slot, writes, !writes, writes};
    for (auto other = all.rbegin(); other != all.rend() && other->item == item; ++other) {
      other->item_writes = other->item_writes || writes;
      access.item_reads = access.item_reads || other->item_reads;
      access.item_writes = access.item_writes || other->item_writes;
    }
    all.push_back(access);
  }

  void check_accesses(std::vector<Access>& all) const {
    std::stable_sort(all.begin(), all.end(),
                     [](const Access& a, const Access& b) { return a.place.begin < b.place.begin; });
    std::vector<const Access*> open;  // those that begin before and end behind where the next one begins
    for (const Access& access : all) {
      checkpoint();
      std::erase_if(open, [&](const Access* other) { return other->place.end <= access.place.begin; });
      for (const Access* other : open) {
        const bool is_first = access.item < other->item;
        const Access &first = is_first ? access : *other, &second = is_first ? *other : access;
        const bool may =
            first.item == second.item || (!first.writes && !second.writes) || (first.item_writes && second.item_reads);
        NEO_CHECK(may, Model, "run", "a step must wait for those whose memory it writes to. Got \"", name_of(second),
                  "\" over \"", name_of(first), "\"");
      }
      open.push_back(&access);
    }
  }

  const std::string& name_of(const Access& access) const { return block_.slots[static_cast<size_t>(access.slot)].name; }

  bool is_placed(size_t i) const {
    while (binding_.sized[i] && block_.slots[i].storage == Slot::Storage::View)
      i = static_cast<size_t>(block_.slots[i].base);
    const Slot::Storage storage = block_.slots[i].storage;
    return binding_.sized[i] || storage == Slot::Storage::Argument || storage == Slot::Storage::Dynamic;
  }
  int64_t elements(size_t i) const { return element_count(block_.slots[i].layout.physical_dims(binding_.dims[i])); }
  // Elements from the first to behind the last.
  int64_t extent(size_t i) const {
    const Slot& slot = block_.slots[i];
    if (slot.strides.empty()) return elements(i);
    const Dims physical = slot.layout.physical_dims(binding_.dims[i]);
    int64_t last = 0;
    for (size_t axis = 0; axis < physical.size(); ++axis) {
      if (physical[axis] == 0) return 0;
      last += (physical[axis] - 1) * slot.strides[axis].evaluate(binding_.symbols);
    }
    return last + 1;
  }

  const Block& block_;
  Binding& binding_;
};

// The buffers `order` of the planned ones. Largest first, each at the lowest offset that no buffer it may not share
// with overlaps.
int64_t place_buffers(const Region& region, std::vector<size_t> order, const std::vector<int64_t>& bytes,
                      std::vector<int64_t>& offset) {
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  struct Taken {
    int64_t begin, end;
    size_t buffer;
  };
  std::vector<Taken> placed;  // by begin
  int64_t total = 0;
  for (size_t i : order) {
    checkpoint();
    int64_t position = 0;
    for (const Taken& other : placed) {
      if (position + bytes[i] <= other.begin) break;
      if (other.end > position && !region.may_share.get(i, other.buffer)) position = other.end;
    }
    NEO_CHECK(position <= kMaxArenaBytes && bytes[i] <= kMaxArenaBytes, Memory, "run",
              "the memory of a call must be at most ", kMaxArenaBytes, " bytes. Got more");
    const Taken taken{position, position + bytes[i], i};
    total = std::max(total, taken.end);
    offset[static_cast<size_t>(region.planned[i])] = position;
    const auto is_before = [](const Taken& a, const Taken& b) { return a.begin < b.begin; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), taken, is_before), taken);
  }
  return total;
}

}  // namespace

std::shared_ptr<const Binding> bind_region(const Block& block, const Region& region, const SymbolValues& symbols,
                                           std::span<const Growth> growths, const Binding* before) {
  auto binding = std::make_shared<Binding>();
  binding->symbols = symbols;
  binding->growths.assign(growths.begin(), growths.end());
  for (const Guard& guard : region.guards) check_guard(guard, symbols);

  const size_t slots = block.slots.size();
  take_memory(static_cast<int64_t>(slots) * kSlotBytes);
  binding->sized.assign(slots, false);
  binding->dims.resize(slots);
  binding->offset.assign(slots, -1);
  binding->view_bytes.assign(slots, 0);
  for (size_t i = 0; i < slots; ++i) {
    const Slot& slot = block.slots[i];
    if (!is_placed(slot, symbols)) continue;
    for (const Dim& d : slot.type.shape.dims()) {
      const int64_t size = d.evaluate(symbols);
      NEO_CHECK(size >= 0, Shape, "run", "a size must not be negative. Got ", d.to_string(), "=", size,
                " in the shape ", slot.type.shape.to_string(), " of \"", slot.name, "\"");
      binding->dims[i].push_back(size);
    }
    element_count(binding->dims[i]);
    binding->sized[i] = true;
    if (slot.storage == Slot::Storage::Argument || slot.storage == Slot::Storage::Dynamic)
      binding->caller_owned.push_back(static_cast<int>(i));
  }
  Places places(block, *binding);
  places.place_views();
  binding->late_bytes = places.late();

  std::vector<int64_t> bytes;
  std::vector<size_t> passing, kept, of_device;
  for (size_t at = 0; at < region.planned.size(); ++at) {
    const auto i = static_cast<size_t>(region.planned[at]);
    const Slot& slot = block.slots[i];
    NEO_ASSERT(binding->sized[i], "the planned buffer \"", slot.name, "\" has no size");
    const bool is_host = !kHasDevices || slot.device == DeviceKind::Cpu;
    (!is_host ? of_device : region.outlives[at] ? kept : passing).push_back(at);
    bytes.push_back(align_up(element_count(slot.layout.physical_dims(binding->dims[i])) * item_bytes(slot.type.dtype),
                             is_host ? kAlignment : kDeviceAlignment));
  }
  binding->passing_bytes = place_buffers(region, std::move(passing), bytes, binding->offset);
  binding->kept_bytes = place_buffers(region, std::move(kept), bytes, binding->offset);
  binding->device_arena_bytes = place_buffers(region, std::move(of_device), bytes, binding->offset);
  // Before the steps make tables of their sizes.
  require_memory(binding->passing_bytes + binding->kept_bytes);

  places.check_order(region);
  const std::vector<bool> unchanged = before ? find_unchanged(block, *binding, *before) : std::vector<bool>(slots);
  const auto is_unchanged = [&](const StepItem& call) {
    const auto is_same = [&](int slot) { return slot < 0 || unchanged[static_cast<size_t>(slot)]; };
    return std::all_of(call.inputs.begin(), call.inputs.end(), is_same) &&
           std::all_of(call.outputs.begin(), call.outputs.end(), is_same);
  };
  for (const Item& item : region.items) {
    checkpoint();
    Prepared prepared;
    const auto* call = std::get_if<StepItem>(&item.what);
    if (call && call->spec) places.check_overlaps(*call);
    const Growth* growth = growth_at(*binding, block, region, binding->prepared.size());
    if (call && call->step->kind() == Step::Kind::Kernel && before && !growth && is_unchanged(*call)) {
      prepared = before->prepared[binding->prepared.size()];
      binding->scratch_bytes = std::max(binding->scratch_bytes, prepared.scratch_bytes);
    } else if (call && call->step->kind() == Step::Kind::Kernel) {
      std::vector<Arg> args;
      for (int slot : call->inputs) args.push_back(describe_slot(block, *binding, slot));
      for (int slot : call->outputs) args.push_back(describe_slot(block, *binding, slot));
      if (growth) leave_past(*growth, args, *binding, region.items.size());
      const auto& step = static_cast<const KernelStep&>(*call->step);
      if (has_nothing_to_write(std::span(args).subspan(call->inputs.size()))) {
        prepared.is_idle = true;
      } else {
        prepared = step.prepare(args);
        if (!item.later.empty()) step.prefetch_later(prepared.bytes.data(), item.later);
      }
      binding->scratch_bytes = std::max(binding->scratch_bytes, prepared.scratch_bytes);
    }
    if (kHasDevices && call && call->step->kind() == Step::Kind::Device) {
      binding->launches.resize(region.items.size());
      StepLaunches& launches = binding->launches[binding->prepared.size()];
      launches = launches_of(block, *binding, *call);
      const int counts = static_cast<const DeviceStep&>(*call->step).counts();
      binding->device_scratch_bytes =
          std::max(binding->device_scratch_bytes, temporary_offsets(launches, counts).back());
    }
    binding->prepared.push_back(std::move(prepared));
  }
  return binding;
}

std::vector<int64_t> temporary_offsets(const StepLaunches& launches, int counts) {
  std::vector<int64_t> offsets;
  int64_t end = align_up(counts * int64_t{4}, kDeviceAlignment);
  for (const int64_t bytes : launches.temporaries) {
    offsets.push_back(end);
    NEO_CHECK(bytes >= 0 && bytes <= kMaxArenaBytes - end, Memory, "run", "the memory of a call must be at most ",
              kMaxArenaBytes, " bytes. Got more");
    end += align_up(bytes, kDeviceAlignment);
  }
  offsets.push_back(end);
  return offsets;
}

Arg describe_slot(const Block& block, const Binding& binding, int index) {
  Arg arg;
  if (index < 0) {
    arg.present = false;
    return arg;
  }
  const auto i = static_cast<size_t>(index);
  const Slot& slot = block.slots[i];
  NEO_ASSERT(binding.sized[i], "a kernel step reads \"", slot.name, "\" whose size is not known");
  arg.dtype = slot.type.dtype;
  arg.layout = slot.layout;
  arg.dims = binding.dims[i];
  if (const Growth* growth = growth_of(block, binding, i)) {
    arg.strides = strides_in_room(*growth, arg.dims, binding.dims[static_cast<size_t>(growth->whole)]);
  } else if (slot.strides.empty()) {
    arg.strides = dense_strides(slot.layout.physical_dims(arg.dims));
  } else {
    for (const Dim& s : slot.strides) arg.strides.push_back(s.evaluate(binding.symbols));
  }
  return arg;
}

bool Arg::is_dense() const {
  const Dims physical = layout.physical_dims(dims);
  const Dims dense = dense_strides(physical);
  for (size_t i = 0; i < physical.size(); ++i) {
    if (physical[i] != 1 && strides[i] != dense[i]) return false;
  }
  return true;
}

std::shared_ptr<const Binding> BindingCache::get(const Block& block, const Region& region, const SymbolValues& symbols,
                                                 const std::vector<Growth>& growths) {
  std::shared_ptr<const Binding> before;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const Entry& e) {
      return e.region == &region && e.binding->symbols == symbols && e.binding->growths == growths;
    };
    // The last sizes come again, or, in a loop whose values grow, those that have waited longest.
    auto it = entries_.begin();
    if (it != entries_.end() && !fits(*it)) {
      const auto back = std::find_if(entries_.rbegin(), entries_.rend(), fits);
      it = back == entries_.rend() ? entries_.end() : std::prev(back.base());
    }
    if (it != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, it);
      return entries_.front().binding;
    }
    const auto last =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.region == &region; });
    if (last != entries_.end()) before = last->binding;
  }
  auto binding = bind_region(block, region, symbols, growths, before.get());
  const std::lock_guard lock(mutex_);
  entries_.push_front({&region, binding});
  size_t slots = 0;
  for (const Entry& e : entries_) slots += e.binding->dims.size();
  // Every region keeps its share: the capacity counts bindings of one region, and is larger while all are small.
  const size_t most = slots > kMaxSlots ? capacity_ : std::max(capacity_, kMaxBindings);
  size_t same = 0;
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->region == &region && ++same > most) {
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  return binding;
}

size_t BindingCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace neo
