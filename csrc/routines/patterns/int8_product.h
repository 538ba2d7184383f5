#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "routines/patterns/code_function.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/conv_problem.h"

namespace neo {

// A code of 4 or 8 bits, which takes a byte of a tensor in either case.
inline int32_t code_of(DType dtype, uint8_t byte) {
  if (dtype == DType::Int8) return static_cast<int8_t>(byte);
  if (dtype == DType::Int4) return static_cast<int8_t>(byte << 4) >> 4;
  return dtype == DType::UInt4 ? byte & 0xF : byte;
}

// A Conv, MatMul or Gemm of 8-bit codes by constant codes of 8 or 4 bits, as a routine sees the group:
//   DequantizeLinear of x, DequantizeLinear of the weights, product [, QuantizeLinear and DequantizeLinear between]
//   [, Add of another DequantizeLinear or of a constant] [, Relu or Clip] [, QuantizeLinear [, function of these
//   codes]]
// The product's own bias and clamp are its node's. Or a ConvInteger or MatMulInteger alone.
struct Int8Product {
  const Node* node = nullptr;  // the product
  const Value* x = nullptr;    // codes
  CodeGrid x_grid;
  const Value* x_scale = nullptr;   // the scale of x, where only running tells; or null
  const Value* x_zero = nullptr;    // its zero point likewise
  const Value* w = nullptr;         // codes, a constant
  const Value* w_scale = nullptr;   // one element, or one per output channel; or null: 1
  const Value* w_zero = nullptr;    // as many; or null
  const Value* bias = nullptr;      // float32, one per output channel; or null
  std::optional<CodeGrid> middle;   // the sums are rounded to it before the residual is added
  const Value* residual = nullptr;  // codes; or null
  const Value* addend = nullptr;    // float32, a constant of one element per output channel, in its place; or null
  CodeGrid residual_grid;
  float sum_lo = -std::numeric_limits<float>::infinity();  // the product's clamp
  float sum_hi = std::numeric_limits<float>::infinity();
  float lo = -std::numeric_limits<float>::infinity();  // of what is behind it
  float hi = std::numeric_limits<float>::infinity();
  std::optional<CodeGrid> y_grid;  // none: the result is float32, or the sums as they are
  bool is_whole = false;           // the latter, int32
  CodeFunction function;           // of the codes on y_grid, which gives y; or no nodes
  const Value* y = nullptr;

  bool is_conv() const { return node->op == "Conv" || node->op == "ConvInteger"; }
  // The weights' axis of the output channels, and how many channels there are.
  int channel_axis() const;
  int64_t channels() const { return w->shape()[channel_axis()].value(); }
  // Products per output.
  int64_t depth() const;
};

// The groups that end in `root` and begin with one of `products`; where nobody else reads what is between.
std::vector<Workload> match_int8_products(const Node& root, std::span<const std::string_view> products,
                                          const Graph::Users& users, const Graph& graph);

// None, with the reason, where a group is none of these.
std::optional<Int8Product> read_int8_product(const Workload& workload, std::string* why);

// Whether the codes of the weights less their zero points are in [-128, 127]; reads them.
bool has_byte_weights(const Int8Product& product);
// Whether no sum of products can have a magnitude above the limit: of codes of x less its zero point by the weights of
// an output. Reads the weights where their number alone does not tell.
bool sums_fit(const Int8Product& product, int64_t limit);

}  // namespace neo
