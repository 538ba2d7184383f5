// Preloaded into the soak test: the blocks that neo asks the system for run out on request, for the asking thread only.

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>

namespace {

thread_local long blocks_left = -1;  // -1: as many as there are

}  // namespace

// The next `count` blocks of the calling thread are given, those after them are not; -1 ends it.
extern "C" void allow_blocks(long count) {
  blocks_left = count;
}

extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  using Function = void* (*)(size_t, size_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "aligned_alloc"));
  if (blocks_left == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  if (blocks_left > 0) --blocks_left;
  return next(alignment, size);
}
