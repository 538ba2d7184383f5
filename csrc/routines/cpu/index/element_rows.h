#pragma once

#include "routines/cpu/index/index.h"

namespace neo {

// The places that GatherElements reads and ScatterElements writes: of an array of dims `data`, one for each of `dims`
// indices along `axis`.
class ElementRows {
 public:
  // A Shape error where the other axes of the indices do not fit the data.
  ElementRows(const ReferenceContext& ctx, const Dims& data, const Dims& dims, size_t axis)
      : ctx_(ctx), dims_(dims), strides_(dense_strides(data)), axis_(axis), size_(data[axis]) {
    for (size_t a = 0; a < dims.size(); ++a) {
      if (a != axis) checked_index(ctx, dims[a] - 1, data[a]);
    }
  }

  // f(i, place) for every index, in order.
  template <class F>
  void for_each(const int64_t* index, F&& f) const {
    const int64_t columns = dims_.back();
    const Dims outer(dims_.begin(), dims_.end() - 1);
    std::vector<int64_t> row(outer.size(), 0);
    if (size_ == 0) index_inside(ctx_, index[0], size_);
    int64_t i = 0;
    do {
      int64_t base = 0;
      for (size_t a = 0; a < row.size(); ++a) {
        if (a != axis_) base += row[a] * strides_[a];
      }
      if (axis_ + 1 == dims_.size()) {
        one_row(index + i, columns, [&](int64_t j, int64_t at) { f(i + j, base + at); });
      } else {
        const int64_t stride = strides_[axis_];
        one_row(index + i, columns, [&](int64_t j, int64_t at) { f(i + j, base + at * stride + j); });
      }
      i += columns;
    } while (next_index(row, outer));
  }

 private:
  // f(j, position) for the indices of a row. One that lies outside is looked for only behind them, and until then
  // counts as 0: no branch waits for it.
  template <class F>
  void one_row(const int64_t* index, int64_t columns, F&& f) const {
    const auto size = static_cast<uint64_t>(size_);
    uint64_t outside = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<uint64_t>(index[j] + (index[j] < 0 ? size_ : 0));
      outside |= static_cast<uint64_t>(at >= size);
      f(j, static_cast<int64_t>(at < size ? at : 0));
    }
    if (outside == 0) return;
    for (int64_t j = 0; j < columns; ++j) index_inside(ctx_, index[j], size_);
  }

  const ReferenceContext& ctx_;
  const Dims& dims_;
  Dims strides_;
  size_t axis_;
  int64_t size_;
};

// The indices as int64: those of the tensor, or copies in `room`.
const int64_t* wide_indices(const Tensor& indices, std::vector<int64_t>& room);

}  // namespace neo
