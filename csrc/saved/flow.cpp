#include "saved/flow.h"

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

// Equal as far as both say something: what a host step gives may have sizes that only its run tells.
bool agrees(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.key() != b.key()) return false;
  if (!a.is_tensor()) return agrees(*a.element, *b.element);
  if (a.dtype != b.dtype) return false;
  if (!a.shape.has_rank() || !b.shape.has_rank()) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (int i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i].is_constant() && b.shape[i].is_constant() && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

// The elements of a constant slot are there.
void check_constant(const Slot& slot) {
  NEO_CHECK(slot.constant.defined() && is_ranked(slot.type) && slot.type.shape.is_static() &&
                slot.constant.dtype() == slot.type.dtype,
            Model, "load", "a constant slot must hold a tensor of its type. Got ", slot.type.to_string(), " - at \"",
            slot.name, "\"");
  const Dims dims = slot.type.shape.to_dims();
  const bool fits = slot.layout.is_plain() ? slot.constant.dims() == dims
                                           : slot.constant.size() == element_count(slot.layout.physical_dims(dims));
  NEO_CHECK(fits, Model, "load", "a constant must have the sizes of its slot. Got ", to_string(slot.constant.dims()),
            ", expected ", slot.type.to_string(), " - at \"", slot.name, "\"");
}

