// Any file: blobs that are found lie in it, one after the other.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "fuzz/counts.h"
#include "fuzz/envelope.h"
#include "saved/safetensors.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using neo::fuzz::Reached;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const neo::Safetensors parts = neo::read_safetensors(file);
    const std::byte* at = parts.blobs.empty() ? nullptr : parts.blobs.front().data();
    for (const auto blob : parts.blobs) {
      if (blob.data() != at || blob.data() < file.data() || blob.data() + blob.size() > file.data() + file.size())
        std::abort();
      at += blob.size();
    }
    neo::fuzz::count(Reached::Ran);
  } catch (const neo::Error& error) {
    if (error.kind() != neo::ErrorKind::Model) std::abort();
    neo::fuzz::count(Reached::Nothing);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  neo::fuzz::Random random(seed);
  if (random.one_in(4)) return LLVMFuzzerMutate(data, size, max_size);
  auto parts = neo::fuzz::Envelope::of({reinterpret_cast<const char*>(data), size});
  if (!parts) return LLVMFuzzerMutate(data, size, max_size);
  parts->header = neo::fuzz::edit(std::move(parts->header), {}, random);
  const std::string file = parts->join();
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}
