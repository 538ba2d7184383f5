#include "saved/blobs.h"

#include "base/check.h"

namespace neo {
namespace {

constexpr size_t kMaxRank = 1024;

Tensor read_strings(std::span<const std::byte> bytes, const Dims& dims) {
  const int64_t count = element_count(dims);
  // Each takes eight bytes and more, so the count is bounded by the file before anything is allocated.
  NEO_CHECK(count <= static_cast<int64_t>(bytes.size() / 8), Model, "load",
            "a blob must hold the length of every string. Got ", bytes.size(), " bytes for ", count, " strings");
  Tensor out(DType::String, dims);
  for (int64_t i = 0; i < count; ++i) {
    NEO_CHECK(bytes.size() >= 8, Model, "load", "a blob must hold all of its strings. Got ", i, ", expected ", count);
    uint64_t length = 0;
    for (size_t b = 0; b < 8; ++b) length |= uint64_t{static_cast<uint8_t>(bytes[b])} << 8 * b;
    bytes = bytes.subspan(8);
    NEO_CHECK(length <= bytes.size(), Model, "load", "a string must lie in its blob. Got a length of ", length,
              ", expected at most ", bytes.size());
    out.strings()[i].assign(reinterpret_cast<const char*>(bytes.data()), length);
    bytes = bytes.subspan(length);
  }
  return out;
}

}  // namespace

std::span<const std::byte> SavedBlobs::bytes_of(int64_t number) const {
  return blobs_[static_cast<size_t>(number)];
}

Tensor SavedBlobs::get(const Json& reference) const {
  const Json::Array& parts = reference.as_array();
  NEO_CHECK(parts.size() >= 2 && parts.size() <= kMaxRank, Model, "load",
            "a tensor must be a blob, a dtype and its sizes. Got ", parts.size(), " entries");
  const auto dtype = find_dtype(parts[1].as_string());
  NEO_CHECK(dtype.has_value(), Model, "load", "a dtype must be known. Got \"", parts[1].as_string(), "\"");
  Dims dims;
  for (size_t i = 2; i < parts.size(); ++i) dims.push_back(parts[i].as_int(0, kMaxExtent));
  const int64_t count = element_count(dims);
  const int64_t number = parts[0].as_int(-1, static_cast<int64_t>(blobs_.size()) - 1);
  NEO_CHECK((number < 0) == (count == 0), Model, "load", "a tensor with elements must have a blob. Got ",
            to_string(dims), " in blob ", number);
  if (count == 0) return Tensor(*dtype, dims);
  const std::span<const std::byte> bytes = bytes_of(number);
  if (*dtype == DType::String) return read_strings(bytes, dims);
  // At most 2^46 elements of at most 16 bytes: no overflow.
  const int64_t wanted = count * item_bytes(*dtype), held = static_cast<int64_t>(bytes.size());
  NEO_CHECK(wanted <= held && held - wanted < kBlobAlignment, Model, "load",
            "a tensor must fill its blob up to the padding. Got ", wanted, " bytes in a blob of ", held);
  // Nothing writes to a constant.
  auto* data = const_cast<std::byte*>(bytes.data());
  return Tensor(*dtype, dims, data, owner_);
}

}  // namespace neo
