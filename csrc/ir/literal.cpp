#include "ir/literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "ir/text.h"

namespace neo {
namespace {

template <class T>
std::string shortest(T x) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  return {buffer, end};
}

// Floats are told from integers by a point, an exponent or a name.
std::string with_point(std::string text) {
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// The bits of an element of at most eight bytes.
uint64_t bits_of(DType dtype, const void* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(item_bytes(dtype)));
  return bits;
}

template <class T>
bool read_whole(std::string_view text, T& x) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_float(std::string_view text, double& x) {
  if (text == "nan" || text == "-nan") {
    x = std::copysign(std::numeric_limits<double>::quiet_NaN(), text[0] == '-' ? -1.0 : 1.0);
    return true;
  }
  if (text == "inf" || text == "-inf") {
    x = text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return true;
  }
  return read_whole(text, x) && std::isfinite(x);
}

// Eight bytes a step; a few multiplications keep printing of large models fast.
class Hash {
 public:
  void add(const void* data, size_t size) {
    const auto* p = static_cast<const char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      mix(word);
    }
    uint64_t tail = 0;
    std::memcpy(&tail, p, size);
    mix(tail ^ uint64_t{size} << 56);
  }
  uint64_t value() const {
    uint64_t h = state_;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
    return h ^ h >> 29;
  }

 private:
  void mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 32;
  }
  uint64_t state_ = 0x243f6a8885a308d3ULL;
};

template <class T, class F>
std::string listed(std::string_view empty, const std::vector<T>& items, const F& print_item) {
  if (items.empty()) return std::string(empty) + "[]";
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + print_item(items[i]);
  return text + "]";
}

}  // namespace

bool is_keyword(std::string_view word) {
  constexpr std::string_view kWords[] = {"graph", "symbols", "constant"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string print_float(double x) {
  if (std::isnan(x)) return std::signbit(x) ? "-nan" : "nan";
  return with_point(shortest(x));
}

std::string print_element(DType dtype, const void* element) {
  if (dtype == DType::String) return quote(*static_cast<const std::string*>(element));
  if (dtype == DType::Bool) return load_int64(dtype, element) != 0 ? "true" : "false";
  if (dtype == DType::UInt64) return shortest(bits_of(dtype, element));
  if (is_integer(dtype)) return shortest(load_int64(dtype, element));
  if (is_complex(dtype)) {
    const bool wide = dtype == DType::Complex128;
    const auto* p = static_cast<const char*>(element);
    const DType part = wide ? DType::Float64 : DType::Float32;
    return "(" + print_element(part, p) + ", " + print_element(part, p + item_bytes(part)) + ")";
  }
  const double x = load_double(dtype, element);
  std::string text;
  if (dtype == DType::Float32 && std::isfinite(x)) {
    text = with_point(shortest(static_cast<float>(x)));
  } else {
    text = print_float(x);
  }
  // A NaN of other bits than its name gives.
  std::array<char, 8> again{};
  if (!parse_element(text, dtype, again.data()) || bits_of(dtype, again.data()) != bits_of(dtype, element)) {
    text = "0x" + [&] {
      char buffer[20];
      const auto end = std::to_chars(buffer, buffer + sizeof buffer, bits_of(dtype, element), 16).ptr;
      return std::string(buffer, end);
    }();
  }
  return text;
}

bool parse_element(std::string_view text, DType dtype, void* element) {
  if (dtype == DType::String) {
    *static_cast<std::string*>(element) = text;
    return true;
  }
  if (dtype == DType::Bool) {
    if (text != "true" && text != "false") return false;
    store_int64(dtype, element, text == "true" ? 1 : 0);
    return true;
  }
  if (dtype == DType::UInt64) {
    uint64_t x = 0;
    if (!read_whole(text, x)) return false;
    std::memcpy(element, &x, sizeof x);
    return true;
  }
  if (is_integer(dtype)) {
    int64_t x = 0;
    if (!read_whole(text, x) || x < integer_min(dtype) || x > integer_max(dtype)) return false;
    store_int64(dtype, element, x);
    return true;
  }
  if (is_complex(dtype)) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || text.front() != '(' || text.back() != ')') return false;
    const DType part = dtype == DType::Complex128 ? DType::Float64 : DType::Float32;
    std::string_view imaginary = text.substr(comma + 1, text.size() - comma - 2);
    while (!imaginary.empty() && imaginary[0] == ' ') imaginary.remove_prefix(1);
    return parse_element(text.substr(1, comma - 1), part, element) &&
           parse_element(imaginary, part, static_cast<char*>(element) + item_bytes(part));
  }
  if (!is_float(dtype)) return false;
  if (text.starts_with("0x")) {
    uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    std::memcpy(element, &bits, static_cast<size_t>(item_bytes(dtype)));
    return true;
  }
  if (dtype == DType::Float32 && text.find('n') == std::string_view::npos) {
    float x = 0;
    if (!read_whole(text, x)) return false;
    std::memcpy(element, &x, sizeof x);
    return true;
  }
  double x = 0;
  if (!read_float(text, x)) return false;
  store_double(dtype, element, x);
  if (dtype == DType::Float8E5M2 && std::isinf(x)) store_double(dtype, element, x, false);
  return true;
}

std::string content_hash(const Tensor& tensor) {
  Hash hash;
  const auto dtype = static_cast<uint64_t>(tensor.dtype());
  hash.add(&dtype, sizeof dtype);
  hash.add(tensor.dims().data(), tensor.dims().size() * sizeof(int64_t));
  if (tensor.dtype() == DType::String) {
    for (int64_t i = 0; i < tensor.size(); ++i) hash.add(tensor.strings()[i].data(), tensor.strings()[i].size());
  } else if (tensor.size() > 0) {
    hash.add(tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kHex[hash.value() >> shift & 0xF];
  return text;
}

std::string print_tensor(const Tensor& tensor, int64_t inline_elements) {
  std::string text = std::string(name(tensor.dtype())) + to_string(tensor.dims());
  if (tensor.is_splat()) return text + " splat " + print_element(tensor.dtype(), tensor.splat_element());
  if (tensor.is_absent()) return text + " absent";
  if (tensor.size() > inline_elements) return text + " #" + content_hash(tensor);
  text += " {";
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto* element = static_cast<const char*>(tensor.data()) + i * item_bytes(tensor.dtype());
    text += (i ? ", " : "") + print_element(tensor.dtype(), element);
  }
  return text + "}";
}

std::string print_attr(const Attr& attr, int64_t inline_elements) {
  return std::visit(
      [&](const auto& x) -> std::string {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, int64_t>) return shortest(x);
        if constexpr (std::is_same_v<T, double>) return print_float(x);
        if constexpr (std::is_same_v<T, std::string>) return quote(x);
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) return listed("ints", x, shortest<int64_t>);
        if constexpr (std::is_same_v<T, std::vector<double>>) return listed("floats", x, print_float);
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return listed("strings", x, quote);
        if constexpr (std::is_same_v<T, Tensor>) return print_tensor(x, inline_elements);
        if constexpr (std::is_same_v<T, std::vector<Dim>>) return "dims" + Shape(x).to_string();
      },
      attr);
}

}  // namespace neo
