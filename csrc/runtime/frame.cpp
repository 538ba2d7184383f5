#include "runtime/frame.h"

#include <algorithm>

#include "base/check.h"

namespace neo {
namespace {

constexpr std::byte kGone{0xff};  // not a number in any floating-point dtype

// Sets a symbol's value from its source; a known value must agree with it.
void bind_symbol(SymbolValues& symbols, const SymbolSource& source, int64_t size, const std::string& slot) {
  const auto place = [&] {
    return source.symbol.formula ? str("the formula of ", source.symbol.name)
                                 : str("axis ", source.axis, " of \"", slot, "\"");
  };
  const std::string& name = source.symbol.name;
  const Range range = source.symbol.range;
  NEO_CHECK(range.lo <= size && size <= range.hi, Shape, "run", "a size must lie in its range. Got ", name, "=", size,
            ", expected ", range.lo, " to ", range.hi, " - at ", place());
  auto [it, fresh] = symbols.emplace(name, size);
  NEO_CHECK(fresh || it->second == size, Shape, "run", "one size has one value. Got ", name, "=", it->second,
            " before and ", name, "=", size, " at ", place());
}

// Sizes that are numbers must be met; symbols take theirs from the tensor.
void check_dims(const Slot& slot, const Dims& dims) {
  if (!slot.type.is_tensor() || !slot.type.shape.has_rank()) return;
  const auto& expected = slot.type.shape.dims();
  bool fits = expected.size() == dims.size();
  for (size_t a = 0; fits && a < expected.size(); ++a)
    fits = !expected[a].is_constant() || expected[a].value() == dims[a];
  NEO_CHECK(fits, Shape, "run", "a value must have the shape that its readers need. Got ", to_string(dims),
            ", expected ", slot.type.shape.to_string(), " - at \"", slot.name, "\"");
}

// A plan trusts kinds and dtypes: those of tensors are as declared.
void check_kind(const Slot& slot, const HostValue& value) {
  if (!slot.type.is_tensor()) return;
  const bool fits = value.kind == HostValue::Kind::Tensor &&
                    (slot.type.dtype == DType::Undefined || value.tensor.dtype() == slot.type.dtype);
  NEO_CHECK(fits, Type, "run", "a value must have the type that its readers need. Got ",
            value.kind == HostValue::Kind::Tensor ? name(value.tensor.dtype()) : "no tensor", ", expected ",
            slot.type.to_string(), " - at \"", slot.name, "\"");
}

// It trusts sizes as well, once they are known.
void check_bound(const Slot& slot, const Dims& dims, const Dims& bound) {
  NEO_CHECK(dims == bound, Shape, "run", "a value must have the shape that its readers need. Got ", to_string(dims),
            ", expected ", slot.type.shape.to_string(), "=", to_string(bound), " - at \"", slot.name, "\"");
}

}  // namespace

Frame::Frame(const Block& block, RunState& run)
    : block_(block),
      run_(run),
      data_(block.slots.size(), nullptr),
      host_(block.slots.size()),
      bound_(block.regions.size()),
      spare_(block.results.size()) {
  for (const Region& region : block.regions) {
    if (region.place >= static_cast<int>(kept_.size())) kept_.resize(static_cast<size_t>(region.place) + 1);
  }
  take_memory(static_cast<int64_t>(block.slots.size() * (sizeof(HostValue) + sizeof(std::byte*))));
  for (size_t i = 0; i < block.slots.size(); ++i) {
    const Slot& slot = block.slots[i];
    if (kHasDevices && slot.device != DeviceKind::Cpu && !device_) {
      NEO_ASSERT(run.device, "a plan with slots on a device needs one");
      device_ = std::make_shared<DeviceFrame>(block, *run.device);
    }
    if (slot.storage == Slot::Storage::Constant) data_[i] = static_cast<std::byte*>(slot.constant.data());
  }
}

int64_t Frame::arena_bytes() const {
  int64_t total = passing_.capacity_bytes() + growing_.bytes();
  for (const Arena& a : kept_) total += a.capacity_bytes();
  return total;
}

Tensor Frame::result_memory(size_t result, DType dtype, const Dims& dims) {
  if (&block_ == run_.outermost && result < run_.outputs.size()) {
    const Tensor& given = run_.outputs[result];
    if (given.defined() && given.dtype() == dtype && given.dims() == dims) return given;
  }
  if (dtype == DType::String) return Tensor(dtype, dims);
  constexpr size_t kKept = 2;
  auto& spare = spare_[result];
  const int64_t bytes = element_count(dims) * item_bytes(dtype);
  // A caller's result takes no more memory than it needs; that of a loop's body may be longer the next time.
  const bool is_body = &block_ != run_.root;
  int64_t capacity = bytes;
  for (const Tensor& t : spare) {
    if (is_body && t.bytes() < bytes) capacity = std::max(capacity, t.bytes() + t.bytes() / 2);
    if (t.owner().use_count() == 1 && (is_body ? t.bytes() >= bytes : t.bytes() == bytes))
      return Tensor(dtype, dims, t.data(), t.owner());
  }
  if (spare.size() >= kKept) spare.erase(spare.begin());
  spare.emplace_back(DType::UInt8, Dims{std::max<int64_t>(capacity, 1)});
  return Tensor(dtype, dims, spare.back().data(), spare.back().owner());
}

void Frame::take_arguments(std::span<const HostValue> arguments, const SymbolValues& outer) {
  NEO_ASSERT(arguments.size() == block_.arguments.size());
  symbols_ = outer;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto slot = static_cast<size_t>(block_.arguments[i]);
    check_kind(block_.slots[slot], arguments[i]);
    host_[slot] = arguments[i];
    data_[slot] = nullptr;
    if (arguments[i].kind != HostValue::Kind::Tensor) continue;
    check_dims(block_.slots[slot], arguments[i].tensor.dims());
    data_[slot] = static_cast<std::byte*>(arguments[i].tensor.data());
  }
}

