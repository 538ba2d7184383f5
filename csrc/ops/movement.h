#pragma once

#include "ops/op.h"

// Copies between arrays of one dtype. Elements are moved as bytes, so every bit pattern survives; strings are assigned.

namespace neo {

// Copies runs of elements from one array to another.
class ElementMover {
 public:
  ElementMover(DType dtype, const void* src, void* dst);
  // dst[dst_index ...] = src[src_index ...] for `count` elements; the runs do not overlap.
  void operator()(int64_t dst_index, int64_t src_index, int64_t count = 1) const;

 private:
  int64_t item_bytes_;  // 0: strings
  const void* src_;
  void* dst_;
};

// dst[start ...] = *element, `count` times.
void fill_elements(DType dtype, void* dst, int64_t start, int64_t count, const void* element);

// Zero, or the empty string.
const void* blank_element(DType dtype);

// Copies a box of `dims` elements. Offsets and strides are elements; strides may be zero or negative.
struct StridedView {
  int64_t offset = 0;
  Dims strides;
};
void copy_strided(DType dtype, const Dims& dims, const void* src, const StridedView& from, void* dst,
                  const StridedView& to);

// All elements of one tensor into another of equal dtype and count.
void copy_tensor(const Tensor& from, const Tensor& to);

// The element at a possibly negative position in an array of `size`; a Shape error that names it when it is out of
// range.
int64_t checked_index(const ReferenceContext& ctx, int64_t index, int64_t size);

// The product of dims[begin ... end).
int64_t count_between(const Dims& dims, int begin, int end);

// Whether sizes that are not negative add up to a total.
bool add_up(const std::vector<int64_t>& sizes, int64_t total);

// Steps a counter over `dims` in row-major order; false when it wraps around.
bool next_index(std::vector<int64_t>& index, const Dims& dims);

// No arithmetic, every output element read and written once.
Work movement_work(const Node& node);
// Nothing but sizes.
Work no_work(const Node& node);

}  // namespace neo
