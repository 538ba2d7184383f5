#include "ir/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "base/check.h"

namespace neo {
namespace {

enum Trait : uint8_t { kFloat = 1, kInteger = 2, kSigned = 4, kComplex = 8 };

struct Info {
  std::string_view name;
  uint8_t bytes;
  uint8_t traits;
  uint8_t bits;  // of an integer
};

// In the order of DType.
constexpr Info kInfos[] = {
    {"undefined", 0, 0, 0},
    {"float64", 8, kFloat | kSigned, 0},
    {"float32", 4, kFloat | kSigned, 0},
    {"float16", 2, kFloat | kSigned, 0},
    {"bfloat16", 2, kFloat | kSigned, 0},
    {"float8_e4m3fn", 1, kFloat | kSigned, 0},
    {"float8_e4m3fnuz", 1, kFloat | kSigned, 0},
    {"float8_e5m2", 1, kFloat | kSigned, 0},
    {"float8_e5m2fnuz", 1, kFloat | kSigned, 0},
    {"float8_e8m0fnu", 1, kFloat, 0},
    {"float4_e2m1fn", 1, kFloat | kSigned, 0},
    {"int64", 8, kInteger | kSigned, 64},
    {"int32", 4, kInteger | kSigned, 32},
    {"int16", 2, kInteger | kSigned, 16},
    {"int8", 1, kInteger | kSigned, 8},
    {"int4", 1, kInteger | kSigned, 4},
    {"int2", 1, kInteger | kSigned, 2},
    {"uint64", 8, kInteger, 64},
    {"uint32", 4, kInteger, 32},
    {"uint16", 2, kInteger, 16},
    {"uint8", 1, kInteger, 8},
    {"uint4", 1, kInteger, 4},
    {"uint2", 1, kInteger, 2},
    {"bool", 1, 0, 0},
    {"string", sizeof(std::string), 0, 0},
    {"complex64", 8, kComplex, 0},
    {"complex128", 16, kComplex, 0},
};
static_assert(std::size(kInfos) == static_cast<size_t>(DType::Complex128) + 1);

const Info& info(DType dtype) {
  return kInfos[static_cast<size_t>(dtype)];
}

// A binary floating point format of at most 16 bits: sign, exponent, mantissa.
struct SmallFloat {
  enum class Specials : uint8_t { Ieee, OnlyNan, NegativeZeroIsNan, None };
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint32_t nan() const {
    switch (specials) {
      case Specials::Ieee:
        return infinity() | 1u << (mantissa_bits - 1);
      case Specials::OnlyNan:
        return sign_bit() - 1;
      case Specials::NegativeZeroIsNan:
        return sign_bit();
      case Specials::None:
        return sign_bit();
    }
    return 0;
  }
  constexpr uint32_t largest() const {
    switch (specials) {
      case Specials::Ieee:
        return infinity() - 1;
      case Specials::OnlyNan:
        return sign_bit() - 2;
      default:
        return sign_bit() - 1;
    }
  }
};

using Specials = SmallFloat::Specials;
constexpr SmallFloat kFloat16{5, 10, 15, Specials::Ieee};
constexpr SmallFloat kBFloat16{8, 7, 127, Specials::Ieee};
constexpr SmallFloat kE4M3FN{4, 3, 7, Specials::OnlyNan};
constexpr SmallFloat kE4M3FNUZ{4, 3, 8, Specials::NegativeZeroIsNan};
constexpr SmallFloat kE5M2{5, 2, 15, Specials::Ieee};
constexpr SmallFloat kE5M2FNUZ{5, 2, 16, Specials::NegativeZeroIsNan};
constexpr SmallFloat kE2M1{2, 1, 1, Specials::None};

double decode(const SmallFloat& f, uint32_t code) {
  const bool negative = (code & f.sign_bit()) != 0;
  const uint32_t magnitude = code & (f.sign_bit() - 1);
  const double sign = negative ? -1.0 : 1.0;
  const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (f.specials == Specials::Ieee && magnitude >= f.infinity()) {
    return magnitude == f.infinity() ? sign * std::numeric_limits<double>::infinity() : nan;
  }
  if (f.specials == Specials::OnlyNan && magnitude == f.nan()) return nan;
  if (f.specials == Specials::NegativeZeroIsNan && code == f.nan()) return std::numeric_limits<double>::quiet_NaN();
  const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint32_t fraction = magnitude & ((1u << f.mantissa_bits) - 1);
  const uint32_t significand = exponent == 0 ? fraction : fraction | 1u << f.mantissa_bits;
  return sign * std::ldexp(significand, std::max(exponent, 1) - f.bias - f.mantissa_bits);
}

uint32_t encode(const SmallFloat& f, double x, bool saturate) {
  const bool unsigned_zero = f.specials == Specials::NegativeZeroIsNan;
  const uint32_t sign = std::signbit(x) ? f.sign_bit() : 0;
  if (std::isnan(x)) {
    if (f.specials == Specials::None) return sign ^ f.nan();  // no NaN: a zero of the other sign, as ml_dtypes gives
    return unsigned_zero ? f.nan() : sign | f.nan();
  }
  const auto overflow = [&]() -> uint32_t {
    if (saturate || f.specials == Specials::None) return sign | f.largest();
    if (f.specials == Specials::Ieee) return sign | f.infinity();
    return unsigned_zero ? f.nan() : sign | f.nan();
  };
  const double magnitude = std::fabs(x);
  if (std::isinf(x)) return overflow();
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - f.bias);
  if (magnitude == 0) exponent = 1 - f.bias;
  if (exponent > 1023 - 1) return overflow();
  const double quanta = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  // A significand that rounds up to the next power of two carries into the exponent by itself.
  const int64_t code = (static_cast<int64_t>(exponent + f.bias - 1) << f.mantissa_bits) + static_cast<int64_t>(quanta);
  if (code > f.largest()) return overflow();
  if (code == 0 && unsigned_zero) return 0;
  return sign | static_cast<uint32_t>(code);
}

// Powers of two from 2^-127 (code 0) to 2^127; rounds away from zero.
uint8_t encode_e8m0(double x, bool saturate) {
  if (std::isnan(x)) return 0xFF;
  const double magnitude = std::fabs(x);
  if (magnitude > 0x1p127) return saturate ? 0xFE : 0xFF;
  if (magnitude < 0x1p-127) return saturate ? 0 : 0xFF;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);
  return static_cast<uint8_t>(exponent - (fraction == 0.5 ? 1 : 0) + 127);
}

