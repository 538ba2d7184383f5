#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace neo {

// Element types. Types below one byte are held one element per byte, as NumPy (ml_dtypes) holds them.
enum class DType : uint8_t {
  Undefined,
  Float64,
  Float32,
  Float16,
  BFloat16,
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Float8E8M0,
  Float4E2M1,
  Int64,
  Int32,
  Int16,
  Int8,
  Int4,
  Int2,
  UInt64,
  UInt32,
  UInt16,
  UInt8,
  UInt4,
  UInt2,
  Bool,
  String,
  Complex64,
  Complex128,
};

// NumPy's name: "float32", "bfloat16", "int4", "bool", "string".
std::string_view name(DType dtype);
std::optional<DType> find_dtype(std::string_view name);

// Bytes one element takes in memory; for String, sizeof(std::string).
int64_t item_bytes(DType dtype);

bool is_float(DType dtype);    // every floating point type, not complex
bool is_integer(DType dtype);  // signed and unsigned, not bool
bool is_signed(DType dtype);   // floats and signed integers
bool is_complex(DType dtype);

// The smallest and largest values of an integer type (uint64's largest is clipped to int64's).
int64_t integer_min(DType dtype);
int64_t integer_max(DType dtype);

// One element to and from double, int64 (floats are converted with the rounding and saturation ONNX's Cast asks for:
// round to nearest even; `saturate` concerns the 8-bit floats only).
double load_double(DType dtype, const void* p);
int64_t load_int64(DType dtype, const void* p);
void store_double(DType dtype, void* p, double x, bool saturate = true);
void store_int64(DType dtype, void* p, int64_t x);

float from_float16(uint16_t bits);
inline float from_bfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}

}  // namespace neo
