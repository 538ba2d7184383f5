#pragma once

// Safe in kernel files (*.isa.cpp): C headers only, every function is forced inline so that no
// weak symbol leaves the instruction set's namespace.

#include <stddef.h>
#include <stdint.h>

#define NEO_INLINE inline __attribute__((always_inline))
#define NEO_LAMBDA __attribute__((always_inline))

namespace neo {

// A pointer and a count.
template <class T>
struct Span {
  T* data = nullptr;
  int64_t size = 0;
  NEO_INLINE T& operator[](int64_t i) const { return data[i]; }
  NEO_INLINE T* begin() const { return data; }
  NEO_INLINE T* end() const { return data + size; }
};

}  // namespace neo
