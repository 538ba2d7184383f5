#include "exec/growth.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "exec/dependencies.h"
#include "exec/strided_step.h"

namespace neo {
namespace {

bool is_plain_host_tensor(const Slot& slot) {
  return slot.device == DeviceKind::Cpu && slot.type.is_tensor() && slot.type.dtype != DType::String &&
         slot.type.shape.has_rank() && slot.layout.is_plain() && slot.strides.empty();
}

// The one axis of the two whose sizes differ; -1: there is none, or several.
int grown_axis(const Shape& past, const Shape& whole) {
  if (past.rank() != whole.rank()) return -1;
  int found = -1;
  for (int axis = 0; axis < past.rank(); ++axis) {
    if (past[axis] == whole[axis]) continue;
    if (found >= 0) return -1;
    found = axis;
  }
  return found;
}

// The axis of `view` that is the `axis`-th one of `whole`, where both have the same elements before it and behind it;
// -1: there is none.
template <class Size>
int same_axis(const std::vector<Size>& view, const std::vector<Size>& whole, int axis) {
  Size outer = 1, inner = 1;
  for (int i = 0; i < static_cast<int>(whole.size()); ++i) {
    if (i < axis) outer = outer * whole[static_cast<size_t>(i)];
    if (i > axis) inner = inner * whole[static_cast<size_t>(i)];
  }
  Size before = 1;
  for (size_t i = 0; i < view.size(); ++i) {
    Size behind = 1;
    for (size_t j = i + 1; j < view.size(); ++j) behind = behind * view[j];
    if (before == outer && view[i] == whole[static_cast<size_t>(axis)] && behind == inner) return static_cast<int>(i);
    before = before * view[i];
  }
  return -1;
}

class GrowthFinder {
 public:
  explicit GrowthFinder(const Block& block)
      : block_(block), memories_(memories_of(block)), readers_(block.slots.size()), writers_(block.slots.size()) {
    for (size_t r = 0; r < block.regions.size(); ++r) {
      const auto& items = block.regions[r].items;
      for (size_t i = 0; i < items.size(); ++i) {
        const Uses uses = uses_of(items[i]);
        for (const int slot : uses.reads) readers_[memory_of(slot)].push_back({r, i, slot});
        for (const int slot : uses.writes) writers_[memory_of(slot)].push_back({r, i, slot});
      }
    }
  }

  std::optional<Growth> find(size_t carried, int past, int result) const {
    Growth growth;
    growth.carried = carried;
    growth.past = past;
    growth.result = result;
    const int whole = growth.whole = find_gathered(growth);
    if (slot(past).storage != Slot::Storage::Argument || slot(result).storage != Slot::Storage::Result) return {};
    if (!is_plain_host_tensor(slot(past)) || !is_plain_host_tensor(slot(whole))) return {};
    growth.axis = grown_axis(slot(past).type.shape, slot(whole).type.shape);
    if (growth.axis < 0 || slot(past).type.dtype != slot(whole).type.dtype || !is_one_result(growth)) return {};
    const auto& shape = slot(whole).type.shape.dims();
    growth.is_contiguous =
        std::all_of(shape.begin(), shape.begin() + growth.axis, [](const Dim& d) { return d.is(1); });
    // The step that appends is the only one to read the past.
    const auto& readers = readers_[static_cast<size_t>(past)];
    if (readers.size() != 1 || readers.front().slot != past || !writers_[static_cast<size_t>(past)].empty()) return {};
    growth.region = readers.front().region;
    growth.append = readers.front().item;
    const auto* call = step_of(readers.front());
    if (!call || call->step->kind() != Step::Kind::Kernel || call->outputs.size() != 1) return {};
    if (growth.gathered_axis >= 0 && (growth.is_contiguous || growth.gathered_axis >= growth.axis)) return {};
    if (growth.is_contiguous && copies_past(growth, *call)) return growth;
    if (!appends(growth, *call)) return {};
    return growth;
  }

 private:
  struct Use {
    size_t region, item;
    int slot;
  };

  const Slot& slot(int index) const { return block_.slots[static_cast<size_t>(index)]; }
  size_t memory_of(int index) const { return static_cast<size_t>(memories_[static_cast<size_t>(index)]); }
  const StepItem* step_of(const Use& use) const {
    return std::get_if<StepItem>(&block_.regions[use.region].items[use.item].what);
  }

