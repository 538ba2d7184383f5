#pragma once

#include "routines/cpu/int8/codes_kernels.h"
#include "routines/packed_store.h"
#include "routines/patterns/code_function.h"

namespace neo {

// The 256 results of a function of one code, among a step's constants.
class CodeTable {
 public:
  CodeTable(const CodeFunction& function, const Target& target, const OpRegistry& ops, PackedStore& packed);

  uint8_t operator[](int64_t code) const { return reinterpret_cast<const uint8_t*>(table_.as<float>())[code]; }

  // Elements that lie side by side; y may be x.
  void apply(const uint8_t* x, uint8_t* y, int64_t count) const;
  // Pixels of a vector where they lie, of which `valid` lanes exist and the others become zero.
  void apply(uint8_t* y, int64_t pixels, int64_t lanes, int64_t valid) const;

 private:
  Tensor table_;
  const CodesKernels& kernels_;
};

}  // namespace neo
