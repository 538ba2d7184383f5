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
// Pixels that are moved together: as many bytes of each channel as the widest vector has.
template <class T>
constexpr int64_t kPixels = 64 / (int64_t)sizeof(T);

// Channels of a plane whose columns, or rows in the destination, are those of the pixels of an image and few; 0: it is
// another plane, or too small. For elements of 2 bytes they are three: loops for two and four would take 6 KB.
template <class T>
constexpr int64_t few_channels(const ElementPlane<T>& p) {
  constexpr int64_t kMin = sizeof(T) == 2 ? 3 : 2, kMax = sizeof(T) == 2 ? 3 : 4;
  if (p.padded_rows != p.rows) return 0;
  if (p.columns == p.src_row && p.rows >= kPixels<T>) return p.columns >= kMin && p.columns <= kMax ? p.columns : 0;
  if (p.rows == p.dst_row && p.columns >= kPixels<T>) return p.rows >= kMin && p.rows <= kMax ? p.rows : 0;
  return 0;
}

using TransposePlane = ElementPlane<float>;
using WordPlane = ElementPlane<uint16_t>;
using BytePlane = ElementPlane<uint8_t>;

}  // namespace neo