  // The tensor whose parts the result is, and the step that gathers them; the result itself where there is none.
  int find_gathered(Growth& growth) const {
    const auto& writers = writers_[static_cast<size_t>(growth.result)];
    const auto* call = writers.size() == 1 ? step_of(writers.front()) : nullptr;
    const auto* step = call ? dynamic_cast<const GatherStep*>(call->step.get()) : nullptr;
    const auto axis = step ? step->gathered_axis() : std::nullopt;
    if (!axis || call->inputs.size() != 2 || call->inputs[0] < 0 || call->inputs[1] < 0) return growth.result;
    const Slot &from = slot(call->inputs[0]), &indices = slot(call->inputs[1]), &to = slot(growth.result);
    if (from.storage != Slot::Storage::Arena || !is_plain_host_tensor(from) || !is_plain_host_tensor(to) ||
        !is_plain_host_tensor(indices) || indices.type.shape.rank() != 1)
      return growth.result;
    const int64_t rank = from.type.shape.rank(), at = *axis < 0 ? *axis + rank : *axis;
    if (at < 0 || at >= rank) return growth.result;
    growth.gathered_axis = static_cast<int>(at);
    growth.gather_region = writers.front().region;
    growth.gather = writers.front().item;
    return call->inputs[0];
  }

  // No other result lies in the same memory, and nobody reads what is gathered.
  bool is_one_result(const Growth& growth) const {
    const auto in = [&](int memory) {
      return std::count_if(block_.results.begin(), block_.results.end(),
                           [&](int result) { return memory_of(result) == static_cast<size_t>(memory); });
    };
    if (growth.gathered_axis >= 0 && (in(growth.whole) > 0 || !readers_[memory_of(growth.result)].empty()))
      return false;
    return in(growth.past) == 0 && in(growth.result) == 1;
  }

  // A Concat whose parts are written where they belong: of the past that is a copy.
  bool copies_past(const Growth& growth, const StepItem& call) const {
    const Slot& to = slot(call.outputs.front());
    return call.spec && call.spec->routine.empty() && call.inputs.size() == 1 && to.storage == Slot::Storage::View &&
           to.base == growth.whole && to.offset.is(0) && is_plain_host_tensor(to) &&
           to.type.shape == slot(growth.past).type.shape;
  }

  // A Concat by one step, whose result others read as it lies.
  bool appends(const Growth& growth, const StepItem& call) const {
    const auto* step = dynamic_cast<const StridedStep*>(call.step.get());
    if (!step || step->append_axis() != growth.axis || call.inputs.front() != growth.past ||
        call.outputs.front() != growth.whole || writers_[static_cast<size_t>(growth.whole)].size() != 1)
      return false;
    Dim length = 0;
    for (const int input : call.inputs) {
      if (input < 0 || !slot(input).type.shape.has_rank()) return false;
      length = length + slot(input).type.shape[growth.axis];
    }
    if (length != slot(growth.whole).type.shape[growth.axis]) return false;
    const auto& readers = readers_[static_cast<size_t>(growth.whole)];
    return growth.is_contiguous ||
           std::all_of(readers.begin(), readers.end(), [&](const Use& use) { return reads_strides(growth, use); });
  }

  bool reads_strides(const Growth& growth, const Use& use) const {
    if (growth.gathered_axis >= 0 && use.region == growth.gather_region && use.item == growth.gather) return true;
    const auto* call = step_of(use);
    const auto* step = call ? dynamic_cast<const StridedStep*>(call->step.get()) : nullptr;
    if (!step || !is_view_of_all(use.slot, growth)) return false;
    for (size_t i = 0; i < call->inputs.size(); ++i) {
      if (call->inputs[i] == use.slot && !step->reads_strides(static_cast<int>(i))) return false;
    }
    return true;
  }

  // The axes before the growing one, and those behind it, may have any shape.
  bool is_view_of_all(int index, const Growth& growth) const {
    const auto& whole = slot(growth.whole).type.shape.dims();
    for (; index != growth.whole; index = slot(index).base) {
      if (!is_plain_host_tensor(slot(index)) || slot(index).storage != Slot::Storage::View ||
          !slot(index).offset.is(0) || same_axis(slot(index).type.shape.dims(), whole, growth.axis) < 0)
        return false;
    }
    return true;
  }

  const Block& block_;
  std::vector<int> memories_;
  std::vector<std::vector<Use>> readers_, writers_;  // by memory
};

}  // namespace

std::vector<Growth> find_growths(const LoopItem& loop) {
  const Block& body = *loop.body;
  const bool is_scan = loop.kind == LoopItem::Kind::Scan;
  const size_t first_argument = is_scan ? 0 : 2, first_result = is_scan ? 0 : 1;
  const GrowthFinder finder(body);
  std::vector<Growth> growths;
  for (size_t c = 0; c < loop.carried.size(); ++c) {
    const auto growth = finder.find(c, body.arguments[first_argument + c], body.results[first_result + c]);
    if (growth) growths.push_back(*growth);
  }
  return growths;
}

Dims strides_in_room(const Growth& growth, const Dims& dims, const Dims& whole) {
  Dims room = dims;
  const int axis = same_axis(dims, whole, growth.axis);
  NEO_ASSERT(axis >= 0, "a view of what grows has its axis");
  room[static_cast<size_t>(axis)] = growth.room;
  return dense_strides(room);
}

}  // namespace neo
