#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace neo {

// The alignment of blobs of a saved module, in bytes.
inline constexpr int64_t kBlobAlignment = 64;

// A safetensors file (docs/saved_modules.md): strings by name, and blobs "0", "1", ... in the order of their offsets.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<std::span<const std::byte>> blobs;
};

// Checks everything that it reads; what does not hold is a Model error. The result points into `file`.
Safetensors read_safetensors(std::span<const std::byte> file);

// One blob to be written: `bytes`, followed by zeros up to the alignment.
struct Blob {
  DType dtype = DType::UInt8;
  std::span<const std::byte> bytes;
};

// The bytes before the blobs: the length and the header, padded with spaces up to the alignment.
std::string safetensors_header(const std::map<std::string, std::string>& metadata, std::span<const Blob> blobs);
int64_t padded_bytes(const Blob& blob);

}  // namespace neo