std::vector<HostValue> Frame::take_results() {
  std::vector<HostValue> results;
  results.reserve(block_.results.size());
  for (size_t i = 0; i < block_.results.size(); ++i) {
    const int slot = block_.results[i];
    const auto rest = block_.results.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    // Values of many parts are handed out rather than copied.
    HostValue& held = host_[static_cast<size_t>(slot)];
    const bool is_last = !held.items.empty() && std::find(rest, block_.results.end(), slot) == block_.results.end();
    HostValue value = is_last ? std::move(held) : read(slot);
    if (value.kind == HostValue::Kind::Tensor && !value.tensor.owner()) value.tensor = copy_tensor(value.tensor);
    results.push_back(std::move(value));
  }
  clear();
  return results;
}

void Frame::release(std::span<const int> slots) {
  for (const int slot : slots) host_[static_cast<size_t>(slot)] = {};
}

void Frame::clear() {
  for (HostValue& v : host_) v = {};
}

void Frame::enter_region(size_t index) {
  const Region& region = block_.regions[index];
  for (const SymbolSource& source : region.sources) {
    if (source.symbol.formula) {
      bind_symbol(symbols_, source, source.symbol.formula->evaluate(symbols_), {});
      continue;
    }
    const auto slot = static_cast<size_t>(source.slot);
    const Slot& from = block_.slots[slot];
    const Dims& dims = dims_of(slot);
    NEO_CHECK(static_cast<int>(dims.size()) == from.type.shape.rank(), Shape, "run", "rank must be as declared. Got ",
              to_string(dims), ", expected ", from.type.shape.to_string(), " - at \"", from.name, "\"");
    bind_symbol(symbols_, source, dims[static_cast<size_t>(source.axis)], from.name);
  }
  growing_.measure(block_, index, host_, symbols_);
  auto& bound = bound_[index];
  if (!bound || bound->symbols != symbols_ || bound->growths != growing_.growths())
    bound = run_.bindings->get(block_, region, symbols_, growing_.growths());
  binding_ = bound.get();
  region_ = index;
  for (int caller_owned : binding_->caller_owned) {
    const auto slot = static_cast<size_t>(caller_owned);
    if (host_[slot].kind == HostValue::Kind::Tensor)
      check_bound(block_.slots[slot], host_[slot].tensor.dims(), binding_->dims[slot]);
  }

  passing_.reserve(binding_->passing_bytes);
  std::byte* passing = passing_.data();
  std::byte* kept = nullptr;
  if (region.place >= 0) {
    Arena& arena = kept_[static_cast<size_t>(region.place)];
    arena.reserve(binding_->kept_bytes);
    kept = arena.data();
  }
  if (run_.shuffle) {
    std::fill_n(passing, passing_.capacity_bytes(), kGone);
    if (kept != nullptr) std::fill_n(kept, binding_->kept_bytes, kGone);
  }
  for (size_t i = 0; i < region.planned.size(); ++i) {
    const auto slot = static_cast<size_t>(region.planned[i]);
    data_[slot] = (region.outlives[i] ? kept : passing) + binding_->offset[slot];
  }
  place_growths();
  if (kHasDevices && device_) device_->enter_region(index, bound);
  for (size_t r = 0; r < block_.results.size(); ++r) {
    const auto slot = static_cast<size_t>(block_.results[r]);
    const Slot& s = block_.slots[slot];
    if (s.storage == Slot::Storage::Result && binding_->sized[slot] && host_[slot].kind == HostValue::Kind::Empty) {
      host_[slot] = result_memory(r, s.type.dtype, binding_->dims[slot]);
      data_[slot] = static_cast<std::byte*>(host_[slot].tensor.data());
    }
  }
}