void check_slot(const Slot& slot) {
  using Storage = Slot::Storage;
  const auto check = [&](bool holds, std::string_view rule) {
    NEO_CHECK(holds, Model, "load", rule, ". Got ", slot.type.to_string(), " as ", slot.layout.to_string(), " - at \"",
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
    NEO_CHECK(slot(a).storage == Storage::Argument, Model, "load", "an argument must have an argument's slot. Got \"",
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
    NEO_CHECK(as_argument[i] == (s.storage == Storage::Argument ? 1 : 0), Model, "load",
              "a slot of an argument must be handed in once. Got ", as_argument[i], " times - at \"", s.name, "\"");
    NEO_CHECK(s.storage != Storage::Result || is_result[i], Model, "load",
              "memory of a result must be handed out. Got a slot that is not - at \"", s.name, "\"");
  }
  // Follows the bases of views; a chain longer than there are slots is a circle.
  for (size_t i = 0; i < block.slots.size(); ++i) {
    std::vector<size_t> chain;
    size_t at = i;
    while (memory_[at] < 0 && block.slots[at].storage == Storage::View) {
      chain.push_back(at);
      NEO_CHECK(chain.size() <= block.slots.size(), Model, "load",
                "a view must be a part of another slot. Got a circle");
      const Slot& base = slot(block.slots[at].base);
      NEO_CHECK(is_ranked(base.type) && base.type.dtype == block.slots[at].type.dtype && !is_string(base.type), Model,
                "load", "a view must have the dtype of its base. Got ", base.type.to_string(), " - at \"",
                block.slots[at].name, "\"");
      NEO_CHECK(base.device == block.slots[at].device, Model, "load", "a view must be where its base is. Got ",
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
  NEO_CHECK(index >= 0 && static_cast<size_t>(index) < block_.slots.size(), Model, "load",
            "a slot must be one of its block. Got ", index, ", expected 0 to ", block_.slots.size(), " less 1");
  return block_.slots[static_cast<size_t>(index)];
}

int BlockFlow::memory_of(int index) const {
  slot(index);
  return memory_[static_cast<size_t>(index)];
}

void BlockFlow::read(int index) const {
  NEO_CHECK(written_[static_cast<size_t>(memory_of(index))], Model, "load",
            "a slot must be written before it is read. Got \"", slot(index).name, "\"");
}

void BlockFlow::read_plain(int index) const {
  read(index);
  NEO_CHECK(slot(index).layout.is_plain() && slot(index).device == DeviceKind::Cpu, Model, "load",
            "a host value must be row-major. Got ", slot(index).layout.to_string(), " on ", name(slot(index).device),
            " - at \"", slot(index).name, "\"");
}

void BlockFlow::write(int index) {
  const auto memory = static_cast<size_t>(memory_of(index));
  const Slot::Storage storage = block_.slots[memory].storage;
  NEO_CHECK(storage == Slot::Storage::Arena || storage == Slot::Storage::Result || storage == Slot::Storage::Dynamic,
            Model, "load", "a step must write to memory of its block. Got \"", slot(index).name, "\"");
  NEO_CHECK(storage != Slot::Storage::Dynamic || slot(index).storage == storage, Model, "load",
            "what a step allocates must be written as a whole. Got \"", slot(index).name, "\"");
  if (storage == Slot::Storage::Arena) {
    size_t& region = region_of_[memory];
    NEO_CHECK(region == kNoRegion || region == region_, Model, "load",
              "planned memory must be written in one region. Got \"", slot(index).name, "\"");
    region = region_;
  }
  written_[memory] = true;
}

void BlockFlow::write_owned(const std::vector<int>& results) {
  for (int r : results) {
    if (r == -1) continue;
    NEO_CHECK(slot(r).storage == Slot::Storage::Dynamic && slot(r).device == DeviceKind::Cpu, Model, "load",
              "a body's result must have a slot of its own. Got \"", slot(r).name, "\"");
    write(r);
  }
}

void BlockFlow::check_source(const SymbolSource& source) const {
  const Slot& s = slot(source.slot);
  const bool exists = s.storage == Slot::Storage::Argument || s.storage == Slot::Storage::Dynamic;
  NEO_CHECK(exists && is_ranked(s.type) && source.axis >= 0 && source.axis < s.type.shape.rank(), Model, "load",
            "a size must be read off an argument or what a step allocated. Got axis ", source.axis, " of \"", s.name,
            "\"");
}

void BlockFlow::check_operand(int index, const SavedStep::Operand& operand, bool is_host, bool is_output) const {
  const Slot& s = slot(index);
  const bool is_open = is_host && is_output && s.storage == Slot::Storage::Dynamic;
  const bool fits = is_open ? agrees(s.type, operand.type) : s.type == operand.type;
  NEO_CHECK(s.device == operand.schema.device, Model, "load", "a slot must be where its step runs. Got ",
            name(s.device), ", expected ", name(operand.schema.device), " - at \"", s.name, "\"");
  NEO_CHECK(fits && s.layout == operand.schema.layout && (!s.type.is_tensor() || s.type.dtype == operand.schema.dtype),
            Model, "load", "a slot must hold what its step takes. Got ", s.type.to_string(), " as ",
            s.layout.to_string(), ", expected ", operand.type.to_string(), " as ", operand.schema.to_string(),
            " - at \"", s.name, "\"");
  NEO_CHECK(is_host || is_ranked(s.type), Model, "load", "a kernel's operand must have a rank. Got ",
            s.type.to_string(), " - at \"", s.name, "\"");
  if (!operand.is_constant) return;
  // The routine may have looked at the elements: those must be what it runs on. Floats decide over no address.
  NEO_CHECK(s.storage == Slot::Storage::Constant, Model, "load",
            "a constant operand must have a constant's slot. Got \"", s.name, "\"");
  if (is_float(s.type.dtype)) return;
  NEO_CHECK(operand.constant, Model, "load", "a constant that is not of floats must be saved with its step. Got \"",
            s.name, "\"");
  const Schema plain = plain_schema(s.type);
  const Tensor expected = operand.schema.on(DeviceKind::Cpu) == plain
                              ? *operand.constant
                              : adapt_constant(*operand.constant, plain, operand.schema);
  NEO_CHECK(identical(expected, s.constant), Model, "load",
            "a constant operand must be the constant that its step was made from. Got another - at \"", s.name, "\"");
}

void BlockFlow::add_step(const SavedStep& step) {
  const StepItem& item = step.item;
  NEO_CHECK(item.inputs.size() == step.reads.size() && item.outputs.size() == step.writes.size(), Model, "load",
            "a step must have a slot for every operand. Got ", item.inputs.size(), " and ", item.outputs.size(),
            ", expected ", step.reads.size(), " and ", step.writes.size());
  const bool is_host = item.step->kind() == Step::Kind::Host;
  // Whether the step allocates its outputs.
  const bool allocates = is_host || step.is_data_dependent;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    read(item.inputs[i]);
    check_operand(item.inputs[i], step.reads[i], is_host, false);
  }
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    check_operand(item.outputs[i], step.writes[i], allocates, true);
    NEO_CHECK(allocates || slot(memory_of(item.outputs[i])).storage != Slot::Storage::Dynamic, Model, "load",
              "a kernel must write to planned memory. Got \"", slot(item.outputs[i]).name, "\"");
    for (size_t j = 0; j < i; ++j) {
      NEO_CHECK(item.outputs[i] != item.outputs[j], Model, "load", "a step must write each output once. Got \"",
                slot(item.outputs[i]).name, "\" twice");
    }
  }
  for (int index : item.outputs) write(index);
}

void BlockFlow::add_dims(const DimsItem& item) {
  const Slot& s = slot(item.output);
  const bool is_memory = s.storage == Slot::Storage::Arena || s.storage == Slot::Storage::Result;
  NEO_CHECK(is_memory && s.device == DeviceKind::Cpu && is_integer(s.type.dtype) && s.layout.is_plain() &&
                s.type.shape.is_static() &&
                element_count(s.type.shape.to_dims()) == static_cast<int64_t>(item.elements.size()),
            Model, "load", "sizes must be written to integers of their number. Got ", item.elements.size(), " for ",
            s.type.to_string(), " - at \"", s.name, "\"");
  write(item.output);
}

void BlockFlow::add_if(const IfItem& item) {
  read_plain(item.predicate);
  NEO_CHECK(slot(item.predicate).type.is_tensor() && slot(item.predicate).type.dtype == DType::Bool, Model, "load",
            "a condition must be bool. Got ", slot(item.predicate).type.to_string());
  for (int a : item.arguments) read_plain(a);
  for (const auto& block : {item.then_block, item.else_block}) {
    NEO_CHECK(block->arguments.size() == item.arguments.size() && block->results.size() == item.results.size(), Model,
              "load", "a branch must take and give what its If hands over. Got ", block->arguments.size(), " and ",
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
    NEO_CHECK(type.is_tensor() && (is_bool ? type.dtype == DType::Bool : is_integer(type.dtype)), Model, "load",
              "the trip count of a loop must be an integer and its condition bool. Got ", type.to_string());
  };
  check_scalar(item.trip_count, false);
  check_scalar(item.condition, true);
  for (const auto* list : {&item.carried, &item.scanned, &item.captured}) {
    for (int index : *list) read_plain(index);
  }
  NEO_CHECK(item.scanned.size() == item.scanned_axes.size(), Model, "load",
            "every scanned input must have an axis. Got ", item.scanned_axes.size(), ", expected ",
            item.scanned.size());
  const size_t arguments = (is_loop ? 2 : 0) + item.carried.size() + item.scanned.size() + item.captured.size();
  const size_t results = item.carried.size() + item.collected_axes.size();
  NEO_CHECK(item.body->arguments.size() == arguments && item.body->results.size() == results + (is_loop ? 1 : 0) &&
                item.results.size() == results,
            Model, "load", "a body must take and give what its loop hands over. Got ", item.body->arguments.size(),
            " and ", item.body->results.size(), ", expected ", arguments, " and ", results + (is_loop ? 1 : 0));
  NEO_CHECK(is_loop || (item.trip_count == -1 && item.condition == -1), Model, "load",
            "a Scan has no trip count and no condition. Got ", item.trip_count, " and ", item.condition);
  write_owned(item.results);
}

void BlockFlow::check_results() const {
  for (int r : block_.results) read_plain(r);
}

}  // namespace neo
