#include "exec/block_flow.h"

#include <algorithm>

#include "base/check.h"

namespace neo {
namespace {

constexpr int64_t kMaxLayoutBlock = 64;
constexpr size_t kNoRegion = static_cast<size_t>(-1);

bool is_string(const Type& type) {
  return type.is_tensor() && type.dtype == DType::String;
}

bool is_ranked(const Type& type) {
  return type.is_tensor() && type.shape.has_rank();
}

// The elements of a constant slot are there.
void check_constant(const Slot& slot) {
  NEO_CHECK(slot.constant.defined() && is_ranked(slot.type) && slot.type.shape.is_static() &&
                slot.constant.dtype() == slot.type.dtype,
            Model, "plan", "a constant slot must hold a tensor of its type. Got ", slot.type.to_string(), " - at \"",
            slot.name, "\"");
  const Dims dims = slot.type.shape.to_dims();
  const bool fits = slot.layout.is_plain() ? slot.constant.dims() == dims
                                           : slot.constant.size() == element_count(slot.layout.physical_dims(dims));
  NEO_CHECK(fits, Model, "plan", "a constant must have the sizes of its slot. Got ", to_string(slot.constant.dims()),
            ", expected ", slot.type.to_string(), " - at \"", slot.name, "\"");
}

void check_slot(const Slot& slot) {
  using Storage = Slot::Storage;
  const auto check = [&](bool holds, std::string_view rule) {
    NEO_CHECK(holds, Model, "plan", rule, ". Got ", slot.type.to_string(), " as ", slot.layout.to_string(), " - at \"",
              slot.name, "\"");
  };
  const int rank = is_ranked(slot.type) ? slot.type.shape.rank() : 0;
  check(slot.layout.rank() == rank, "the layout of a slot must have its rank");
  for (const Layout::Block& b : slot.layout.blocks())
    check(b.size <= kMaxLayoutBlock, "the block of a layout must be at most 64");
  const bool held_by_caller = slot.storage == Storage::Argument || slot.storage == Storage::Dynamic;
  check(held_by_caller || is_ranked(slot.type), "planned memory must be of a tensor of a rank");
  check(held_by_caller || !slot.type.is_tensor() || slot.type.dtype != DType::Undefined, "a slot must have a dtype");
  check(held_by_caller || slot.storage == Storage::Constant || !is_string(slot.type), "strings have no planned memory");
  check(!(held_by_caller || slot.storage == Storage::Result) || slot.layout.is_plain(),
        "what the caller sees must be row-major");
  const bool on_device = slot.device != DeviceKind::Cpu;
  check(!on_device || (slot.storage != Storage::Argument && slot.storage != Storage::Result),
        "what the caller sees must be the host's");
  check(!on_device || (is_ranked(slot.type) && !is_string(slot.type)), "a device holds tensors of a rank");
  if (slot.storage == Storage::Constant) check_constant(slot);
}

}  // namespace

BlockFlow::BlockFlow(const Block& block)
    : block_(block),
      memory_(block.slots.size(), -1),
      written_(block.slots.size(), false),
      region_of_(block.slots.size(), kNoRegion) {
  using Storage = Slot::Storage;
  std::vector<int> as_argument(block.slots.size(), 0);
  std::vector<bool> is_result(block.slots.size(), false);
  for (int a : block.arguments) {
    NEO_CHECK(slot(a).storage == Storage::Argument, Model, "plan", "an argument must have an argument's slot. Got \"",
              slot(a).name, "\"");
    ++as_argument[static_cast<size_t>(a)];
  }
  for (int r : block.results) {
    slot(r);
    is_result[static_cast<size_t>(r)] = true;
  }
  for (size_t i = 0; i < block.slots.size(); ++i) {
    const Slot& s = block.slots[i];
    check_slot(s);
    NEO_CHECK(as_argument[i] == (s.storage == Storage::Argument ? 1 : 0), Model, "plan",
              "a slot of an argument must be given once. Got ", as_argument[i], " times - at \"", s.name, "\"");
    NEO_CHECK(s.storage != Storage::Result || is_result[i], Model, "plan",
              "memory of a result must be handed out. Got a slot that is not - at \"", s.name, "\"");
  }
  // Follows the bases of views; a chain longer than there are slots is a circle.
  for (size_t i = 0; i < block.slots.size(); ++i) {
    std::vector<size_t> chain;
    size_t at = i;
    while (memory_[at] < 0 && block.slots[at].storage == Storage::View) {
      chain.push_back(at);
      NEO_CHECK(chain.size() <= block.slots.size(), Model, "plan",
                "a view must be a part of another slot. Got a circle");
      const Slot& base = slot(block.slots[at].base);
      NEO_CHECK(is_ranked(base.type) && base.type.dtype == block.slots[at].type.dtype && !is_string(base.type), Model,
                "plan", "a view must have the dtype of its base. Got ", base.type.to_string(), " - at \"",
                block.slots[at].name, "\"");
      NEO_CHECK(base.device == block.slots[at].device, Model, "plan", "a view must be where its base is. Got ",
                name(base.device), " - at \"", block.slots[at].name, "\"");
      at = static_cast<size_t>(block.slots[at].base);
    }
    const int memory = memory_[at] < 0 ? static_cast<int>(at) : memory_[at];
    memory_[at] = memory;
    for (size_t link : chain) memory_[link] = memory;
    if (block.slots[at].storage == Storage::Argument || block.slots[at].storage == Storage::Constant)
      written_[at] = true;
  }
}

const Slot& BlockFlow::slot(int index) const {
  NEO_CHECK(index >= 0 && static_cast<size_t>(index) < block_.slots.size(), Model, "plan",
            "a slot must be one of its block. Got ", index, ", expected 0 to ", block_.slots.size(), " less 1");
  return block_.slots[static_cast<size_t>(index)];
}

int BlockFlow::memory_of(int index) const {
  slot(index);
  return memory_[static_cast<size_t>(index)];
}

void BlockFlow::read(int index) const {
  NEO_CHECK(written_[static_cast<size_t>(memory_of(index))], Model, "plan",
            "a slot must be written before it is read. Got \"", slot(index).name, "\"");
}

void BlockFlow::read_plain(int index) const {
  read(index);
  NEO_CHECK(slot(index).layout.is_plain() && slot(index).device == DeviceKind::Cpu, Model, "plan",
            "a host value must be row-major. Got ", slot(index).layout.to_string(), " on ", name(slot(index).device),
            " - at \"", slot(index).name, "\"");
}

void BlockFlow::write(int index) {
  const auto memory = static_cast<size_t>(memory_of(index));
  const Slot::Storage storage = block_.slots[memory].storage;
  NEO_CHECK(storage == Slot::Storage::Arena || storage == Slot::Storage::Result || storage == Slot::Storage::Dynamic,
            Model, "plan", "a step must write to memory of its block. Got \"", slot(index).name, "\"");
  NEO_CHECK(storage != Slot::Storage::Dynamic || slot(index).storage == storage, Model, "plan",
            "what a step allocates must be written as a whole. Got \"", slot(index).name, "\"");
  if (storage == Slot::Storage::Arena) {
    size_t& region = region_of_[memory];
    NEO_CHECK(region == kNoRegion || region == region_, Model, "plan",
              "planned memory must be written in one region. Got \"", slot(index).name, "\"");
    region = region_;
  }
  written_[memory] = true;
}

void BlockFlow::write_owned(const std::vector<int>& results) {
  for (int r : results) {
    if (r == -1) continue;
    NEO_CHECK(slot(r).storage == Slot::Storage::Dynamic && slot(r).device == DeviceKind::Cpu, Model, "plan",
              "a body's result must have a slot of its own. Got \"", slot(r).name, "\"");
    write(r);
  }
}

void BlockFlow::check_source(const SymbolSource& source) const {
  const Slot& s = slot(source.slot);
  const bool exists = s.storage == Slot::Storage::Argument || s.storage == Slot::Storage::Dynamic;
  NEO_CHECK(exists && is_ranked(s.type) && source.axis >= 0 && source.axis < s.type.shape.rank(), Model, "plan",
            "a size must be read off an argument or what a step allocated. Got axis ", source.axis, " of \"", s.name,
            "\"");
  read(source.slot);
}

void BlockFlow::add(const Item& item) {
  if (const auto* step = std::get_if<StepItem>(&item.what)) {
    add_step(*step);
  } else if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
    add_dims(*dims);
  } else if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    add_if(*branch);
  } else {
    add_loop(std::get<LoopItem>(item.what));
  }
}

