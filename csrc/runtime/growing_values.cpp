#include "runtime/growing_values.h"

#include <algorithm>
#include <cstring>

namespace neo {
namespace {

// Copies elements between two memories that have other rooms along an axis.
void copy_between_rooms(const void* from, int64_t from_room, void* to, int64_t to_room, const Dims& dims, int axis,
                        int64_t width) {
  int64_t outer = 1, inner = width;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int>(i) < axis) outer *= dims[i];
    if (static_cast<int>(i) > axis) inner *= dims[i];
  }
  const int64_t bytes = dims[static_cast<size_t>(axis)] * inner;
  for (int64_t o = 0; o < outer && bytes > 0; ++o) {
    std::memcpy(static_cast<std::byte*>(to) + o * to_room * inner,
                static_cast<const std::byte*>(from) + o * from_room * inner, static_cast<size_t>(bytes));
  }
}

}  // namespace

void GrowingValues::begin(const LoopItem& loop, int64_t trips) {
  if (!has_looked_) {
    growths_ = find_growths(loop);
    memory_.resize(growths_.size());
    has_looked_ = true;
  }
  trips_ = trips;
  for (Memory& memory : memory_) memory.held_room = 0;
}

void GrowingValues::measure(const Block& body, size_t region, std::span<const HostValue> values,
                            const SymbolValues& symbols) {
  // A short loop has room for all of its iterations at once, a longer one for twice as much again and again.
  constexpr int64_t kMaxMore = 256, kMaxSpare = 4;
  for (size_t g = 0; g < growths_.size(); ++g) {
    Growth& growth = growths_[g];
    if (growth.region != region) continue;
    const int64_t needed = body.slots[static_cast<size_t>(growth.whole)].type.shape[growth.axis].evaluate(symbols);
    const bool begins = memory_[g].held_room == 0;
    if (needed <= growth.room && !begins) continue;
    const Tensor& past = values[static_cast<size_t>(growth.past)].tensor;
    const int64_t appended = needed - past.dims()[static_cast<size_t>(growth.axis)];
    const int64_t more = std::min((std::min(trips_, kMaxMore) - 1) * appended, kMaxMore);
    // The room of an earlier call is kept, unless this one is so short that its batch would pay for what it never uses.
    const bool is_short = begins && trips_ <= kMaxMore && growth.room > kMaxSpare * (needed + more);
    if (needed > growth.room || is_short) growth.room = std::max(needed + more, is_short ? 0 : 2 * growth.room);
  }
}

Tensor GrowingValues::place(size_t index, const Tensor& past, DType dtype, const Dims& dims) {
  const Growth& growth = growths_[index];
  const auto axis = static_cast<size_t>(growth.axis);
  Memory& memory = memory_[index];
  if (memory.held_room != growth.room) {
    Dims room = dims;
    room[axis] = growth.room;
    const int64_t bytes = element_count(room) * item_bytes(dtype);
    const Tensor before = memory.bytes;  // where the past may lie
    if (memory.held_room > 0 || !before.defined() || before.bytes() < bytes)
      memory.bytes = Tensor(DType::UInt8, {bytes});
    copy_between_rooms(past.data(), memory.held_room > 0 ? memory.held_room : past.dims()[axis], memory.bytes.data(),
                       growth.room, past.dims(), growth.axis, item_bytes(dtype));
    memory.held_room = growth.room;
  }
  return Tensor(dtype, dims, memory.bytes.data(), memory.bytes.owner());
}

void GrowingValues::end(std::vector<HostValue>& carried, std::span<const int> results) const {
  for (size_t g = 0; g < growths_.size(); ++g) {
    const Growth& growth = growths_[g];
    if (memory_[g].held_room == 0 || results[growth.carried] < 0) continue;
    const Tensor& grown = carried[growth.carried].tensor;
    Tensor dense(grown.dtype(), grown.dims());
    copy_between_rooms(grown.data(), memory_[g].held_room, dense.data(), grown.dims()[static_cast<size_t>(growth.axis)],
                       grown.dims(), growth.axis, item_bytes(grown.dtype()));
    carried[growth.carried] = std::move(dense);
  }
}

std::optional<Tensor> GrowingValues::gather(size_t index, const Tensor& whole, const Tensor& indices) {
  const Growth& growth = growths_[index];
  const auto axis = static_cast<size_t>(growth.gathered_axis), growing = static_cast<size_t>(growth.axis);
  const int64_t size = whole.dims()[axis], count = indices.size();
  std::vector<int64_t> parts;
  bool is_all = count == size;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t part = indices.dtype() == DType::Int32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
    parts.push_back(part < 0 ? part + size : part);
    if (parts.back() < 0 || parts.back() >= size) return std::nullopt;
    is_all = is_all && parts.back() == i;
  }
  if (is_all) return whole;
  Dims dims = whole.dims();
  dims[axis] = count;
  Dims room = dims;
  room[growing] = growth.room;
  Memory& memory = memory_[index];
  const int64_t width = item_bytes(whole.dtype()), bytes = element_count(room) * width;
  if (!memory.other.defined() || memory.other.bytes() < bytes) memory.other = Tensor(DType::UInt8, {bytes});
  // A part is `rows` rows, of which the beginning holds elements.
  int64_t outer = 1, rows = 1, row = growth.room * width, held = dims[growing] * width;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i < axis) outer *= dims[i];
    if (i > axis && i < growing) rows *= dims[i];
    if (i > growing) row *= dims[i], held *= dims[i];
  }
  const auto* from = static_cast<const std::byte*>(whole.data());
  auto* to = memory.other.as<std::byte>();
  for (int64_t o = 0; o < outer; ++o, from += size * rows * row) {
    for (const int64_t part : parts) {
      for (int64_t r = 0; r < rows && held > 0; ++r, to += row)
        std::memcpy(to, from + (part * rows + r) * row, static_cast<size_t>(held));
    }
  }
  std::swap(memory.bytes, memory.other);
  return Tensor(whole.dtype(), dims, memory.bytes.data(), memory.bytes.owner());
}

int64_t GrowingValues::bytes() const {
  int64_t total = 0;
  for (const Memory& memory : memory_) total += memory.bytes.bytes() + memory.other.bytes();
  return total;
}

}  // namespace neo
