#include "kernel_ir/language.h"

#include "base/check.h"

namespace neo::kernel {
namespace {

constexpr Language kOpenCl{
    .kind = LanguageKind::OpenClC,
    .name = "opencl",
    .kernel = "__kernel",
    .function = "inline",
    .global = "__global ",
    .local = "__local ",
    .image = "__read_only image1d_buffer_t ",
    .restricted = "restrict ",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .unrolled = "",
    .group_id = {"(int)get_group_id(0)", "(int)get_group_id(1)", "(int)get_group_id(2)"},
    .local_id = {"(int)get_local_id(0)", "(int)get_local_id(1)", "(int)get_local_id(2)"},
    .infinity = "INFINITY",
    .nan = "NAN",
    .has_vectors = true,
    .names_by_type = false,
    .half = "half",
};

constexpr Language kCuda{
    .kind = LanguageKind::CudaCpp,
    .name = "cuda",
    .kernel = "extern \"C\" __global__",
    .function = "static __device__ __forceinline__",
    .global = "",
    .local = "__shared__ __align__(16) ",
    .image = "const float4 *__restrict__ ",
    .restricted = "__restrict__ ",
    .barrier = "__syncthreads();",
    .unrolled = "#pragma unroll\n  ",
    .group_id = {"(int)blockIdx.x", "(int)blockIdx.y", "(int)blockIdx.z"},
    .local_id = {"(int)threadIdx.x", "(int)threadIdx.y", "(int)threadIdx.z"},
    .infinity = "__int_as_float(0x7f800000)",
    .nan = "__int_as_float(0x7fffffff)",
    .has_vectors = false,
    .names_by_type = true,
    .half = "__half",
};

constexpr Language kPlain{
    .kind = LanguageKind::PlainC,
    .name = "c",
    .kernel = "",
    .function = "static inline",
    .global = "",
    .local = "",
    .image = "",
    .restricted = "restrict ",
    .barrier = "",
    .unrolled = "",
    .group_id = {},
    .local_id = {},
    .infinity = "INFINITY",
    .nan = "NAN",
    .has_vectors = false,
    .names_by_type = true,
    .half = "_Float16",
};

}  // namespace

std::string Language::type(ValueType type) const {
  if (type.lanes > 1 && type.dtype == DType::Bool) type.dtype = DType::Int32;  // a mask
  if (type.lanes > 1 && !has_vectors) return type.to_string();
  const auto scalar = [&]() -> std::string_view {
    switch (type.dtype) {
      case DType::Float64:
        return "double";
      case DType::Float32:
        return "float";
      case DType::Float16:
        return half;
      case DType::Int64:
        return has_vectors ? "long" : "long long";
      case DType::UInt64:
        return has_vectors ? "ulong" : "unsigned long long";
      case DType::Int32:
        return "int";
      case DType::UInt32:
        return has_vectors ? "uint" : "unsigned int";
      case DType::Int16:
        return "short";
      case DType::UInt16:
        return has_vectors ? "ushort" : "unsigned short";
      case DType::Int8:
        return has_vectors ? "char" : "signed char";
      case DType::UInt8:
        return has_vectors ? "uchar" : "unsigned char";
      case DType::Bool:
        return kind == LanguageKind::PlainC ? "_Bool" : "bool";
      default:
        fail(ErrorKind::Unsupported, "kernel", str("a kernel computes with C's types. Got ", neo::name(type.dtype)));
    }
  }();
  return type.lanes == 1 ? std::string(scalar) : str(scalar, type.lanes);
}

std::string Language::function_name(Op op, DType dtype) const {
  const std::string_view base = [&]() -> std::string_view {
    switch (op) {
      case Op::Exp:
        return "exp";
      case Op::Log:
        return "log";
      case Op::Sqrt:
        return "sqrt";
      case Op::Tanh:
        return "tanh";
      case Op::Sin:
        return "sin";
      case Op::Cos:
        return "cos";
      case Op::Erf:
        return "erf";
      case Op::Floor:
        return "floor";
      case Op::Ceil:
        return "ceil";
      case Op::Round:
        return "rint";
      case Op::Abs:
        return "fabs";
      case Op::Pow:
        return "pow";
      case Op::Fma:
        return "fma";
      case Op::Min:
        return "fmin";
      case Op::Max:
        return "fmax";
      default:
        fail(ErrorKind::Internal, "kernel", str("an operation has a function. Got ", kernel::name(op)));
    }
  }();
  return std::string(base) + (names_by_type && dtype != DType::Float64 ? "f" : "");
}

const Language& language(LanguageKind kind) {
  return kind == LanguageKind::OpenClC ? kOpenCl : kind == LanguageKind::CudaCpp ? kCuda : kPlain;
}

LanguageKind find_language(std::string_view name) {
  for (const Language* one : {&kOpenCl, &kCuda, &kPlain}) {
    if (one->name == name) return one->kind;
  }
  fail(ErrorKind::Unsupported, "kernel", str("a language must be opencl, cuda or c. Got ", name));
}

}  // namespace neo::kernel
