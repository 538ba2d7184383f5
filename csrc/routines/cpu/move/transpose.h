#pragma once

// Kernels that transpose planes of elements of 4, 2 or 1 bytes, and with them bring channels into blocks and back.
// Safe in kernel files.

#include <stdint.h>

namespace neo {

// dst[j * dst_row + i] = src[i * src_row + j] for i < rows and j < columns. Columns j of the source are contiguous, and
// so are the rows i in the destination; there, elements from `rows` up to `padded_rows` (at most one vector more)
// become zero.
template <class T>
struct ElementPlane {
  const T* src = nullptr;
  int64_t src_row = 0;
  T* dst = nullptr;
  int64_t dst_row = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t padded_rows = 0;
};
using TransposePlane = ElementPlane<float>;
using WordPlane = ElementPlane<uint16_t>;
using BytePlane = ElementPlane<uint8_t>;

}  // namespace neo
