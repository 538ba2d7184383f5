#include "capi/values.h"

#include <cstring>
#include <string>

#include "base/check.h"
#include "capi/errors.h"

namespace neo::capi {
namespace {

constexpr int kMaxRank = 1024;
constexpr int kMaxDepth = 16;

static_assert(NEO_FLOAT64 == static_cast<int>(DType::Float64) && NEO_INT2 == static_cast<int>(DType::Int2) &&
              NEO_COMPLEX128 == static_cast<int>(DType::Complex128));

Dims dims_of(const neo_tensor& value, const std::string& place) {
  NEO_CHECK(value.rank >= 0 && value.rank <= kMaxRank, Shape, "run", "a rank must be at least 0 and at most ", kMaxRank,
            ". Got ", value.rank, " - at ", place);
  NEO_CHECK(value.rank == 0 || value.dims, Model, "run", "dims must not be NULL. Got NULL, expected ", value.rank,
            " sizes - at ", place);
  return Dims(value.dims, value.dims + value.rank);
}

// Calls f(address) for each element in row-major order.
template <class F>
void for_each(const neo_tensor& value, const Dims& dims, F&& f) {
  const auto* base = static_cast<const std::byte*>(value.data);
  std::vector<int64_t> index(dims.size(), 0);
  int64_t offset = 0;
  for (;;) {
    f(base + offset);
    size_t axis = dims.size();
    while (axis > 0) {
      --axis;
      offset += value.strides[axis];
      if (++index[axis] < dims[axis]) break;
      offset -= value.strides[axis] * dims[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (dims.empty()) return;
  }
}

bool is_dense(const neo_tensor& value, const Dims& dims, int64_t item_bytes) {
  if (!value.strides) return true;
  int64_t stride = item_bytes;
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1 && value.strides[axis] != stride) return false;
    stride *= dims[axis];
  }
  return true;
}

// neo_string, which is read where a tensor holds a std::string.
Tensor to_strings(const neo_tensor& value, const Dims& dims, const std::string& place) {
  Tensor tensor(DType::String, dims);
  std::string* out = tensor.strings();
  const auto take = [&](const std::byte* address) {
    neo_string element;
    std::memcpy(&element, address, sizeof element);
    NEO_CHECK(element.data || element.size == 0, Model, "run", "a string must not be NULL. Got NULL, expected ",
              element.size, " bytes - at ", place);
    *out++ = element.size ? std::string(element.data, element.size) : std::string();
  };
  if (tensor.size() == 0) return tensor;
  if (value.strides) {
    for_each(value, dims, take);
  } else {
    const auto* elements = static_cast<const std::byte*>(value.data);
    for (int64_t i = 0; i < tensor.size(); ++i) take(elements + i * static_cast<int64_t>(sizeof(neo_string)));
  }
  return tensor;
}

Tensor to_tensor(const neo_tensor& value, const std::shared_ptr<void>& owner, const std::string& place) {
  const int given = number_of(value.dtype);
  NEO_CHECK(given > NEO_UNDEFINED && given <= NEO_COMPLEX128, Type, "run", "a dtype must be one of neo_dtype. Got ",
            given, " - at ", place);
  const auto dtype = static_cast<DType>(value.dtype);
  const Dims dims = dims_of(value, place);
  const int64_t size = element_count(dims);
  const auto item = static_cast<int64_t>(neo_dtype_bytes(value.dtype));
  NEO_CHECK(size == 0 || value.data, Model, "run", "data must not be NULL. Got NULL, expected ", size * item,
            " bytes - at ", place);
  NEO_CHECK(value.bytes == 0 || value.strides || value.bytes == static_cast<size_t>(size * item), Shape, "run",
            "bytes must be those of the shape. Got ", value.bytes, ", expected ", size * item, " for ", name(dtype),
            to_string(dims), " - at ", place);
  if (size == 0) return Tensor(dtype, dims);
  if (dtype == DType::String) return to_strings(value, dims, place);
  const bool complex = is_complex(dtype);
  const bool aligned = reinterpret_cast<uintptr_t>(value.data) % static_cast<size_t>(complex ? item / 2 : item) == 0;
  const bool dense = is_dense(value, dims, item);
  if (dense && aligned) return Tensor(dtype, dims, const_cast<void*>(value.data), owner);
  Tensor copy(dtype, dims);
  if (dense) {
    std::memcpy(copy.data(), value.data, static_cast<size_t>(size * item));
  } else {
    auto* out = copy.as<std::byte>();
    for_each(value, dims, [&](const std::byte* address) {
      std::memcpy(out, address, static_cast<size_t>(item));
      out += item;
    });
  }
  return copy;
}

HostValue to_host(const neo_tensor& value, const std::shared_ptr<void>& owner, const std::string& place, int depth) {
  switch (number_of(value.kind)) {
    case NEO_TENSOR:
      return to_tensor(value, owner, place);
    case NEO_NONE:
      return {};
    case NEO_MAP: {
      NEO_CHECK(value.items && value.item_count == 2 && value.items[0].kind == NEO_TENSOR &&
                    value.items[1].kind == NEO_TENSOR,
                Model, "run", "a map must have two items, the tensors of its keys and of its values. Got ",
                value.item_count, " - at ", place);
      return HostValue::map(to_tensor(value.items[0], owner, place), to_tensor(value.items[1], owner, place));
    }
    case NEO_SEQUENCE: {
      NEO_CHECK(depth < kMaxDepth, Model, "run", "sequences must nest at most ", kMaxDepth,
                " deep. Got deeper ones - at ", place);
      NEO_CHECK(value.item_count == 0 || value.items, Model, "run", "items must not be NULL. Got NULL, expected ",
                value.item_count, " - at ", place);
      std::vector<HostValue> items;
      for (const neo_tensor& item : std::span(value.items, value.item_count))
        items.push_back(to_host(item, owner, place, depth + 1));
      return HostValue::sequence(std::move(items));
    }
    default:
      fail(ErrorKind::Type, "run",
           str("a value must be a tensor, a sequence, a map or none. Got kind ", number_of(value.kind), " - at ",
               place));
  }
}

}  // namespace

HostValue to_host(const neo_tensor& value, const std::shared_ptr<void>& owner, const std::string& place) {
  return to_host(value, owner, place, 0);
}

void detach(HostValue& value, const std::shared_ptr<void>& owner) {
  for (HostValue& item : value.items) detach(item, owner);
  if (value.kind != HostValue::Kind::Tensor) return;
  const std::shared_ptr<void>& held = value.tensor.owner();
  const bool is_marked = !held.owner_before(owner) && !owner.owner_before(held);
  if (is_marked) value.tensor = copy_tensor(value.tensor);
}

Results::Results(std::vector<HostValue> values) : values_(std::move(values)) {
  shown_.reserve(values_.size());
  for (const HostValue& value : values_) shown_.push_back(show(value));
}

neo_tensor Results::show(const HostValue& value) {
  neo_tensor shown = {};
  switch (value.kind) {
    case HostValue::Kind::Empty:
      shown.kind = NEO_NONE;
      break;
    case HostValue::Kind::Map:
    case HostValue::Kind::Sequence: {
      std::vector<neo_tensor> items;
      items.reserve(value.items.size());
      for (const HostValue& item : value.items) items.push_back(show(item));
      items_.push_back(std::move(items));
      shown.kind = value.kind == HostValue::Kind::Map ? NEO_MAP : NEO_SEQUENCE;
      shown.items = items_.back().data();
      shown.item_count = items_.back().size();
      break;
    }
    case HostValue::Kind::Tensor: {
      const Tensor& tensor = value.tensor;
      shown.kind = NEO_TENSOR;
      shown.dtype = static_cast<neo_dtype>(tensor.dtype());
      shown.rank = tensor.rank();
      shown.dims = tensor.dims().data();
      shown.data = tensor.data();
      if (tensor.dtype() == DType::String) {
        std::vector<neo_string> strings;
        strings.reserve(static_cast<size_t>(tensor.size()));
        for (int64_t i = 0; i < tensor.size(); ++i) {
          strings.push_back({tensor.strings()[i].data(), tensor.strings()[i].size()});
        }
        strings_.push_back(std::move(strings));
        shown.data = strings_.back().data();
      }
      shown.bytes = static_cast<size_t>(tensor.size()) * neo_dtype_bytes(shown.dtype);
      break;
    }
  }
  return shown;
}

const char* dtype_name(int number) {
  if (number < NEO_UNDEFINED || number > NEO_COMPLEX128) return "undefined";
  return name(static_cast<DType>(number)).data();
}

}  // namespace neo::capi

const char* neo_dtype_name(neo_dtype dtype) {
  return neo::capi::dtype_name(neo::capi::number_of(dtype));
}

size_t neo_dtype_bytes(neo_dtype dtype) {
  const int number = neo::capi::number_of(dtype);
  if (number <= NEO_UNDEFINED || number > NEO_COMPLEX128) return 0;
  if (dtype == NEO_STRING) return sizeof(neo_string);
  return static_cast<size_t>(neo::item_bytes(static_cast<neo::DType>(dtype)));
}
