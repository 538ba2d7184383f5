#include "runtime/steady_loop.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace neo {
namespace {

// Bytes to collect in one piece at most: longer loops take memory as they go, for they may end long before.
constexpr int64_t kMaxCollected = int64_t{1} << 30;
// Bytes to collect before there is more room, where a condition may end the loop.
constexpr int64_t kFirstCollected = int64_t{1} << 20;

bool is_copy(const Item& item) {
  return item.op == "Identity";
}

bool is_host_step(const Item& item) {
  const auto* call = std::get_if<StepItem>(&item.what);
  return call && !is_copy(item) && call->step->kind() == Step::Kind::Host;
}

}  // namespace

SteadyLoop::Part SteadyLoop::Part::of(const Tensor& tensor, int axis, bool reverse) {
  Part part;
  part.base = static_cast<std::byte*>(tensor.data());
  part.reverse = reverse;
  part.bytes = item_bytes(tensor.dtype());
  const Dims& dims = tensor.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int>(i) < axis) part.outer *= dims[i];
    if (static_cast<int>(i) > axis) part.bytes *= dims[i];
  }
  part.step = part.bytes * dims[static_cast<size_t>(axis)];
  return part;
}

std::byte* SteadyLoop::Part::gather(int64_t i, int64_t trips) {
  if (outer == 1) return at(i, trips);
  auto* to = static_cast<std::byte*>(copy.data());
  for (int64_t o = 0; o < outer; ++o) std::memcpy(to + o * bytes, at(i, trips) + o * step, static_cast<size_t>(bytes));
  return to;
}

void SteadyLoop::Part::scatter(int64_t i, int64_t trips, const std::byte* from) const {
  if (outer == 1 && from == at(i, trips)) return;
  for (int64_t o = 0; o < outer && bytes > 0; ++o)
    std::memcpy(at(i, trips) + o * step, from + o * bytes, static_cast<size_t>(bytes));
}

bool SteadyLoop::are_steps_alike() const {
  if (body_.run_.trace || body_.run_.observer || body_.frame_.device() || body_.block_.regions.size() != 1)
    return false;
  const auto& items = body_.block_.regions.front().items;
  return std::all_of(items.begin(), items.end(), [](const Item& item) {
    const auto* call = std::get_if<StepItem>(&item.what);
    return std::holds_alternative<DimsItem>(item.what) ||
           (call && (is_copy(item) || is_host_step(item) || call->step->kind() == Step::Kind::Kernel));
  });
}

std::optional<Dims> SteadyLoop::dims_of(int slot) const {
  const auto i = static_cast<size_t>(slot);
  const Slot& s = body_.block_.slots[i];
  if (!s.type.is_tensor() || s.type.dtype == DType::String || s.device != DeviceKind::Cpu) return std::nullopt;
  if (s.storage == Slot::Storage::Constant) return s.constant.dims();
  if (s.storage == Slot::Storage::Argument) return body_.frame_.host()[i].tensor.dims();
  if (s.storage == Slot::Storage::Dynamic || !body_.frame_.binding().sized[i]) return std::nullopt;
  return body_.frame_.binding().dims[i];
}

bool SteadyLoop::fits(const State& state) const {
  const Block& block = body_.block_;
  const Binding& binding = body_.frame_.binding();
  if (!binding.late_bytes.empty()) return false;
  for (const Item& item : block.regions.front().items) {
    const auto* call = std::get_if<StepItem>(&item.what);
    if (is_host_step(item)) {
      const auto is_planned = [&](int slot) {
        return slot < 0 || (dims_of(slot) && (body_.frame_.binding().sized[static_cast<size_t>(slot)]));
      };
      if (!std::all_of(call->inputs.begin(), call->inputs.end(), is_planned) ||
          !std::all_of(call->outputs.begin(), call->outputs.end(), is_planned))
        return false;
    }
    if (!call || !is_copy(item)) continue;
    const auto from = dims_of(call->inputs.front()), to = dims_of(call->outputs.front());
    if (!from || !to || *from != *to) return false;
  }
  const size_t first = state.is_scan ? 0 : 1;  // the condition
  for (size_t r = 0; r < block.results.size(); ++r) {
    const auto dims = dims_of(block.results[r]);
    if (!dims) return false;
    if (r < first) {
      if (element_count(*dims) != 1) return false;
    } else if (r - first < state.carried.size()) {
      const Tensor& before = state.carried[r - first].tensor;
      if (!before.defined() || before.dims() != *dims) return false;
    } else {
      const Tensor& element = state.collected[r - first - state.carried.size()].first;
      // Nothing of no bytes ever reaches a limit of memory, which ends a loop that nobody ends.
      const bool grows = state.ends && element.bytes() > 0;
      const bool is_too_long = !grows && state.trips > kMaxCollected / std::max<int64_t>(element.bytes(), 1);
      if (element.dims() != *dims || is_too_long) return false;
    }
  }
  return true;
}

