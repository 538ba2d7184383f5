#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Numbers as text: the shortest digits that read back, with a point unless the exponent is large, as NumPy prints them.
std::string printed(double x, bool single_precision) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "INF" : "-INF";
  const double magnitude = std::fabs(x);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::array<char, 64> text;
  const auto end = single_precision ? std::to_chars(text.begin(), text.end(), static_cast<float>(x), format)
                                    : std::to_chars(text.begin(), text.end(), x, format);
  std::string result(text.begin(), end.ptr);
  if (plain && result.find('.') == std::string::npos) result += ".0";
  return result;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

double parsed(const ReferenceContext& ctx, const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const size_t last = text.find_last_not_of(" \t\r\n");
  std::string_view digits =
      first == std::string::npos ? std::string_view{} : std::string_view(text).substr(first, last - first + 1);
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '+' || negative)) digits.remove_prefix(1);
  const std::string word = lower_case(digits);
  double x = 0;
  if (word == "inf" || word == "infinity") {
    x = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    x = std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), x);
    if (result.ec == std::errc::result_out_of_range) {
      // Too small or too large for a double: the sign of the exponent tells which.
      const size_t exponent = word.find('e');
      x = exponent != std::string::npos && word.find('-', exponent) != std::string::npos
              ? 0.0
              : std::numeric_limits<double>::infinity();
    }
    ctx.check(!digits.empty() && digits[0] != '-' && result.ec != std::errc::invalid_argument &&
                  result.ptr == digits.data() + digits.size(),
              str("a string to cast must be a number. Got \"", text, "\""));
  }
  return negative ? -x : x;
}

// A string that is a whole number of 64 bits keeps every digit.
bool parse_whole(const std::string& text, DType to, int64_t& x) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  if (to == DType::UInt64) {
    uint64_t bits = 0;
    const auto result = std::from_chars(begin, end, bits);
    x = static_cast<int64_t>(bits);
    return result.ec == std::errc() && result.ptr == end;
  }
  const auto result = std::from_chars(begin, end, x);
  return result.ec == std::errc() && result.ptr == end;
}

void cast_from_strings(const ReferenceContext& ctx, const Tensor& x, const Tensor& y, bool saturate) {
  auto* to = static_cast<char*>(y.data());
  for (int64_t i = 0; i < x.size(); ++i, to += item_bytes(y.dtype())) {
    int64_t whole = 0;
    if (is_integer(y.dtype()) && parse_whole(x.strings()[i], y.dtype(), whole)) {
      store_int64(y.dtype(), to, whole);
    } else {
      store_double(y.dtype(), to, parsed(ctx, x.strings()[i]), saturate);
    }
  }
}

void cast_to_strings(const Tensor& x, const Tensor& y) {
  if (is_float(x.dtype())) {
    const auto elements = load_doubles(x);
    for (size_t i = 0; i < elements.size(); ++i) y.strings()[i] = printed(elements[i], x.dtype() != DType::Float64);
    return;
  }
  const auto elements = load_ints(x);
  for (size_t i = 0; i < elements.size(); ++i) {
    y.strings()[i] =
        x.dtype() == DType::UInt64 ? std::to_string(static_cast<uint64_t>(elements[i])) : std::to_string(elements[i]);
  }
}

// The power of two that float8e8m0 keeps of a positive number.
double round_power(double x, std::string_view mode) {
  if (!(x > 0) || std::isinf(x) || mode == "up") return x;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0, mode == "nearest" && fraction >= 0.75 ? exponent : exponent - 1);
}

}  // namespace

void cast_elements(const ReferenceContext& ctx, const Tensor& x, const Tensor& y) {
  const DType to = y.dtype();
  const bool saturate = ctx.node().int_attr("saturate", 1) != 0;
  if (x.dtype() == to) return copy_tensor(x, y);
  if (x.dtype() == DType::String) return cast_from_strings(ctx, x, y, saturate);
  if (to == DType::String) return cast_to_strings(x, y);
  if (x.dtype() == DType::UInt64 && to == DType::Float32) {
    const auto* from = x.as<uint64_t>();
    std::transform(from, from + x.size(), y.as<float>(), [](uint64_t n) { return static_cast<float>(n); });
    return;
  }
  // The elements of uint64 are held as the bits of int64, which only integers read back.
  const bool as_ints = !is_float(to) || (item_bytes(to) > 1 && x.dtype() != DType::UInt64);
  if (!is_float(x.dtype()) && as_ints) return store_ints(y, load_ints(x));
  auto elements = load_doubles(x);
  if (to == DType::Float8E8M0) {
    const std::string mode = ctx.node().string_attr("round_mode", "up");
    for (double& element : elements) element = round_power(element, mode);
  }
  auto* element = static_cast<char*>(y.data());
  for (size_t i = 0; i < elements.size(); ++i) {
    store_double(to, element + static_cast<int64_t>(i) * item_bytes(to), elements[i], saturate);
  }
}

