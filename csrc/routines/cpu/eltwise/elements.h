#pragma once

// The elements of an operand that is not dense, for kernels (*.isa.cpp) that copy them into dense buffers.

#include "base/span.h"
#include "routines/patterns/eltwise_program.h"

namespace neo::NEO_ISA {

// `count` elements, in runs of `run` elements that are `stride` apart, beginning `skip` elements into the first run.
struct Elements {
  const void* from;
  int64_t first;
  int64_t stride;
  int64_t run, skip = 0;
  // The axes that runs lie along, the innermost first, and where the first run is along each; the last has no end.
  int nest = 0;
  const int64_t* size = nullptr;
  const int64_t* step = nullptr;
  int64_t index[kEltwiseMaxNest] = {};

  // Elements from a run to the next one.
  NEO_INLINE int64_t advance() {
    int64_t by = 0;
    for (int i = 0; i < nest; ++i) {
      by += step[i];
      if (++index[i] < size[i]) break;
      by -= index[i] * step[i];
      index[i] = 0;
    }
    return by;
  }
};

// A run of n elements, `stride` apart. In vectors, of which the last two may overlap.
template <class T>
NEO_INLINE void copy_run(T* to, const T* from, int64_t stride, int64_t n) {
  constexpr int kBytes = sizeof(T) < 4 ? 32 : 64;
  typedef T Vector __attribute__((vector_size(kBytes)));
  constexpr int64_t kWidth = kBytes / (int64_t)sizeof(T);
  if (n < kWidth || stride < 0 || stride > 1) {
    for (int64_t k = 0; k < n; ++k) to[k] = from[k * stride];
    return;
  }
  Vector x = *from - Vector{};
  for (int64_t k = 0;; k += kWidth) {
    if (k > n - kWidth) k = n - kWidth;
    if (stride != 0) __builtin_memcpy(&x, from + k, sizeof x);
    __builtin_memcpy(to + k, &x, sizeof x);
    if (k == n - kWidth) return;
  }
}

NEO_INLINE Elements dense(const void* from, int64_t first, int64_t stride, int64_t count) {
  return {.from = from, .first = first, .stride = stride, .run = count};
}

NEO_INLINE Elements nested(const void* from, int64_t base, const EltwiseSpace& space, int operand, int64_t first) {
  Elements e = {.from = from,
                .first = base,
                .stride = space.inner_stride[operand],
                .run = space.run,
                .skip = first % space.run,
                .nest = space.nest,
                .size = space.nest_size,
                .step = space.nest_stride[operand]};
  int64_t rest = first / space.run;
  for (int i = 0; i < space.nest; ++i) {
    e.index[i] = rest % space.nest_size[i];
    e.first += e.index[i] * e.step[i];
    rest /= space.nest_size[i];
  }
  return e;
}

}  // namespace neo::NEO_ISA
