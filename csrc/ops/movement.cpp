#include "ops/movement.h"

#include <algorithm>
#include <cstring>

#include "ir/strings.h"

namespace neo {

ElementMover::ElementMover(DType dtype, const void* src, void* dst)
    : item_bytes_(dtype == DType::String ? 0 : item_bytes(dtype)), src_(src), dst_(dst) {}

void ElementMover::operator()(int64_t dst_index, int64_t src_index, int64_t count) const {
  if (count <= 0) return;
  if (item_bytes_ == 0) {
    const auto* from = static_cast<const std::string*>(src_) + src_index;
    copy_strings(from, count, static_cast<std::string*>(dst_) + dst_index);
    return;
  }
  const char* from = static_cast<const char*>(src_) + src_index * item_bytes_;
  char* to = static_cast<char*>(dst_) + dst_index * item_bytes_;
  if (count == 1 && item_bytes_ == 4) {
    std::memcpy(to, from, 4);
  } else if (count == 1 && item_bytes_ == 8) {
    std::memcpy(to, from, 8);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count * item_bytes_));
  }
}

void fill_elements(DType dtype, void* dst, int64_t start, int64_t count, const void* element) {
  if (count <= 0) return;
  if (dtype == DType::String) {
    auto* to = static_cast<std::string*>(dst) + start;
    for (int64_t i = 0; i < count; ++i) copy_strings(static_cast<const std::string*>(element), 1, to + i);
    return;
  }
  const auto item = static_cast<size_t>(item_bytes(dtype));
  char* to = static_cast<char*>(dst) + static_cast<size_t>(start) * item;
  // The written part is copied behind itself, up to the bytes that the first-level cache keeps.
  constexpr size_t kMax = 1 << 14;
  const size_t bytes = static_cast<size_t>(count) * item;
  std::memcpy(to, element, item);
  for (size_t done = item; done < bytes;) {
    const size_t more = std::min({done, kMax / item * item, bytes - done});
    std::memcpy(to + done, to, more);
    done += more;
  }
}

const void* blank_element(DType dtype) {
  static const std::string empty;
  static const char zero[16] = {};
  return dtype == DType::String ? static_cast<const void*>(&empty) : zero;
}

namespace {

struct Pair64 {
  uint64_t low;
  uint64_t high;
};

// Loops over all axes but the last, then moves one row of the last.
struct StridedBox {
  Dims dims;
  Dims src_strides;
  Dims dst_strides;
};

// Drops axes of size one and joins neighbours that are contiguous on both sides.
StridedBox simplify(const Dims& dims, const Dims& src_strides, const Dims& dst_strides) {
  StridedBox box;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!box.dims.empty() && box.src_strides.back() == src_strides[i] * dims[i] &&
        box.dst_strides.back() == dst_strides[i] * dims[i]) {
      box.dims.back() *= dims[i];
      box.src_strides.back() = src_strides[i];
      box.dst_strides.back() = dst_strides[i];
    } else {
      box.dims.push_back(dims[i]);
      box.src_strides.push_back(src_strides[i]);
      box.dst_strides.push_back(dst_strides[i]);
    }
  }
  if (box.dims.empty()) box = {{1}, {1}, {1}};
  return box;
}

template <class T>
void move_box(const StridedBox& box, const T* src, T* dst) {
  const size_t outer = box.dims.size() - 1;
  const int64_t n = box.dims[outer];
  const int64_t from = box.src_strides[outer];
  const int64_t to = box.dst_strides[outer];
  std::vector<int64_t> index(outer, 0);
  while (true) {
    if (from == 1 && to == 1) {
      std::copy(src, src + n, dst);
    } else if (from == 0 && to == 1) {
      std::fill(dst, dst + n, *src);
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i * to] = src[i * from];
    }
    size_t axis = outer;
    while (axis > 0) {
      --axis;
      src += box.src_strides[axis];
      dst += box.dst_strides[axis];
      if (++index[axis] < box.dims[axis]) break;
      src -= box.src_strides[axis] * box.dims[axis];
      dst -= box.dst_strides[axis] * box.dims[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (outer == 0) return;
  }
}

template <class T>
void move_from(const StridedBox& box, const void* src, int64_t src_offset, void* dst, int64_t dst_offset) {
  move_box(box, static_cast<const T*>(src) + src_offset, static_cast<T*>(dst) + dst_offset);
}

}  // namespace

void copy_strided(DType dtype, const Dims& dims, const void* src, const StridedView& from, void* dst,
                  const StridedView& to) {
  if (element_count(dims) == 0) return;
  const StridedBox box = simplify(dims, from.strides, to.strides);
  if (dtype == DType::String) return move_from<std::string>(box, src, from.offset, dst, to.offset);
  switch (item_bytes(dtype)) {
    case 1:
      return move_from<uint8_t>(box, src, from.offset, dst, to.offset);
    case 2:
      return move_from<uint16_t>(box, src, from.offset, dst, to.offset);
    case 4:
      return move_from<uint32_t>(box, src, from.offset, dst, to.offset);
    case 8:
      return move_from<uint64_t>(box, src, from.offset, dst, to.offset);
    case 16:
      return move_from<Pair64>(box, src, from.offset, dst, to.offset);
    default:
      NEO_ASSERT(false, "an element of ", name(dtype), " has ", item_bytes(dtype), " bytes");
  }
}

void copy_tensor(const Tensor& from, const Tensor& to) {
  NEO_ASSERT(from.dtype() == to.dtype() && from.size() == to.size());
  ElementMover(from.dtype(), from.data(), to.data())(0, 0, from.size());
}

int64_t checked_index(const ReferenceContext& ctx, int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) [[unlikely]] {
    ctx.fail(ErrorKind::Shape,
             str("an index must lie inside its axis. Got ", index, ", expected ", -size, " to ", size - 1));
  }
  return at;
}

int64_t count_between(const Dims& dims, int begin, int end) {
  int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= dims[static_cast<size_t>(i)];
  return count;
}

bool add_up(const std::vector<int64_t>& sizes, int64_t total) {
  int64_t left = total;
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) return false;
    left -= size;
  }
  return left == 0;
}

bool next_index(std::vector<int64_t>& index, const Dims& dims) {
  for (size_t axis = dims.size(); axis > 0; --axis) {
    if (++index[axis - 1] < dims[axis - 1]) return true;
    index[axis - 1] = 0;
  }
  return false;
}

Work movement_work(const Node& node) {
  Work work;
  for (const Value* output : node.outputs) {
    if (output == nullptr || !output->type.is_tensor() || !output->shape().has_rank()) continue;
    work.bytes = work.bytes + output->shape().element_count() * Dim(2 * item_bytes(output->dtype()));
  }
  return work;
}

Work no_work(const Node&) {
  return {};
}

}  // namespace neo
