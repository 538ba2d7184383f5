#include "runtime/device_frame.h"

#include <algorithm>

#include "base/check.h"
#include "exec/launches.h"

namespace neo {
namespace {

const StepItem* device_step_of(const Item& item) {
  const auto* call = std::get_if<StepItem>(&item.what);
  if (!call || call->step->kind() != Step::Kind::Device) return nullptr;
  return static_cast<const DeviceStep&>(*call->step).counts() == 0 ? call : nullptr;
}

}  // namespace

DeviceFrame::DeviceFrame(const Block& block, DeviceRun& run)
    : block_(block),
      run_(run),
      arenas_(block.regions.size()),
      bound_(block.regions.size()),
      ready_(block.regions.size()),
      sequences_(block.regions.size()),
      places_(block.slots.size()) {
  for (size_t i = 0; i < block.slots.size(); ++i) {
    const Slot& slot = block.slots[i];
    if (slot.storage == Slot::Storage::Constant && slot.device != DeviceKind::Cpu)
      places_[i] = {run.plan().constant(slot.constant), 0};
  }
  for (size_t r = 0; r < block.regions.size(); ++r) {
    const auto& items = block.regions[r].items;
    for (size_t first = 0, end = 0; first < items.size(); first = end + 1) {
      for (end = first; end < items.size() && device_step_of(items[end]);) ++end;
      if (end > first) sequences_[r].push_back({first, end - first, -1, nullptr});
    }
  }
}

DeviceFrame::~DeviceFrame() {
  try {
    run_.queue().finish();
  } catch (const Error&) {
    // The call that failed has said so.
  }
}

void DeviceFrame::enter_region(size_t index, const std::shared_ptr<const Binding>& binding) {
  region_ = index;
  binding_ = binding.get();
  run_.reserve_scratch(binding->device_scratch_bytes);
  auto& arena = arenas_[index];
  if (arena && arena->bytes() < binding->device_arena_bytes) run_.queue().finish();
  // An empty value has a place, too.
  const auto& planned_slots = block_.regions[index].planned;
  const bool holds = std::any_of(planned_slots.begin(), planned_slots.end(), [&](int planned) {
    return block_.slots[static_cast<size_t>(planned)].device != DeviceKind::Cpu;
  });
  const bool moved = holds && grow(arena, binding->device_arena_bytes, run_.plan().device());
  if (!moved && bound_[index] == binding) return;
  bound_[index] = binding;
  ++generation_;
  ready_[index].resize(binding->launches.size());
  for (int planned : planned_slots) {
    const auto slot = static_cast<size_t>(planned);
    if (block_.slots[slot].device != DeviceKind::Cpu) places_[slot] = {arena.get(), binding->offset[slot]};
  }
}

BufferArgument DeviceFrame::place_of(size_t slot) const {
  const size_t whole = slot;
  int64_t bytes = 0;
  while (block_.slots[slot].storage == Slot::Storage::View) {
    bytes += binding_->view_bytes[slot];
    slot = static_cast<size_t>(block_.slots[slot].base);
  }
  BufferArgument place = places_[slot];
  NEO_ASSERT(place.buffer, "\"", block_.slots[slot].name, "\" has no memory on the device");
  place.offset += bytes;
  if (binding_->sized[whole]) {
    const Slot& s = block_.slots[whole];
    const int64_t end =
        place.offset + element_count(s.layout.physical_dims(binding_->dims[whole])) * item_bytes(s.type.dtype);
    NEO_CHECK(end <= place.buffer->bytes(), Shape, "run", "a part must lie in its whole. Got ", end, " bytes of ",
              place.buffer->bytes(), " - at \"", s.name, "\"");
  }
  return place;
}

void DeviceFrame::run(const StepItem& call, size_t item) {
  const auto& step = static_cast<const DeviceStep&>(*call.step);
  const StepLaunches& launches = binding_->launches[item];
  if (step.counts() > 0) return run_counted(call, step, launches);
  Ready& ready = ready_[region_][item];
  if (ready.generation != generation()) {
    ready.launches = resolve(call, launches);
    ready.generation = generation();
  }
  launch(ready.launches);
}

size_t DeviceFrame::run_together(size_t item) {
  auto& sequences = sequences_[region_];
  const auto found = std::lower_bound(sequences.begin(), sequences.end(), item,
                                      [](const Sequence& sequence, size_t at) { return sequence.first < at; });
  if (found == sequences.end() || found->first != item) return 0;
  Sequence& sequence = *found;
  if (sequence.generation != generation()) {
    std::vector<Launch> launches;
    for (size_t i = item; i < item + sequence.count; ++i) {
      const Ready& ready = ready_[region_][i];
      if (ready.generation != generation()) return 0;
      launches.insert(launches.end(), ready.launches.begin(), ready.launches.end());
    }
    if (sequence.launches) run_.queue().finish();  // it may still run
    sequence.launches = run_.queue().prepare(std::move(launches));
    sequence.generation = generation();
  }
  run_.queue().launch(*sequence.launches);
  return sequence.count;
}

void DeviceFrame::run_counted(const StepItem& call, const DeviceStep& step, const StepLaunches& count) {
  launch(resolve(call, count));
  std::vector<int32_t> counts(static_cast<size_t>(step.counts()));
  run_.queue().read(*run_.scratch(), 0, std::as_writable_bytes(std::span(counts)));
  std::vector<Arg> args;
  for (int slot : call.inputs) args.push_back(describe_slot(block_, *binding_, slot));
  const std::vector<Dims> sizes = step.sizes(args, counts);
  NEO_ASSERT(sizes.size() == call.outputs.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto slot = static_cast<size_t>(call.outputs[i]);
    const Slot& s = block_.slots[slot];
    args.push_back({s.type.dtype, s.layout, sizes[i], dense_strides(s.layout.physical_dims(sizes[i])), true});
    if (s.storage != Slot::Storage::Dynamic) continue;
    Owned& owned = owned_[slot];
    const int64_t bytes = element_count(s.layout.physical_dims(sizes[i])) * item_bytes(s.type.dtype);
    if (grow(owned.buffer, bytes, run_.plan().device())) ++generation_;
    owned.dims = sizes[i];
    places_[slot] = {owned.buffer.get(), 0};
  }
  const StepLaunches launches = step.launches(args);
  NEO_ASSERT(launches.temporaries == count.temporaries, "a counting program has the same temporaries in both parts");
  launch(resolve(call, launches));
}

std::vector<Launch> DeviceFrame::resolve(const StepItem& call, const StepLaunches& launches) const {
  const auto& step = static_cast<const DeviceStep&>(*call.step);
  const auto argument = [&](size_t i) {
    const int slot = i < call.inputs.size() ? call.inputs[i] : call.outputs[i - call.inputs.size()];
    return place_of(static_cast<size_t>(slot));
  };
  return resolve_launches(step, launches, run_.plan().kernels(step), argument, run_.scratch());
}

void DeviceFrame::launch(const std::vector<Launch>& launches) const {
  for (const Launch& l : launches) run_.queue().launch(l);
}

void DeviceFrame::write(size_t slot, std::span<const std::byte> from) {
  const BufferArgument place = place_of(slot);
  run_.queue().write(const_cast<DeviceBuffer&>(*place.buffer), place.offset, from);
}

void DeviceFrame::read(size_t slot, std::span<std::byte> to) const {
  const BufferArgument place = place_of(slot);
  run_.queue().read(*place.buffer, place.offset, to);
}

Tensor DeviceFrame::read(size_t slot) const {
  const Slot& s = block_.slots[slot];
  const Dims dims = s.storage == Slot::Storage::Dynamic ? owned_.at(slot).dims : binding_->dims[slot];
  Tensor physical(s.type.dtype, s.layout.physical_dims(dims));
  read(slot, {static_cast<std::byte*>(physical.data()), static_cast<size_t>(physical.bytes())});
  return Tensor(s.type.dtype, dims, physical.data(), physical.owner());
}

const Dims& DeviceFrame::dims_of(size_t slot) const {
  return owned_.at(slot).dims;
}

}  // namespace neo
