#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace neo {

// One block of memory, aligned for any vector, that grows on demand and is given back as a whole.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // Growing beyond `limit_bytes` is a Memory error.
  explicit Arena(int64_t limit_bytes = kNoLimit);
  ~Arena() { release(); }
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  // Makes the block hold at least `bytes`. When it has to grow, the contents are lost and the address changes;
  // else nothing happens. No memory is a Memory error that leaves the arena empty.
  void reserve(int64_t bytes);

  // Gives the block back.
  void release() noexcept;

  int64_t capacity_bytes() const { return capacity_bytes_; }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  int64_t capacity_bytes_ = 0;
  int64_t limit_bytes_ = kNoLimit;
};

// The size of large pages on systems that have them. Blocks of at least this size are aligned to it, which saves most
// page faults.
constexpr int64_t kLargePageBytes = int64_t{2} << 20;

// Advice to hold memory in large pages, of which address and size are multiples. `renew`: small pages that it had
// before it came back to the allocator, which would stay, are given up, and with them what they held.
void advise_large_pages(void* memory, int64_t bytes, bool renew) noexcept;

// Has the allocator give the system what it keeps of freed memory. The allocator of glibc keeps what lies between other
// blocks until it is asked for it.
void return_freed_memory() noexcept;

// Called with memory that was just allocated, where it is set.
inline void (*fill_new_memory)(void* memory, int64_t bytes) = nullptr;

// bytes rounded up to a multiple of `alignment`, a power of two; overflow is a Memory error.
int64_t align_bytes(int64_t bytes, int64_t alignment = Arena::kAlignment);

}  // namespace neo