void BlockFlow::add_step(const StepItem& item) {
  for (const int index : item.inputs) {
    if (index != -1) read(index);
  }
  const bool is_planned = item.step->kind() == Step::Kind::Kernel || item.step->kind() == Step::Kind::Copy;
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    const int output = item.outputs[i];
    if (output == -1) continue;
    NEO_CHECK(!is_planned || slot(memory_of(output)).storage != Slot::Storage::Dynamic, Model, "plan",
              "a kernel must write to planned memory. Got \"", slot(output).name, "\"");
    NEO_CHECK(std::count(item.outputs.begin(), item.outputs.end(), output) == 1, Model, "plan",
              "a step must write each output once. Got \"", slot(output).name, "\" twice");
  }
  for (const int index : item.outputs) {
    if (index != -1) write(index);
  }
}

void BlockFlow::add_dims(const DimsItem& item) {
  const Slot& s = slot(item.output);
  const bool is_memory = s.storage == Slot::Storage::Arena || s.storage == Slot::Storage::Result;
  NEO_CHECK(is_memory && s.device == DeviceKind::Cpu && is_integer(s.type.dtype) && s.layout.is_plain() &&
                s.type.shape.is_static() &&
                element_count(s.type.shape.to_dims()) == static_cast<int64_t>(item.elements.size()),
            Model, "plan", "sizes must be written to integers of their number. Got ", item.elements.size(), " for ",
            s.type.to_string(), " - at \"", s.name, "\"");
  write(item.output);
}

