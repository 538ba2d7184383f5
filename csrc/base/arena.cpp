#include "base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/budget.h"
#include "base/check.h"

namespace neo {
namespace {

// The system grants more than it has and kills whoever touches it, so what cannot fit is refused here.
int64_t machine_bytes() {
  static const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes;
}

}  // namespace

void advise_large_pages(void* memory, int64_t bytes, bool renew) noexcept {
  // Without them the memory is as good, only slower.
  if (renew) (void)madvise(memory, static_cast<size_t>(bytes), MADV_DONTNEED);
#ifdef MADV_HUGEPAGE
  (void)madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
}

void return_freed_memory() noexcept {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

Arena::Arena(int64_t limit_bytes) : limit_bytes_(limit_bytes) {
  NEO_ASSERT(limit_bytes >= 0, "for an arena's limit. Got ", limit_bytes);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_bytes_(std::exchange(other.capacity_bytes_, 0)),
      limit_bytes_(other.limit_bytes_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    capacity_bytes_ = std::exchange(other.capacity_bytes_, 0);
    limit_bytes_ = other.limit_bytes_;
  }
  return *this;
}

void Arena::reserve(int64_t bytes) {
  NEO_ASSERT(bytes >= 0, "for an arena. Got ", bytes);
  NEO_CHECK(bytes <= limit_bytes_, Memory, "memory", "intermediate values must fit the limit. Got ", bytes,
            " bytes, expected at most ", limit_bytes_);
  if (bytes <= capacity_bytes_) return;
  if (const auto& budget = Budget::current()) budget->give(capacity_bytes_);
  release();  // before allocating: the peak is one block, not two
  const int64_t alignment = bytes >= kLargePageBytes ? kLargePageBytes : kAlignment;
  const int64_t rounded = align_bytes(bytes, alignment);
  take_memory(rounded);
  NEO_CHECK(rounded <= machine_bytes(), Memory, "memory", "intermediate values must fit this machine. Got ", rounded,
            " bytes, expected at most ", machine_bytes());
  void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
  NEO_CHECK(block != nullptr, Memory, "memory", "the system must have memory for intermediate values. Got none for ",
            rounded, " bytes, expected a block");
  if (alignment == kLargePageBytes) advise_large_pages(block, rounded, true);
  data_ = static_cast<std::byte*>(block);
  capacity_bytes_ = rounded;
  if (fill_new_memory) fill_new_memory(data_, rounded);
}

void Arena::release() noexcept {
  std::free(data_);
  data_ = nullptr;
  capacity_bytes_ = 0;
}

int64_t align_bytes(int64_t bytes, int64_t alignment) {
  NEO_ASSERT(bytes >= 0 && alignment > 0 && (alignment & (alignment - 1)) == 0, "Got bytes ", bytes, ", alignment ",
             alignment);
  NEO_CHECK(bytes <= Arena::kNoLimit - (alignment - 1), Memory, "memory", "a size must fit 63 bits. Got ", bytes,
            " bytes rounded up to ", alignment);
  return (bytes + (alignment - 1)) & ~(alignment - 1);
}

}  // namespace neo
