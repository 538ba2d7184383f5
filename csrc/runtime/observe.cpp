#include <cstring>

#include "exec/dependencies.h"
#include "runtime/interpreter.h"

namespace neo {
namespace {

// How far each index of a logical axis lies from the first element, in elements of memory that is dense in `layout`.
std::vector<Dims> axis_offsets(const Layout& layout, const Dims& dims) {
  const Dims strides = dense_strides(layout.physical_dims(dims));
  std::vector<Dims> offsets(dims.size());
  for (size_t position = 0; position < dims.size(); ++position) {
    const int axis = layout.order()[position];
    for (int64_t i = 0; i < dims[static_cast<size_t>(axis)]; ++i) {
      int64_t inner = layout.block_of(axis);
      int64_t offset = i / inner * strides[position];
      for (size_t b = 0; b < layout.blocks().size(); ++b) {
        if (layout.blocks()[b].axis != axis) continue;
        const int64_t within = i % inner;
        inner /= layout.blocks()[b].size;
        offset += within / inner * strides[dims.size() + b];
      }
      offsets[static_cast<size_t>(axis)].push_back(offset);
    }
  }
  return offsets;
}

Tensor copy_plain(const std::byte* memory, DType dtype, const Layout& layout, const Dims& dims) {
  Tensor copy(dtype, dims);
  if (copy.size() == 0) return copy;
  const auto bytes = static_cast<size_t>(item_bytes(dtype));
  const std::vector<Dims> offsets = axis_offsets(layout, dims);
  Dims at(dims.size(), 0);
  auto* out = static_cast<std::byte*>(copy.data());
  for (int64_t i = 0; i < copy.size(); ++i, out += bytes) {
    int64_t offset = 0;
    for (size_t a = 0; a < at.size(); ++a) offset += offsets[a][static_cast<size_t>(at[a])];
    std::memcpy(out, memory + static_cast<size_t>(offset) * bytes, bytes);
    for (size_t a = at.size(); a-- > 0 && ++at[a] == dims[a];) at[a] = 0;
  }
  return copy;
}

// A copy that shares nothing with the run.
HostValue copy_value(const HostValue& value) {
  if (value.kind == HostValue::Kind::Tensor) return copy_tensor(value.tensor);
  HostValue copy = value;
  for (HostValue& item : copy.items) item = copy_value(item);
  return copy;
}

}  // namespace

void Interpreter::observe(const Item& item) const {
  for (const int index : uses_of(item).writes) {
    const Slot& slot = block_.slots[static_cast<size_t>(index)];
    const HostValue value = frame_.read(index);
    const bool is_plain = value.kind != HostValue::Kind::Tensor || slot.layout.is_plain();
    const Tensor& tensor = value.tensor;
    (*run_.observer)(item, slot.name,
                     is_plain ? copy_value(value)
                              : HostValue(copy_plain(static_cast<const std::byte*>(tensor.data()), tensor.dtype(),
                                                     slot.layout, tensor.dims())));
  }
}

}  // namespace neo