void BlockFlow::add_if(const IfItem& item) {
  read_plain(item.predicate);
  NEO_CHECK(slot(item.predicate).type.is_tensor() && slot(item.predicate).type.dtype == DType::Bool, Model, "plan",
            "a condition must be bool. Got ", slot(item.predicate).type.to_string());
  for (int a : item.arguments) read_plain(a);
  for (const auto& block : {item.then_block, item.else_block}) {
    NEO_CHECK(block->arguments.size() == item.arguments.size() && block->results.size() == item.results.size(), Model,
              "plan", "a branch must take and give what its If hands over. Got ", block->arguments.size(), " and ",
              block->results.size(), ", expected ", item.arguments.size(), " and ", item.results.size());
  }
  write_owned(item.results);
}

void BlockFlow::add_loop(const LoopItem& item) {
  const bool is_loop = item.kind == LoopItem::Kind::Loop;
  const auto check_scalar = [&](int index, bool is_bool) {
    if (index == -1) return;
    read_plain(index);
    const Type& type = slot(index).type;
    NEO_CHECK(type.is_tensor() && (is_bool ? type.dtype == DType::Bool : is_integer(type.dtype)), Model, "plan",
              "the trip count of a loop must be an integer and its condition bool. Got ", type.to_string());
  };
  check_scalar(item.trip_count, false);
  check_scalar(item.condition, true);
  for (const auto* list : {&item.carried, &item.scanned, &item.captured}) {
    for (int index : *list) read_plain(index);
  }
  NEO_CHECK(item.scanned.size() == item.scanned_axes.size(), Model, "plan",
            "every scanned input must have an axis. Got ", item.scanned_axes.size(), ", expected ",
            item.scanned.size());
  const size_t arguments = (is_loop ? 2 : 0) + item.carried.size() + item.scanned.size() + item.captured.size();
  const size_t results = item.carried.size() + item.collected_axes.size();
  NEO_CHECK(item.body->arguments.size() == arguments && item.body->results.size() == results + (is_loop ? 1 : 0) &&
                item.results.size() == results,
            Model, "plan", "a body must take and give what its loop hands over. Got ", item.body->arguments.size(),
            " and ", item.body->results.size(), ", expected ", arguments, " and ", results + (is_loop ? 1 : 0));
  NEO_CHECK(is_loop || (item.trip_count == -1 && item.condition == -1), Model, "plan",
            "a Scan has no trip count and no condition. Got ", item.trip_count, " and ", item.condition);
  write_owned(item.results);
}

void BlockFlow::check_results() const {
  for (int r : block_.results) read_plain(r);
}

}  // namespace neo
