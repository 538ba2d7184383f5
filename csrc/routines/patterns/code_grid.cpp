#include "routines/patterns/code_grid.h"

#include <algorithm>
#include <cmath>

namespace neo {

int32_t CodeGrid::code_of(float number) const {
  const float code = std::nearbyintf(number / scale) + static_cast<float>(zero);
  return static_cast<int32_t>(std::clamp(code, static_cast<float>(lo()), static_cast<float>(hi())));
}

std::optional<CodeGrid> read_code_grid(const Node& node, bool at_run_time) {
  const bool quantizes = node.op == "QuantizeLinear";
  if (!quantizes && node.op != "DequantizeLinear") return std::nullopt;
  const Value* codes = quantizes ? node.output(0) : node.input(0);
  const Value* numbers = quantizes ? node.input(0) : node.output(0);
  if (!codes || !numbers || !codes->type.is_tensor() || !numbers->type.is_tensor()) return std::nullopt;
  if (codes->dtype() != DType::UInt8 && codes->dtype() != DType::Int8) return std::nullopt;
  if (numbers->dtype() != DType::Float32 || !numbers->shape().has_rank() || !codes->shape().has_rank())
    return std::nullopt;
  const Value* scale = node.input(1);
  const Value* zero = node.input(2);
  if (scale->dtype() != DType::Float32 || (zero && zero->dtype() != codes->dtype())) return std::nullopt;
  for (const Value* v : {scale, zero}) {
    const bool is_one = !v || (v->shape().has_rank() && v->shape().element_count().is(1));
    if (!is_one || !(at_run_time || !v || v->constant)) return std::nullopt;
  }
  if (node.int_attr("block_size", 0) != 0 || node.int_attr("precision", 0) != 0) return std::nullopt;
  CodeGrid grid;
  grid.dtype = codes->dtype();
  if (scale->constant) grid.scale = static_cast<float>(load_double(DType::Float32, scale->constant->data()));
  if (zero && zero->constant) grid.zero = static_cast<int32_t>(load_double(zero->dtype(), zero->constant->data()));
  // Products with codes and quotients by scales are normal numbers.
  constexpr float kMinScale = 1e-30f, kMaxScale = 1e30f;
  if (!(grid.scale > kMinScale && grid.scale < kMaxScale)) return std::nullopt;
  return grid;
}

}  // namespace neo
