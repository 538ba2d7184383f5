#pragma once

#include <memory>
#include <vector>

#include "base/json.h"
#include "saved/safetensors.h"

namespace neo {

// Tensors over the blobs of a file, as the plan refers to them: [number of the blob or -1, dtype, sizes ...].
class SavedBlobs {
 public:
  SavedBlobs(std::vector<std::span<const std::byte>> blobs, std::shared_ptr<void> owner)
      : blobs_(std::move(blobs)), owner_(std::move(owner)) {}

  // The tensor must fill its blob up to the padding. Strings are copied, everything else stays in the file.
  Tensor get(const Json& reference) const;

 private:
  std::span<const std::byte> bytes_of(int64_t number) const;

  std::vector<std::span<const std::byte>> blobs_;
  std::shared_ptr<void> owner_;
};

}  // namespace neo
