#include "base/poison.h"

#include <cstring>

#include "base/arena.h"

namespace neo {
namespace {

void fill_with_nan(void* memory, int64_t bytes) {
  constexpr int kByte = 0xFF;  // of float16, float32 and float64
  if (bytes > 0) std::memset(memory, kByte, static_cast<size_t>(bytes));
}

}  // namespace

void poison_new_memory(bool on) {
  fill_new_memory = on ? fill_with_nan : nullptr;
}

}  // namespace neo