void Frame::place_growths() {
  const auto& growths = growing_.growths();
  for (size_t g = 0; g < growths.size(); ++g) {
    if (growths[g].region != region_) continue;
    const auto whole = static_cast<size_t>(growths[g].whole);
    const Tensor& past = host_[static_cast<size_t>(growths[g].past)].tensor;
    host_[whole] = growing_.place(g, past, block_.slots[whole].type.dtype, binding_->dims[whole]);
    data_[whole] = static_cast<std::byte*>(host_[whole].tensor.data());
    host_[static_cast<size_t>(growths[g].result)] = host_[whole];  // until parts of it are gathered
  }
}

bool Frame::gather_grown(const StepItem& call, size_t item) {
  const auto& growths = growing_.growths();
  for (size_t g = 0; g < growths.size(); ++g) {
    const Growth& growth = growths[g];
    if (growth.gathered_axis < 0 || growth.gather_region != region_ || growth.gather != item) continue;
    const auto result = static_cast<size_t>(growth.result);
    auto gathered = growing_.gather(g, host_[static_cast<size_t>(growth.whole)].tensor, read(call.inputs[1]).tensor);
    const bool is_done = gathered.has_value();
    if (!is_done) gathered = Tensor(block_.slots[result].type.dtype, binding_->dims[result]);
    host_[result] = std::move(*gathered);
    return is_done;
  }
  return false;
}

const Dims& Frame::dims_of(size_t slot) const {
  const bool on_host = !kHasDevices || block_.slots[slot].device == DeviceKind::Cpu;
  return on_host ? host_[slot].tensor.dims() : device_->dims_of(slot);
}

HostValue Frame::read(int index) const {
  if (index < 0) return {};
  const auto i = static_cast<size_t>(index);
  const Slot& slot = block_.slots[i];
  if (kHasDevices && slot.device != DeviceKind::Cpu) return device_->read(i);
  if (slot.storage == Slot::Storage::Constant) return Tensor(slot.constant);
  if (host_[i].kind != HostValue::Kind::Empty) return host_[i];
  if (slot.storage == Slot::Storage::Dynamic || (slot.storage == Slot::Storage::Argument && data_[i] == nullptr))
    return {};
  NEO_ASSERT(binding_->sized[i], "a step reads \"", slot.name, "\" whose size is not known");
  check_late(index, memory_of(i));
  std::byte* p = slot.storage == Slot::Storage::View
                     ? static_cast<std::byte*>(read(slot.base).tensor.data()) + binding_->view_bytes[i]
                     : data_[i];
  return Tensor(slot.type.dtype, binding_->dims[i], p, nullptr);
}

size_t Frame::memory_of(size_t slot) const {
  while (block_.slots[slot].storage == Slot::Storage::View) slot = static_cast<size_t>(block_.slots[slot].base);
  return slot;
}

void Frame::check_held(int view, size_t memory) const {
  const int64_t wanted = binding_->late_bytes[static_cast<size_t>(view)];
  if (wanted == 0) return;
  const HostValue& value = host_[memory];
  const int64_t held = value.kind == HostValue::Kind::Tensor ? value.tensor.bytes() : 0;
  NEO_CHECK(wanted <= held, Shape, "run", "a part must lie in its whole. Got ", wanted, " bytes of ", held, " - at \"",
            block_.slots[static_cast<size_t>(view)].name, "\"");
}

void Frame::check_arguments() const {
  for (size_t i = 0; i < binding_->late_bytes.size(); ++i) {
    const size_t memory = memory_of(i);
    if (block_.slots[memory].storage == Slot::Storage::Argument) check_late(static_cast<int>(i), memory);
  }
}

void Frame::store(int index, HostValue value) {
  const auto i = static_cast<size_t>(index);
  const Slot& slot = block_.slots[i];
  check_kind(slot, value);
  if (value.kind == HostValue::Kind::Tensor) {
    const Tensor& t = value.tensor;
    check_dims(slot, t.dims());
    if (binding_->sized[i]) check_bound(slot, t.dims(), binding_->dims[i]);
    data_[i] = static_cast<std::byte*>(t.data());
  }
  host_[i] = std::move(value);
}

}  // namespace neo