double decode_e8m0(uint8_t code) {
  return code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, int{code} - 127);
}

template <class T>
T load(const void* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class T>
void store(void* p, T x) {
  std::memcpy(p, &x, sizeof x);
}

// Truncated; what does not fit in 64 bits becomes the nearest bound, NaN zero.
int64_t truncate(double x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (x < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(x);
}

}  // namespace

std::string_view name(DType dtype) {
  return info(dtype).name;
}

std::optional<DType> find_dtype(std::string_view name) {
  for (size_t i = 1; i < std::size(kInfos); ++i) {
    if (kInfos[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t item_bytes(DType dtype) {
  return info(dtype).bytes;
}
bool is_float(DType dtype) {
  return (info(dtype).traits & kFloat) != 0;
}
bool is_integer(DType dtype) {
  return (info(dtype).traits & kInteger) != 0;
}
bool is_signed(DType dtype) {
  return (info(dtype).traits & kSigned) != 0;
}
bool is_complex(DType dtype) {
  return (info(dtype).traits & kComplex) != 0;
}

int64_t integer_min(DType dtype) {
  NEO_ASSERT(is_integer(dtype), "for ", name(dtype));
  return is_signed(dtype) ? std::numeric_limits<int64_t>::min() >> (64 - info(dtype).bits) : 0;
}

int64_t integer_max(DType dtype) {
  NEO_ASSERT(is_integer(dtype), "for ", name(dtype));
  const int value_bits = info(dtype).bits - (is_signed(dtype) ? 1 : 0);
  return value_bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << value_bits) - 1;
}

double load_double(DType dtype, const void* p) {
  switch (dtype) {
    case DType::Float64:
      return load<double>(p);
    case DType::Float32:
      return load<float>(p);
    case DType::Float16:
      return from_float16(load<uint16_t>(p));
    case DType::BFloat16:
      return from_bfloat16(load<uint16_t>(p));
    case DType::Float8E4M3FN:
      return decode(kE4M3FN, load<uint8_t>(p));
    case DType::Float8E4M3FNUZ:
      return decode(kE4M3FNUZ, load<uint8_t>(p));
    case DType::Float8E5M2:
      return decode(kE5M2, load<uint8_t>(p));
    case DType::Float8E5M2FNUZ:
      return decode(kE5M2FNUZ, load<uint8_t>(p));
    case DType::Float8E8M0:
      return decode_e8m0(load<uint8_t>(p));
    case DType::Float4E2M1:
      return decode(kE2M1, load<uint8_t>(p) & 0xFu);
    case DType::UInt64:
      return static_cast<double>(load<uint64_t>(p));
    case DType::Complex64:
      return load<float>(p);
    case DType::Complex128:
      return load<double>(p);
    default:
      return static_cast<double>(load_int64(dtype, p));
  }
}

int64_t load_int64(DType dtype, const void* p) {
  switch (dtype) {
    case DType::Int64:
      return load<int64_t>(p);
    case DType::Int32:
      return load<int32_t>(p);
    case DType::Int16:
      return load<int16_t>(p);
    case DType::Int8:
      return load<int8_t>(p);
    case DType::Int4:
      return static_cast<int8_t>(load<uint8_t>(p) << 4) >> 4;
    case DType::Int2:
      return static_cast<int8_t>(load<uint8_t>(p) << 6) >> 6;
    case DType::UInt64:
      return static_cast<int64_t>(load<uint64_t>(p));
    case DType::UInt32:
      return load<uint32_t>(p);
    case DType::UInt16:
      return load<uint16_t>(p);
    case DType::UInt8:
      return load<uint8_t>(p);
    case DType::UInt4:
      return load<uint8_t>(p) & 0xF;
    case DType::UInt2:
      return load<uint8_t>(p) & 0x3;
    case DType::Bool:
      return load<uint8_t>(p) != 0;
    case DType::Undefined:
    case DType::String:
      fail(ErrorKind::Type, "neo", str("an element must be a number. Got ", name(dtype)));
    default:
      return truncate(load_double(dtype, p));
  }
}

void store_double(DType dtype, void* p, double x, bool saturate) {
  switch (dtype) {
    case DType::Float64:
      return store(p, x);
    case DType::Float32:
      return store(p, static_cast<float>(x));
    case DType::Float16:
      return store(p, static_cast<uint16_t>(encode(kFloat16, x, false)));
    case DType::BFloat16:
      return store(p, static_cast<uint16_t>(encode(kBFloat16, x, false)));
    case DType::Float8E4M3FN:
      return store(p, static_cast<uint8_t>(encode(kE4M3FN, x, saturate)));
    case DType::Float8E4M3FNUZ:
      return store(p, static_cast<uint8_t>(encode(kE4M3FNUZ, x, saturate)));
    case DType::Float8E5M2:
      return store(p, static_cast<uint8_t>(encode(kE5M2, x, saturate)));
    case DType::Float8E5M2FNUZ:
      return store(p, static_cast<uint8_t>(encode(kE5M2FNUZ, x, saturate)));
    case DType::Float8E8M0:
      return store(p, encode_e8m0(x, saturate));
    case DType::Float4E2M1:
      return store(p, static_cast<uint8_t>(encode(kE2M1, x, true)));
    case DType::UInt64:
      return store(p, x >= 0x1p64   ? std::numeric_limits<uint64_t>::max()
                      : x >= 0x1p63 ? static_cast<uint64_t>(x)
                                    : static_cast<uint64_t>(truncate(x)));
    case DType::Bool:
      return store(p, static_cast<uint8_t>(x != 0));
    case DType::Complex64:
      return store(p, std::complex<float>(static_cast<float>(x)));
    case DType::Complex128:
      return store(p, std::complex<double>(x));
    default:
      return store_int64(dtype, p, truncate(x));
  }
}

void store_int64(DType dtype, void* p, int64_t x) {
  switch (dtype) {
    case DType::Int64:
      return store(p, x);
    case DType::UInt64:
      return store(p, static_cast<uint64_t>(x));
    case DType::Int32:
    case DType::UInt32:
      return store(p, static_cast<uint32_t>(x));
    case DType::Int16:
    case DType::UInt16:
      return store(p, static_cast<uint16_t>(x));
    case DType::Int8:
    case DType::UInt8:
      return store(p, static_cast<uint8_t>(x));
    case DType::Int4:
    case DType::UInt4:
      return store(p, static_cast<uint8_t>(x & 0xF));
    case DType::Int2:
    case DType::UInt2:
      return store(p, static_cast<uint8_t>(x & 0x3));
    case DType::Bool:
      return store(p, static_cast<uint8_t>(x != 0));
    case DType::Float32:
      return store(p, static_cast<float>(x));  // not through double: one rounding
    case DType::Undefined:
    case DType::String:
      fail(ErrorKind::Type, "neo", str("an element must be a number. Got ", name(dtype)));
    default:
      return store_double(dtype, p, static_cast<double>(x));
  }
}

float from_float16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

}  // namespace neo