namespace {

void cast_tensor(ReferenceContext& ctx, const Tensor& x, DType to) {
  cast_elements(ctx, x, ctx.output(0, to, x.dims()));
}

void infer_cast_to(InferContext& ctx, DType to) {
  const DType from = ctx.dtype(0);
  ctx.check(!is_complex(from) && !is_complex(to),
            str("complex numbers have no Cast. Got ", name(from), " to ", name(to)));
  const std::string mode = ctx.node().string_attr("round_mode", "up");
  ctx.check(mode == "up" || mode == "down" || mode == "nearest",
            str("attribute round_mode must be up, down or nearest. Got \"", mode, "\""));
  ctx.set_output(0, to, ctx.shape(0));
  if (!is_integer(to) || !(is_integer(from) || from == DType::Bool) || to == DType::UInt64 || from == DType::UInt64) {
    return;
  }
  auto contents = tensor_contents(ctx, 0);
  if (!contents) return;
  for (const Dim& dim : *contents) {
    const bool wide = to == DType::Int64 || (!dim.is_constant() && to == DType::Int32);
    const bool fits = dim.is_constant() && dim.value() >= integer_min(to) && dim.value() <= integer_max(to);
    if (!wide && !fits) return;
  }
  ctx.set_contents(0, std::move(*contents));
}

void infer_cast(InferContext& ctx) {
  ctx.check(ctx.node().has_attr("to"), "attribute to is required. Got none");
  infer_cast_to(ctx, dtype_attr(ctx.node(), "to", DType::Undefined));
}

void reference_cast(ReferenceContext& ctx) {
  cast_tensor(ctx, ctx.input(0), dtype_attr(ctx.node(), "to", DType::Undefined));
}

void infer_cast_like(InferContext& ctx) {
  ctx.check(ctx.type(1).is_tensor(), str("the second input must be a tensor. Got ", ctx.type(1).to_string()));
  infer_cast_to(ctx, ctx.dtype(1));
}

void reference_cast_like(ReferenceContext& ctx) {
  cast_tensor(ctx, ctx.input(0), ctx.input(1).dtype());
}

// BitCast. Types below one byte are held one per byte, so they have the width of their own kind only.

int width_bits(DType dtype) {
  switch (dtype) {
    case DType::Int4:
    case DType::UInt4:
    case DType::Float4E2M1:
      return 4;
    case DType::Int2:
    case DType::UInt2:
      return 2;
    default:
      return static_cast<int>(item_bytes(dtype)) * 8;
  }
}

template <class Context>
void check_same_bits(const Context& ctx, DType from, DType to) {
  ctx.check(from != DType::String && to != DType::String && width_bits(from) == width_bits(to),
            str("both types must have the same number of bits. Got ", name(from), " and ", name(to)));
}

void infer_bit_cast(InferContext& ctx) {
  ctx.check(ctx.node().has_attr("to"), "attribute to is required. Got none");
  const DType to = dtype_attr(ctx.node(), "to", DType::Undefined);
  const DType from = ctx.dtype(0);
  check_same_bits(ctx, from, to);
  ctx.set_output(0, to, ctx.shape(0));
}

void reference_bit_cast(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType to = dtype_attr(ctx.node(), "to", DType::Undefined);
  check_same_bits(ctx, x.dtype(), to);
  const Tensor& y = ctx.output(0, to, x.dims());
  if (x.bytes() > 0) std::memcpy(y.data(), x.data(), static_cast<size_t>(x.bytes()));
}

}  // namespace

void add_cast_ops(OpRegistry& ops) {
  ops.add({.name = "Cast", .layout = LayoutClass::Oblivious, .infer = infer_cast, .reference = reference_cast});
  ops.add({.name = "CastLike",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_cast_like,
           .reference = reference_cast_like});
  ops.add(
      {.name = "BitCast", .layout = LayoutClass::Oblivious, .infer = infer_bit_cast, .reference = reference_bit_cast});
}

}  // namespace neo