void SteadyLoop::allocate(State& state) {
  for (auto& buffers : carried_) {
    buffers.clear();
    for (const HostValue& v : state.carried) buffers.emplace_back(v.tensor.dtype(), v.tensor.dims());
  }
  for (const Scanned& s : state.scanned) {
    scanned_.push_back(Part::of(s.tensor, s.axis, s.reverse));
    Dims dims = s.tensor.dims();
    dims.erase(dims.begin() + s.axis);
    if (scanned_.back().outer != 1) scanned_.back().copy = Tensor(s.tensor.dtype(), dims);
  }
  room_ = state.trips;
  for (const Collected& c : state.collected) {
    if (!state.ends) break;
    constexpr int64_t kMinRoom = 16;
    room_ = std::min(room_, std::max(kMinRoom, kFirstCollected / std::max<int64_t>(c.first.bytes(), 1)));
  }
  for (Collected& c : state.collected) {
    c.whole = tensor_for(c, room_);
    collected_.push_back(Part::of(c.whole, c.axis, c.reverse));
    collected_.back().scatter(0, room_, static_cast<const std::byte*>(c.first.data()));
  }
}

Tensor SteadyLoop::tensor_for(const Collected& collected, int64_t count) {
  Dims dims = collected.first.dims();
  dims.insert(dims.begin() + collected.axis, count);
  return Tensor(collected.first.dtype(), dims);
}

// The elements that are collected so far lie one behind the other.
void SteadyLoop::set_room(State& state, int64_t room) {
  const int64_t done = std::min(state.done, room);
  room_ = room;
  for (size_t c = 0; c < collected_.size(); ++c) {
    Tensor whole = tensor_for(state.collected[c], room);
    if (whole.bytes() > 0 && done > 0)
      std::memcpy(whole.data(), collected_[c].base, static_cast<size_t>(done * collected_[c].bytes));
    collected_[c].base = static_cast<std::byte*>(whole.data());
    state.collected[c].whole = std::move(whole);
  }
}

// A collected value that is a carried one, or a copy of it, is written once: what the next iteration takes lies where
// it is collected.
void SteadyLoop::find_shared(const State& state) {
  const Block& block = body_.block_;
  const auto first = block.results.begin() + (state.is_scan ? 0 : 1);
  const auto last = first + static_cast<std::ptrdiff_t>(state.carried.size());
  const auto is_result = [&](int slot) {
    return block.slots[static_cast<size_t>(slot)].storage == Slot::Storage::Result;
  };
  // The last carried value of a slot, which is where it is written.
  const auto carried_of = [&](int slot) {
    const auto found = std::find(std::reverse_iterator(last), std::reverse_iterator(first), slot);
    return found.base() == first || !is_result(slot) ? kNone : static_cast<size_t>(found.base() - first - 1);
  };
  for (const Item& item : block.regions.front().items) {
    const auto* step = std::get_if<StepItem>(&item.what);
    if (!step || !is_copy(item)) continue;
    const int from = step->inputs.front(), to = step->outputs.front();
    const bool is_same = block.slots[static_cast<size_t>(from)].layout == block.slots[static_cast<size_t>(to)].layout;
    const size_t carried = carried_of(from);
    if (is_same && is_result(to) && carried != kNone && carried_of(to) == kNone) copies_.push_back({to, carried});
  }
  shared_.assign(state.carried.size(), kNone);
  for (size_t c = 0; c < collected_.size(); ++c) {
    const int slot = *(last + static_cast<std::ptrdiff_t>(c));
    size_t carried = carried_of(slot);
    for (const Copy& copy : copies_) carried = copy.slot == slot ? copy.carried : carried;
    if (carried != kNone && shared_[carried] == kNone && collected_[c].is_written_in_place()) shared_[carried] = c;
  }
}

