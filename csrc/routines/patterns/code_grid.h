#pragma once

#include <optional>

#include "ir/graph.h"

namespace neo {

// The numbers that 8-bit codes stand for: (code - zero) * scale.
struct CodeGrid {
  DType dtype = DType::UInt8;
  float scale = 1;
  int32_t zero = 0;

  bool is_signed() const { return dtype == DType::Int8; }
  int32_t lo() const { return is_signed() ? -128 : 0; }
  int32_t hi() const { return is_signed() ? 127 : 255; }
  // The code of a number, as QuantizeLinear rounds it.
  int32_t code_of(float number) const;
  friend bool operator==(const CodeGrid&, const CodeGrid&) = default;
};

// The grid of a QuantizeLinear or DequantizeLinear between float32 and 8-bit codes, where scale and zero point are
// constants of one element; none of any other node. `at_run_time`: they may be ones that only running tells, and count
// as 1 and 0 then.
std::optional<CodeGrid> read_code_grid(const Node& node, bool at_run_time = false);

}  // namespace neo
