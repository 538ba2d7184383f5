#pragma once

#include <string>

#include "kernel_ir/language.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {

// The kernel as one source file. Verified unless it is, vectorized, unrolled, simplified and hoisted on the way.
//
// OpenCL C and CUDA C++ define a kernel of the name entry_name(); its arguments are the parameters in order, int or the
// number's type for numbers. In OpenCL C an image is two: the image1d_buffer_t, and an int, the texel of it that is the
// parameter's first. Plain C defines `void <name>(void *const *args)`: args[i] is the memory of a buffer or the
// address of a number.
std::string print(const Kernel& kernel, LanguageKind language, const Features& features = {});
// The name that the text gives to the kernel. CUDA C++ has functions of many names that a kernel might have ("norm").
std::string entry_name(const Kernel& kernel, LanguageKind language);

}  // namespace neo::kernel