bool SteadyLoop::is_shared_copy(const StepItem& step) const {
  return std::any_of(copies_.begin(), copies_.end(),
                     [&](const Copy& copy) { return copy.slot == step.outputs.front(); });
}

// Views are looked up once: an iteration moves pointers of slots alone.
void SteadyLoop::find_calls() {
  const Block& block = body_.block_;
  const Binding& binding = body_.frame_.binding();
  const auto add_place = [&](int slot) {
    Place place{static_cast<size_t>(std::max(slot, 0)), 0};
    while (block.slots[place.slot].storage == Slot::Storage::View) {
      place.bytes += binding.view_bytes[place.slot];
      place.slot = static_cast<size_t>(block.slots[place.slot].base);
    }
    if (slot < 0) place.slot = block.slots.size();
    places_.push_back(place);
  };
  const auto& items = block.regions.front().items;
  size_t most = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    Call call{&items[i], i};
    call.first = places_.size();
    const auto* step = std::get_if<StepItem>(&items[i].what);
    if (step && is_copy(items[i]) && is_shared_copy(*step)) continue;
    if (step && step->step->kind() == Step::Kind::Kernel && binding.append_bytes.empty()) {
      if (binding.prepared[i].is_idle) continue;
      call.kernel = static_cast<const KernelStep*>(step->step.get());
      call.prepared = binding.prepared[i].bytes.data();
      for (int slot : step->inputs) add_place(slot);
      for (int slot : step->outputs) add_place(slot);
      most = std::max(most, places_.size() - call.first);
    } else if (step && is_copy(items[i]) && step->step->kind() != Step::Kind::Kernel) {
      const int to = step->outputs.front();
      call.copied = element_count(*dims_of(to)) * item_bytes(block.slots[static_cast<size_t>(to)].type.dtype);
      add_place(step->inputs.front());
      add_place(to);
    }
    calls_.push_back(call);
  }
  addresses_.resize(most);
}

void SteadyLoop::run_calls() {
  const size_t none = body_.block_.slots.size();
  const auto address = [&](const Place& place) {
    return place.slot == none ? nullptr : body_.frame_.data(place.slot) + place.bytes;
  };
  const bool has_quota = body_.run_.budget->quota().seconds.has_value();
  for (size_t c = 0; c < calls_.size(); ++c) {
    const Call& call = calls_[c];
    if (call.kernel) {
      const size_t end = c + 1 < calls_.size() ? calls_[c + 1].first : places_.size();
      for (size_t p = call.first; p < end; ++p) addresses_[p - call.first] = address(places_[p]);
      call.kernel->run(call.prepared, addresses_.data(), body_.lanes_.front().scratch.data(),
                       *body_.run_.teams.front());
      if (has_quota) body_.run_.budget->checkpoint();  // a late team leaves tasks out
    } else if (call.copied >= 0) {
      const std::byte* from = address(places_[call.first]);
      if (call.copied > 0) std::memcpy(address(places_[call.first + 1]), from, static_cast<size_t>(call.copied));
    } else if (const auto* dims = std::get_if<DimsItem>(&call.item->what)) {
      body_.run_dims(*dims);
    } else {
      body_.run_step(std::get<StepItem>(call.item->what), call.index);
    }
  }
}

