#include "saved/safetensors.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "base/budget.h"
#include "base/check.h"
#include "base/json.h"

namespace neo {
namespace {

constexpr int64_t kMaxHeaderBytes = 100'000'000;
constexpr int64_t kLengthBytes = 8;

// Element types by the format's names; others are bytes.
struct Element {
  const char* name;
  DType dtype;
  int64_t bytes;
};
constexpr Element kElements[] = {
    {"U8", DType::UInt8, 1},   {"I8", DType::Int8, 1},    {"BOOL", DType::Bool, 1},     {"F16", DType::Float16, 2},
    {"I16", DType::Int16, 2},  {"U16", DType::UInt16, 2}, {"BF16", DType::BFloat16, 2}, {"F32", DType::Float32, 4},
    {"I32", DType::Int32, 4},  {"U32", DType::UInt32, 4}, {"F64", DType::Float64, 8},   {"I64", DType::Int64, 8},
    {"U64", DType::UInt64, 8},
};

const Element& element_of(DType dtype) {
  for (const Element& e : kElements) {
    if (e.dtype == dtype) return e;
  }
  return kElements[0];
}

int64_t align_up(int64_t bytes) {
  return (bytes + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

// The number of bytes that dtype and shape of a blob ask for.
int64_t declared_bytes(const Json& entry) {
  const std::string& dtype = entry.at("dtype").as_string();
  int64_t bytes = 0;
  for (const Element& e : kElements) {
    if (dtype == e.name) bytes = e.bytes;
  }
  NEO_CHECK(bytes > 0, Model, "load", "the dtype of a blob must be known. Got \"", dtype, "\"");
  const Json::Array& shape = entry.at("shape").as_array();
  NEO_CHECK(shape.size() <= 8, Model, "load", "a blob must have at most 8 axes. Got ", shape.size());
  for (const Json& size : shape) {
    NEO_CHECK(!__builtin_mul_overflow(bytes, size.as_int(0, kMaxExtent), &bytes) && bytes <= kMaxExtent, Model, "load",
              "the size of a blob must be at most ", kMaxExtent, " bytes. Got more");
  }
  return bytes;
}

// The number that a blob's name is.
size_t index_of(const std::string& name, size_t count) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  NEO_CHECK(error == std::errc() && end == name.data() + name.size() && index < count && name == std::to_string(index),
            Model, "load", "blobs must be named by their number. Got \"", name, "\", expected 0 to ", count, " less 1");
  return index;
}

}  // namespace

Safetensors read_safetensors(std::span<const std::byte> file) {
  const auto file_bytes = static_cast<int64_t>(file.size());
  NEO_CHECK(file_bytes >= kLengthBytes, Model, "load", "a saved module must begin with the length of its header. Got ",
            file_bytes, " bytes, expected 8 or more");
  uint64_t given = 0;
  for (int i = 0; i < kLengthBytes; ++i) given |= uint64_t{static_cast<uint8_t>(file[static_cast<size_t>(i)])} << 8 * i;
  NEO_CHECK(given <= static_cast<uint64_t>(std::min(kMaxHeaderBytes, file_bytes - kLengthBytes)), Model, "load",
            "the header of a saved module must lie in the file. Got a length of ", given, " bytes, expected at most ",
            std::min(kMaxHeaderBytes, file_bytes - kLengthBytes));
  const auto length = static_cast<int64_t>(given);
  const int64_t begin = kLengthBytes + length;
  NEO_CHECK(begin % kBlobAlignment == 0, Model, "load", "blobs must begin at a multiple of ", kBlobAlignment,
            " bytes. Got ", begin);
  take_memory(length);
  const std::string header(reinterpret_cast<const char*>(file.data()) + kLengthBytes, static_cast<size_t>(length));
  const Json parsed = Json::parse(header);

  Safetensors result;
  const Json::Object& members = parsed.as_object();
  const Json& metadata = parsed.at("__metadata__");
  for (const auto& [key, value] : metadata.as_object()) result.metadata.emplace(key, value.as_string());

  const size_t count = members.size() - 1;
  std::vector<std::optional<std::pair<int64_t, int64_t>>> ranges(count);
  for (const auto& [name, entry] : members) {
    if (&entry == &metadata) continue;
    const size_t index = index_of(name, count);
    const Json::Array& offsets = entry.at("data_offsets").as_array();
    NEO_CHECK(offsets.size() == 2, Model, "load", "a blob must have two offsets. Got ", offsets.size());
    const int64_t first = offsets[0].as_int(0, kMaxExtent), last = offsets[1].as_int(first, kMaxExtent);
    NEO_CHECK(last <= file_bytes - begin, Model, "load", "a saved module must hold all its blobs. Got ", file_bytes,
              " bytes, expected at least ", begin + last, ": the file was cut short or its header changed");
    const int64_t declared = declared_bytes(entry);
    NEO_CHECK(last - first == declared, Model, "load", "a blob must hold what its shape says. Got ", last - first,
              " bytes, expected ", declared);
    ranges[index] = {first, last};
  }
  // No holes, no overlaps, nothing behind the last.
  int64_t at = 0;
  for (const auto& range : ranges) {
    NEO_CHECK(range && range->first == at && at % kBlobAlignment == 0, Model, "load",
              "blobs must follow each other at multiples of ", kBlobAlignment, " bytes. Got one at ",
              range ? range->first : -1, ", expected it at ", align_up(at));
    at = range->second;
    result.blobs.push_back(
        file.subspan(static_cast<size_t>(begin + range->first), static_cast<size_t>(range->second - range->first)));
  }
  NEO_CHECK(begin + at == file_bytes, Model, "load", "a saved module must end with its last blob. Got ", file_bytes,
            " bytes, expected ", begin + at);
  return result;
}

int64_t padded_bytes(const Blob& blob) {
  return align_up(static_cast<int64_t>(blob.bytes.size()));
}

std::string safetensors_header(const std::map<std::string, std::string>& metadata, std::span<const Blob> blobs) {
  Json::Object members;
  Json::Object strings;
  for (const auto& [key, value] : metadata) strings.emplace_back(key, value);
  members.emplace_back("__metadata__", std::move(strings));
  int64_t at = 0;
  for (size_t i = 0; i < blobs.size(); ++i) {
    const Element& element = element_of(blobs[i].dtype);
    const int64_t bytes = padded_bytes(blobs[i]);
    members.emplace_back(std::to_string(i), Json::Object{{"dtype", element.name},
                                                         {"shape", Json::Array{bytes / element.bytes}},
                                                         {"data_offsets", Json::Array{at, at + bytes}}});
    at += bytes;
  }
  std::string text = Json(std::move(members)).dump();
  text.resize(static_cast<size_t>(align_up(kLengthBytes + static_cast<int64_t>(text.size())) - kLengthBytes), ' ');
  NEO_CHECK(static_cast<int64_t>(text.size()) <= kMaxHeaderBytes, Unsupported, "save",
            "the plan of a saved module must take at most ", kMaxHeaderBytes, " bytes. Got ", text.size());
  std::string out;
  for (int i = 0; i < kLengthBytes; ++i) out += static_cast<char>(uint64_t{text.size()} >> 8 * i & 0xFF);
  return out + text;
}

}  // namespace neo
