#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kernel_ir/expr.h"

namespace neo::kernel {

enum class LanguageKind : uint8_t {
  OpenClC,  // 1.2, and what the extensions of Features add
  CudaCpp,
  PlainC,  // C11 with GCC's vectors: the groups and their threads are loops
};

// Features of a device beyond the language's core. Without them, kernels are written another way.
struct Features {
  enum class Subgroups : uint8_t { None, Khronos, Intel };  // Intel: with block reads and writes
  Subgroups subgroups = Subgroups::None;
  bool matrices = false;  // CUDA: matrix instructions on tf32, from compute capability 8.0 on
  // Products of four bytes that sum by themselves. Native: cl_khr_integer_dot_product, or CUDA's dp4a, from compute
  // capability 6.1 on; Arm: cl_arm_integer_dot_product_accumulate_int8.
  enum class Dots : uint8_t { None, Native, Arm };
  Dots dots = Dots::None;
  // OpenCL C: float16 is widened and narrowed by integers, since the driver's functions want vectors at aligned places.
  bool software_halves = false;
};

// How one language of the C family says what all of them can say. A "%" stands for an operand.
struct Language {
  LanguageKind kind;
  std::string_view name;
  std::string_view kernel;    // before the kernel's name
  std::string_view function;  // before a function's type
  std::string_view global;    // before a pointer's type
  std::string_view local;     // before an array's type
  std::string_view image;     // before a parameter's name; empty: as memory of vectors
  std::string_view restricted;
  std::string_view barrier;
  std::string_view unrolled;  // before a loop over the lanes of a function
  std::array<std::string_view, 3> group_id;
  std::array<std::string_view, 3> local_id;
  std::string_view infinity;
  std::string_view nan;
  bool has_vectors;       // float4 and its functions are the language's own
  bool names_by_type;     // expf beside exp
  std::string_view half;  // float16's name

  // The name of a type: "float", "float16" in OpenCL C, "float32x16" elsewhere.
  std::string type(ValueType type) const;
  // A function of floats: "exp", "expf". float16 is computed in float32 where the language has no functions for it.
  std::string function_name(Op op, DType dtype) const;
};

const Language& language(LanguageKind kind);
// By its name: "opencl", "cuda", "c".
LanguageKind find_language(std::string_view name);

}  // namespace neo::kernel