bool SteadyLoop::run(State& state, const SymbolValues& outer) {
  const bool may_grow = std::all_of(state.collected.begin(), state.collected.end(),
                                    [](const Collected& c) { return c.axis == 0 && !c.reverse; });
  if (!are_steps_alike() || (state.ends && !may_grow)) return false;
  body_.frame_.take_arguments(state.arguments, outer);
  body_.enter_region(0);
  if (!fits(state)) {
    body_.frame_.clear();
    return false;
  }
  allocate(state);
  find_shared(state);
  find_calls();
  // Steps that read tensors take their memory from where the pointers are by then; a tensor of no bytes may have none.
  const std::vector<HostValue> held = body_.frame_.host();
  for (size_t i = 0; i < held.size(); ++i) {
    const Slot::Storage storage = body_.block_.slots[i].storage;
    const bool is_empty = held[i].kind == HostValue::Kind::Tensor && held[i].tensor.bytes() == 0;
    if ((storage == Slot::Storage::Argument || storage == Slot::Storage::Result) && !is_empty)
      body_.frame_.host()[i] = {};
  }
  const Block& block = body_.block_;
  const size_t first = state.is_scan ? 0 : 2, results = state.is_scan ? 0 : 1, carried = state.carried.size();
  const auto argument = [&](size_t i) -> std::byte*& {
    return body_.frame_.data(static_cast<size_t>(block.arguments[i]));
  };
  const auto is_result = [&](int slot) {
    return block.slots[static_cast<size_t>(slot)].storage == Slot::Storage::Result;
  };
  std::vector<std::byte*> fresh(carried);  // where an iteration writes its carried values
  for (; state.done < state.trips && (state.go || !state.ends); ++state.done) {
    const int64_t i = state.done;
    body_.run_.iteration = static_cast<int>(std::min<int64_t>(i, std::numeric_limits<int>::max()));
    body_.run_.budget->checkpoint();
    if (!state.is_scan) {
      store_int64(DType::Int64, argument(0), i);
      store_int64(DType::Bool, argument(1), state.go);
    }
    if (i == room_ && !collected_.empty()) {
      set_room(state, room_ < state.trips / 2 ? 2 * room_ : state.trips);
      for (size_t c = 0; c < carried && i > 1; ++c) {
        if (shared_[c] != kNone) fresh[c] = collected_[shared_[c]].at(i - 1, room_);
      }
    }
    for (size_t c = 0; c < carried; ++c) {
      if (i > 1) argument(first + c) = fresh[c];
      fresh[c] = shared_[c] == kNone ? static_cast<std::byte*>(carried_[i % 2][c].data())
                                     : collected_[shared_[c]].at(i, room_);
    }
    for (size_t s = 0; s < scanned_.size(); ++s) argument(first + carried + s) = scanned_[s].gather(i, state.trips);
    // Collected values lie where they belong at once, unless they are carried too.
    for (size_t c = 0; c < collected_.size(); ++c) {
      const int slot = block.results[results + carried + c];
      if (is_result(slot) && collected_[c].is_written_in_place())
        body_.frame_.data(static_cast<size_t>(slot)) = collected_[c].at(i, room_);
    }
    for (size_t c = 0; c < carried; ++c) {
      const int slot = block.results[results + c];
      if (is_result(slot)) body_.frame_.data(static_cast<size_t>(slot)) = fresh[c];
    }
    for (const Copy& copy : copies_) body_.frame_.data(static_cast<size_t>(copy.slot)) = fresh[copy.carried];
    run_calls();
    for (size_t c = 0; c < carried; ++c) {
      const std::byte* from = body_.frame_.address_of(block.results[results + c]);
      const int64_t bytes = carried_[0][c].bytes();
      if (from != fresh[c] && bytes > 0) std::memcpy(fresh[c], from, static_cast<size_t>(bytes));
    }
    for (size_t c = 0; c < collected_.size(); ++c)
      collected_[c].scatter(i, room_, body_.frame_.address_of(block.results[results + carried + c]));
    if (!state.is_scan) state.go = load_int64(DType::Bool, body_.frame_.address_of(block.results[0])) != 0;
  }
  for (size_t c = 0; state.done > 1 && c < carried; ++c) {
    Tensor& last = carried_[(state.done - 1) % 2][c];
    if (shared_[c] != kNone && last.bytes() > 0) std::memcpy(last.data(), fresh[c], static_cast<size_t>(last.bytes()));
    state.carried[c] = last;
  }
  if (!collected_.empty() && state.done < room_) set_room(state, state.done);
  body_.frame_.clear();
  return true;
}

}  // namespace neo
