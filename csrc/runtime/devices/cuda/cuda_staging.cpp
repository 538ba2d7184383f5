#include "runtime/devices/cuda/cuda_staging.h"

#include <algorithm>
#include <cstring>

namespace neo::cuda {
namespace {

constexpr unsigned kUntimedEvent = 2;

}  // namespace

Staging::~Staging() {
  for (const Event event : moved_) {
    if (event != nullptr) api().event_destroy(event);
  }
  if (memory_ != nullptr) api().mem_free_host(memory_);
}

void Staging::write(Pointer to, std::span<const std::byte> from) {
  for (size_t at = 0; at < from.size(); at += kPartBytes) {
    const size_t bytes = std::min(kPartBytes, from.size() - at);
    const size_t number = next_++;
    std::byte* memory = part(number);
    std::memcpy(memory, from.data() + at, bytes);
    check(api().memcpy_htod(to + at, memory, bytes, stream_), "take data", device_);
    record(number);
  }
}

void Staging::read(Pointer from, std::span<std::byte> to) {
  const size_t first = next_;
  size_t sent = 0;
  for (size_t at = 0, number = first; at < to.size(); at += kPartBytes, ++number) {
    for (; sent < to.size() && next_ - number < kParts; sent += kPartBytes) {
      const size_t asked = next_++;
      check(api().memcpy_dtoh(part(asked), from + sent, std::min(kPartBytes, to.size() - sent), stream_),
            "give data back", device_);
      record(asked);
    }
    await(number);
    std::memcpy(to.data() + at, memory_ + number % kParts * kPartBytes, std::min(kPartBytes, to.size() - at));
  }
}

std::byte* Staging::part(size_t number) {
  if (memory_ == nullptr) {
    void* memory = nullptr;
    check(api().mem_host_alloc(&memory, kParts * kPartBytes, 0), "share memory", device_);
    memory_ = static_cast<std::byte*>(memory);
  }
  await(number);
  return memory_ + number % kParts * kPartBytes;
}

void Staging::record(size_t number) {
  Event& event = moved_[number % kParts];
  if (event == nullptr) check(api().event_create(&event, kUntimedEvent), "make an event", device_);
  check(api().event_record(event, stream_), "record an event", device_);
}

void Staging::await(size_t number) {
  const Event event = moved_[number % kParts];
  if (event != nullptr) check(api().event_synchronize(event), "move data", device_);
}

}  // namespace neo::cuda
